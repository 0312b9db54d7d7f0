"""How-to pages on frames, databases, exchange and deployment: what they show runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from test_site import run_page

from cogstage.cli.main import app
from cogstage.graph.cooccurrence import Graph

ROOT = Path(__file__).resolve().parents[2]


def blocks(page: str, language: str) -> list[str]:
    text = (ROOT / "docs" / "howto" / page).read_text(encoding="utf-8")
    return re.findall(rf"```{language}\n(.*?)```", text, flags=re.S)


@pytest.mark.slow
def test_the_page_on_frames_runs(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("polars")
    (code,) = blocks("frames.md", "python")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "reason_share" in done.stdout
    assert "shape: (2, " in done.stdout  # Polars


@pytest.mark.slow
def test_the_page_on_databases_runs(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "cdm.duckdb")) as connection:
        for kind, concept in (("condition_occurrence", "condition"), ("drug_exposure", "drug")):
            date = "condition_start_date" if concept == "condition" else "drug_exposure_start_date"
            columns = f"{kind}_id int, person_id int, {concept}_concept_id int, {date} date"
            connection.execute(f"create table {kind} ({columns})")
            concepts = f"{len(concept)}00 + range % 2"
            connection.execute(f"insert into {kind} select range, range % 30, {concepts}, '2020-01-01' from range(60)")
    run_page("howto/databases.md", tmp_path)
    graph = Graph.load(tmp_path / "graph")
    assert graph.made_with["suppress_below"] == 11
    assert set(graph.count.tolist()) == {15}  # persons with even, and with odd concepts


@pytest.mark.slow
def test_the_page_on_exchange_runs(tmp_path: Path) -> None:
    (tmp_path / "paired_counts.tsv").write_text(
        "dataset_id\tconcept_id_1\tconcept_id_2\tconcept_count\n1\t10\t20\t15\n2\t10\t20\t99\n"
    )
    (tmp_path / "single_counts.tsv").write_text("dataset_id\tconcept_id\tconcept_count\n1\t10\t90\n1\t20\t80\n")
    (tmp_path / "athena").mkdir()
    (tmp_path / "athena" / "CONCEPT.csv").write_text(
        "concept_id\tconcept_name\tdomain_id\n10\tAspirin\tDrug\n20\tPain\tCondition\n"
    )
    (tmp_path / "pairs.csv").write_text("code_a,code_b,n\nx,y,3\n")
    run_page("howto/exchange.md", tmp_path)
    assert Graph.load(tmp_path / "cohd").count.tolist() == [15]
    assert Graph.load(tmp_path / "imported").count.tolist() == [3]


def test_the_example_configuration_is_accepted() -> None:
    tomllib = pytest.importorskip("tomllib")
    import typer.main

    from cogstage.cli.configuration import _defaults

    (text,) = blocks("deploy.md", "toml")
    defaults = _defaults(Path("cogstage.toml"), typer.main.get_command(app), tomllib.loads(text), "cogstage")
    assert defaults["graph"]["build"]["suppress_below"] == 11
    assert defaults["serve"]["hide_counts"] is True


def test_the_plugin_page_shows_the_example() -> None:
    (shown,) = blocks("plugins.md", "toml")
    assert shown.strip() in (ROOT / "examples" / "plugin" / "pyproject.toml").read_text(encoding="utf-8")
