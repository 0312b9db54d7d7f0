"""Fixtures that run a test on SQLite and on PostgreSQL; imported by the conftest files that need them."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import postgres_cluster
import pytest
from sqlalchemy import create_engine, text
from sqlalchemy.engine import make_url

from cogstage.study.folder import OpenStudy, create_folder, open_folder
from cogstage.study.protocol import Study

PASSWORD = "correct horse battery"


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server; skips with the reason where none can be started."""
    if reason := postgres_cluster.reason_to_skip():
        pytest.skip(reason)
    with postgres_cluster.cluster() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str | None:
    """None for the folder's own SQLite file, or the URL of an empty schema in PostgreSQL."""
    if request.param == "sqlite":
        return None
    server = make_url(request.getfixturevalue("postgres_server")).set(drivername="postgresql+psycopg")
    name = f"study_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    engine.dispose()
    return server.set(drivername="postgresql", query={"options": f"-csearch_path={name}"}).render_as_string(
        hide_password=False
    )


@pytest.fixture
def make_study(database_url: str | None, tmp_path: Path) -> Iterator[Callable[[Study], OpenStudy]]:
    """Creates a study folder on the store of this test and opens it."""
    opened: list[OpenStudy] = []

    def make(study: Study) -> OpenStudy:
        folder = tmp_path / f"study{len(opened)}"
        create_folder(folder, study, PASSWORD, {}, database_url)
        opened.append(open_folder(folder, database_url))
        return opened[-1]

    yield make
    for entry in opened:
        entry.close()
