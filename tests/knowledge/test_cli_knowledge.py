"""The commands as a user types them: facts from files, a data set from facts, and one-line errors."""

import json
from pathlib import Path

import pytest
from knowledge_files import graph_of, mrconso, mrrel, write_umls
from test_dataset_build import popular_world

from cogstage.cli.main import run


def cogstage(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as stopped:
        run([str(argument) for argument in arguments])
    said = capsys.readouterr()
    return int(stopped.value.code or 0), said.out, said.err


@pytest.fixture
def world(tmp_path: Path) -> Path:
    graph, facts = popular_world()
    graph.save(tmp_path / "graph")
    lines = ["\t".join(row) for row in zip(facts.head, facts.relation, facts.tail, strict=True)]
    (tmp_path / "facts.tsv").write_text("\n".join(["head\trelation\ttail", *lines]) + "\n")
    return tmp_path


def test_from_a_table_to_a_data_set(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = cogstage(capsys, "facts", "table", world / "facts.tsv", "--out", world / "facts")
    assert code == 0
    assert "1,200 facts" in out
    code, out, err = cogstage(
        capsys, "dataset", "build", "--graph", world / "graph", "--facts", world / "facts", "--out", world / "data"
    )
    assert code == 0
    assert "may treat" in out
    assert "leakage.txt" in out
    assert "warning: causes has only" in err
    code, out, _ = cogstage(capsys, "dataset", "info", world / "data")
    assert code == 0
    assert "LEAKAGE REPORT" in out
    assert "both ends" in out
    code, out, _ = cogstage(capsys, "dataset", "info", world / "data", "--json")
    assert json.loads(out)["manifest"]["counts"]["total"]["train"] > 0
    (world / "data/leakage.txt").write_text("changed")
    code, _, err = cogstage(capsys, "dataset", "info", world / "data")
    assert code == 1
    assert "leakage.txt is damaged" in err


def test_umls_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = write_umls(
        tmp_path / "META",
        [mrrel("C2", "may_treat", "C1")],
        [mrconso("C1", "aspirin"), mrconso("C2", "pain")],
    )
    graph_of(["aspirin", "pain"]).save(tmp_path / "graph")
    code, out, _ = cogstage(
        capsys, "facts", "umls", folder, "--graph", tmp_path / "graph", "--out", tmp_path / "facts", "--json"
    )
    assert code == 0
    assert json.loads(out)["relations"] == {"may_treat": 1}
    code, _, err = cogstage(
        capsys, "facts", "umls", folder, "--source-vocabulary", "NOSUCH", "--out", tmp_path / "other"
    )
    assert code == 1
    assert "no facts were found, and nothing was written" in err
    assert "of other sources 1" in err
    assert not (tmp_path / "other").exists()


def test_wrong_use_is_one_line(world: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph_of(["x", "y"]).save(world / "small")
    cogstage(capsys, "facts", "table", world / "facts.tsv", "--out", world / "facts")
    for arguments, code, said in [
        (["facts", "table", world / "nothing.tsv", "--out", world / "f"], 2, "no such file"),
        (["facts", "umls", world, "--out", world / "f"], 2, "has no MRREL.RRF"),
        (["facts", "omop", world, "--out", world / "f"], 2, "has no CONCEPT, CONCEPT_RELATIONSHIP"),
        (["facts", "table", world / "facts.tsv", "-g", world / "graph", "-l", "x", "-o", world / "f"], 2, "not both"),
        (["facts", "table", world / "facts.tsv", "-g", world, "-o", world / "f"], 2, "is not a graph"),
        (["dataset", "build", "-g", world / "facts", "-f", world / "facts", "-o", world / "f"], 2, "not a graph"),
        (["dataset", "build", "-g", world / "small", "-f", world / "facts", "-o", world / "f"], 1, "both ends"),
        (["dataset", "build", "-g", world / "graph", "-f", world / "facts", "-o", world / "graph"], 2, "another --out"),
        (["dataset", "info", world / "facts"], 2, "is a facts, not a dataset"),
    ]:
        got, out, err = cogstage(capsys, *arguments)
        last = err.strip().splitlines()[-1]
        assert (got, out) == (code, ""), err
        assert last.startswith("cogstage: ")
        assert said in last
        assert "Traceback" not in err
        assert not (world / "f").exists()


@pytest.mark.parametrize(
    "command", [["facts", "umls"], ["facts", "omop"], ["facts", "table"], ["dataset", "build"], ["dataset", "info"]]
)
def test_help_has_an_example(capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    code, out, _ = cogstage(capsys, *command, "--help")
    assert code == 0
    assert f"Example: cogstage {' '.join(command)}" in " ".join(out.split())
