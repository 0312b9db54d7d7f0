"""The database of a study: a SQLite file, or PostgreSQL by URL, with schema migrations."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from cogstage.errors import CogstageError, UsageError
from cogstage.study.schema import VERSION_TABLE

DATABASE_FILE = "study.sqlite"
MIGRATION_LOCK = 0x636F67  # any fixed number: PostgreSQL lets one holder of it migrate at a time


class Database:
    """Transactions on either store. What a finished :meth:`writing` block wrote survives the process being killed."""

    def __init__(self, url: str | URL) -> None:
        self.url = _normal(url)
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        # SQLite admits one writer: threads queue here, which is fairer and quicker than its polling for the file lock.
        self._one_writer = threading.Lock()
        try:
            self.engine = _sqlite_engine(self.url) if self.is_sqlite else _postgres_engine(self.url)
        except ModuleNotFoundError as error:
            raise UsageError(
                f"PostgreSQL needs the driver {error.name}; install it with: pip install 'cogstage[postgres]'"
            ) from None

    @classmethod
    def in_folder(cls, folder: Path) -> Database:
        """The SQLite file of a study folder."""
        return cls(URL.create("sqlite", database=str(folder / DATABASE_FILE)))

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A transaction that only reads."""
        with self._plain_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A transaction that is on disk when the block ends, or not there at all."""
        if not self.is_sqlite:
            with self._plain_errors(), self.engine.begin() as connection:
                yield connection
            return
        with self._plain_errors(), self._one_writer, self.engine.connect() as connection:
            connection.execution_options(writes=True)
            with connection.begin():
                yield connection

    def upsert(self, table: Any) -> Any:
        """The dialect's ``INSERT`` that can say what happens on conflict."""
        return (sqlite if self.is_sqlite else postgresql).insert(table)

    def upgrade(self) -> None:
        """Migrate the tables to the current schema; safe if several servers start at once."""
        with self.writing() as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": MIGRATION_LOCK})
            settings = migration_settings()
            settings.attributes["connection"] = connection
            command.upgrade(settings, "head")

    def check_schema(self) -> None:
        """Raise if the tables are missing or newer than this version knows."""
        head = ScriptDirectory.from_config(migration_settings()).get_current_head()
        with self.reading() as connection:
            context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
            current = context.get_current_revision()
        if current != head:
            raise CogstageError(
                f"the study's database has schema {current or 'none'}, this version of cogstage uses {head}; "
                "use the version that made it, or `cogstage study upgrade`"
            )

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        try:
            yield
        except OperationalError as error:
            reason = str(error.orig).strip().splitlines()[0] if error.orig else "no reason given"
            address = self.url.render_as_string(hide_password=True)
            raise CogstageError(f"the study's database {address} cannot be used: {reason}") from error
        except DBAPIError as error:
            if "file is not a database" in str(error.orig):
                raise CogstageError(f"{self.url.database} is not a SQLite database; restore it from a copy") from error
            raise


def migration_settings() -> Config:
    """Where alembic finds the migrations inside the package."""
    settings = Config()
    settings.set_main_option("script_location", str(Path(__file__).parent / "migrations").replace("%", "%%"))
    settings.set_main_option("path_separator", "os")
    return settings


def _normal(url: str | URL) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
    except (ArgumentError, NoSuchModuleError):
        raise UsageError("that is not a database URL; an example is postgresql://user@host/database") from None
    if backend == "postgres" or parsed.drivername == "postgresql":
        return parsed.set(drivername="postgresql+psycopg")
    if backend not in ("sqlite", "postgresql"):
        raise UsageError(f"a study is stored in SQLite or PostgreSQL, not in {backend}")
    return parsed


def _sqlite_engine(url: URL) -> Engine:
    engine = create_engine(url, hide_parameters=True, connect_args={"timeout": 30}, pool_size=20, max_overflow=20)

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say, below
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode = WAL")
        cursor.execute("PRAGMA synchronous = FULL")  # a commit is on disk before it is acknowledged
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        # A writer takes the lock at once: a read that turns into a write later could not be waited for.
        writes = connection.get_execution_options().get("writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def _postgres_engine(url: URL) -> Engine:
    return create_engine(url, hide_parameters=True, pool_pre_ping=True, pool_size=10, max_overflow=20)
