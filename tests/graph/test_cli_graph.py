"""The graph commands as a user meets them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from cogstage.cli import main
from cogstage.cli.main import app
from cogstage.graph.cooccurrence import Graph


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.csv").write_text(
        "doc_id,text\n1,Aspirin for fever.\n2,Fever and cough.\n3,Aspirin and fever.\n", encoding="utf-8"
    )
    (tmp_path / "terms.tsv").write_text(
        "term\tconcept\tname\naspirin\tD1\tAspirin\nfever\tS1\tFever\n", encoding="utf-8"
    )
    return tmp_path


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process: exit code, output, errors."""

    def run_here(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main.run(list(arguments))
        return int(ended.value.code or 0), *capfd.readouterr()

    return run_here


def test_build_info_and_plot(folder: Path) -> None:
    runner = CliRunner()
    result = runner.invoke(app, ["graph", "build", "notes.csv", "--lexicon", "terms.tsv", "--out", "g", "--json"])
    assert result.exit_code == 0, result.output
    assert Graph.load("g").count.tolist() == [2]
    shown = runner.invoke(app, ["graph", "info", "g", "--json", "--plot", "degrees.png"])
    about = json.loads(shown.stdout)
    assert (about["nodes"], about["edges"]) == (2, 1)
    assert about["largest_edges"] == [{"source": "Aspirin", "target": "Fever", "count": 2}]
    assert about["largest_nodes"][0] == {"term": "S1", "name": "Fever", "count": 3, "degree": 1}
    assert about["degree"]["distribution"] == [{"from": 1, "to": 1, "nodes": 2}]
    assert (folder / "degrees.png").read_bytes().startswith(b"\x89PNG")
    plain = runner.invoke(app, ["graph", "info", "g"])
    assert "2 nodes, 1 edges" in plain.stdout
    assert "Aspirin - Fever" in plain.stdout


def test_import_edges(folder: Path, run: Run) -> None:
    (folder / "edges.csv").write_text("source,target,count\na,b,2\nb,c,x\n", encoding="utf-8")
    code, out, err = run("graph", "import", "edges", "edges.csv", "--out", "g")
    assert (code, out) == (1, "")
    assert "edges.csv:3, column count" in err
    assert "Traceback" not in err
    code, out, err = run("graph", "import", "edges", "edges.csv", "--out", "g", "--skip-bad")
    assert code == 0
    assert "1 bad rows were skipped" in err
    assert Graph.load("g").n_edges == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["graph", "build", "nowhere.csv", "--lexicon", "terms.tsv", "--out", "g"], "no such file: nowhere.csv"),
        (
            ["graph", "build", "notes.csv", "--lexicon", "terms.tsv", "--unit", "page", "--out", "g"],
            "'page' is not one of 'auto', 'document'",
        ),
        (["graph", "build", "notes.csv", "--lexicon", "terms.tsv", "--memory", "lots", "--out", "g"], "--memory"),
        (["graph", "info", "notes.csv"], "is not a folder"),
    ],
)
def test_wrong_use_is_one_line_and_code_two(folder: Path, run: Run, arguments: list[str], message: str) -> None:
    code, _, err = run(*arguments)
    assert code == 2
    assert message in err
    assert "Traceback" not in err
    assert err.count("\n") == 1


def test_a_lexicon_without_terms(folder: Path, run: Run) -> None:
    (folder / "terms.tsv").write_text("term\tconcept\n", encoding="utf-8")
    code, _, err = run("graph", "build", "notes.csv", "--lexicon", "terms.tsv", "--out", "g")
    assert code == 1
    assert "has no terms" in err
    assert not (folder / "g").exists()


def test_a_stop_list_needs_a_lexicon(tmp_path: Path, run: Run) -> None:
    (tmp_path / "notes.tsv").write_text("doc_id\tcodes\n1\ta;b\n")
    (tmp_path / "stop.txt").write_text("a\n")
    words = ["graph", "build", tmp_path / "notes.tsv", "--stop-list", tmp_path / "stop.txt", "--out", tmp_path / "out"]
    code, _, err = run(*map(str, words))
    assert code == 2
    assert "--stop-list removes terms from a lexicon and requires --lexicon" in err
    assert not (tmp_path / "out").exists()
