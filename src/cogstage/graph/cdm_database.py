"""OMOP tables straight from a database: ``duckdb:///cdm.duckdb`` and ``postgresql://host/name``, with ``?schema=cdm``.

The tables are copied to a private folder beside the output in one transaction, since worker processes read them
several times. Nothing of the URL is kept or shown.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec, TypeVar
from urllib.parse import parse_qsl, unquote, urlencode

from cogstage.corpus.formats.omop import TABLES
from cogstage.errors import CogstageError, UsageError
from cogstage.input_files import Paths
from cogstage.progress import SILENT, Progress

P = ParamSpec("P")
R = TypeVar("R")
SCHEMES = ("duckdb:", "postgresql:", "postgres:")
VOCABULARY = ("concept", "concept_synonym")
ROLL_UP = ("concept_ancestor", "concept_relationship")
KEYS = {"note_nlp": "note_id", "concept_ancestor": "ancestor_concept_id", "concept_relationship": "concept_id_1"}
KEYS |= dict.fromkeys(VOCABULARY, "concept_id")  # a column that the table must have; person_id in the others
TABLES_OF_SCHEMA = """
    select table_name, column_name from information_schema.columns
    where table_schema = coalesce({schema}, current_schema()) order by table_name, ordinal_position
"""


def database_url(documents: Paths) -> str | None:
    """The URL, if the documents are those of a database."""
    listed = [documents] if isinstance(documents, str) else documents
    if not isinstance(listed, (list, tuple)):
        return None
    urls = [entry for entry in listed if isinstance(entry, str) and entry.startswith(SCHEMES)]
    if urls and len(listed) > 1:
        raise UsageError("a database is read alone; build a graph of the files, then use `cogstage graph merge`")
    return urls[0] if urls else None


def takes_database(function: Callable[P, R]) -> Callable[P, R]:
    """Let a function of ``documents`` and ``out`` take the URL of a database."""
    parameters = signature(function)

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = parameters.bind(*args, **kwargs)
        given = bound.arguments
        url = database_url(given["documents"])
        if url is None:
            return function(*args, **kwargs)
        if given.get("resume"):
            raise UsageError("a build from a database cannot be continued; build without `resume`")
        beside, progress = Path(given["out"]), given.get("progress", SILENT)
        with copied_tables(url, beside, given.get("roll_up") is not None, progress) as folder:
            given["documents"] = folder
            return function(*bound.args, **bound.kwargs)

    return call


@contextmanager
def copied_tables(url: str, beside: Path, roll_up: bool, progress: Progress) -> Iterator[Path]:
    """A folder with the OMOP tables of the database, removed afterwards; those without rows are left out."""
    wanted = (*TABLES, *VOCABULARY, *(ROLL_UP if roll_up else ()))
    beside.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{beside.name}.cdm-", dir=beside.parent) as name:
        folder, found = Path(name), 0
        with _open(url) as database:
            tables = database.tables()
            for table in wanted:
                key = KEYS.get(table, "person_id")
                if table in tables and key not in map(str.lower, tables[table][1]):
                    progress.say(f"{table} was left out: it has no column {key}")
                elif table in tables:
                    progress.start(f"Reading {table}")
                    rows = database.copy(table, tables[table], folder, progress)
                    progress.done(f"{rows:,} rows")
                    found += table in TABLES and rows > 0
        if not found:
            raise UsageError("the database has no OMOP table with rows; name its schema, as in URL?schema=cdm")
        yield folder


class _Database(ABC):
    """The tables of one schema, by names in lower case."""

    def __init__(self, schema: str | None) -> None:
        self.schema = schema

    def tables(self) -> dict[str, tuple[str, list[str]]]:
        """Name and columns of each table as the database spells them, by the name in lower case."""
        found: dict[str, tuple[str, list[str]]] = {}
        for table, column in self._columns():
            found.setdefault(table.lower(), (table, []))[1].append(column)
        return found

    @abstractmethod
    def _columns(self) -> list[tuple[str, str]]:
        """Table and column, in their order."""

    @abstractmethod
    def copy(self, table: str, source: tuple[str, list[str]], folder: Path, progress: Progress) -> int:
        """Write a table to the folder, unless it is empty; return the number of rows."""


class _DuckDb(_Database):
    def __init__(self, connection: Any, schema: str | None) -> None:
        super().__init__(schema)
        self.connection = connection

    def _columns(self) -> list[tuple[str, str]]:
        found: list[tuple[str, str]] = self.connection.execute(
            TABLES_OF_SCHEMA.format(schema="?"), [self.schema]
        ).fetchall()
        return found

    def copy(self, table: str, source: tuple[str, list[str]], folder: Path, progress: Progress) -> int:
        """Write Parquet."""
        place = ".".join('"' + part.replace('"', '""') + '"' for part in (self.schema, source[0]) if part)
        path = folder / f"{table}.parquet"
        target = str(path).replace("'", "''")
        (rows,) = self.connection.execute(f"copy (select * from {place}) to '{target}' (format parquet)").fetchone()
        progress.advance(rows)
        if not rows:
            path.unlink()
        return int(rows)


class _Postgres(_Database):
    def __init__(self, connection: Any, schema: str | None) -> None:
        super().__init__(schema)
        self.connection = connection

    def _columns(self) -> list[tuple[str, str]]:
        query = TABLES_OF_SCHEMA.format(schema="%s::text")
        found: list[tuple[str, str]] = self.connection.execute(query, [self.schema]).fetchall()
        return found

    def copy(self, table: str, source: tuple[str, list[str]], folder: Path, progress: Progress) -> int:
        """Write CSV, as the server sends it."""
        from psycopg import sql

        place = sql.SQL(".").join(sql.Identifier(part) for part in (self.schema, source[0]) if part)
        path, rows = folder / f"{table}.csv", -1  # the first is the header
        query = sql.SQL("copy (select * from {}) to stdout (format csv, header, encoding 'UTF8')").format(place)
        with path.open("wb") as file, self.connection.cursor() as cursor, cursor.copy(query) as stream:
            for data in stream:
                file.write(data)
                rows += 1
                progress.advance(1 if rows > 0 else 0)
        if not rows:
            path.unlink()
        return rows


@contextmanager
def _open(url: str) -> Iterator[_Database]:
    """A read-only connection; its errors name no part of the URL but the host, and never the password."""
    bare, schema = _without_schema(url)
    with _open_duckdb(bare, schema) if url.startswith("duckdb:") else _open_postgres(bare, schema) as database:
        yield database


@contextmanager
def _open_duckdb(url: str, schema: str | None) -> Iterator[_Database]:
    try:
        import duckdb
    except ImportError:
        raise UsageError("DuckDB is not installed; install it with: pip install 'cogstage[duckdb]'") from None
    path = Path(unquote(url.removeprefix("duckdb:").removeprefix("///")))
    if not path.is_file():
        raise UsageError(f"no such file: {path}; a URL has three slashes before a relative path, four before others")
    try:
        with duckdb.connect(str(path), read_only=True) as connection:
            yield _DuckDb(connection, schema)
    except duckdb.Error as error:
        raise CogstageError(f"{path}: {error}") from error


@contextmanager
def _open_postgres(url: str, schema: str | None) -> Iterator[_Database]:
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise UsageError("PostgreSQL needs a driver; install it with: pip install 'cogstage[postgres]'") from None
    try:
        options: dict[str, Any] = dict(conninfo_to_dict(url))
    except psycopg.Error:  # its message may repeat a part of the password
        raise UsageError(
            "the database URL cannot be read; write postgresql://user@host/name, with the password in PGPASSWORD or "
            "~/.pgpass, or with its special characters percent-encoded"
        ) from None
    failed = None
    try:
        with psycopg.connect(**options) as connection:
            connection.read_only = True
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ  # all tables of one moment
            connection.execute("set local datestyle to 'ISO'")
            yield _Postgres(connection, schema)
    except psycopg.Error as error:
        failed = " ".join(str(error).split())
    if failed is not None:
        password = options.get("password")
        raise CogstageError(f"PostgreSQL: {failed.replace(str(password), '***') if password else failed}")


def _without_schema(url: str) -> tuple[str, str | None]:
    """The URL without its parameter ``schema``, and its value."""
    bare, mark, query = url.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    schema = next((value for name, value in options if name == "schema"), None)
    others = [(name, value) for name, value in options if name != "schema"]
    return (f"{bare}?{urlencode(others)}" if others else bare) if mark else bare, schema or None
