"""The configuration file, --verbose and --quiet."""

from __future__ import annotations

import logging
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from cogstage.cli.main import run
from cogstage.graph.cooccurrence import Graph

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="configuration files need tomllib")


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as done:
        run(list(arguments))
    out, err = capsys.readouterr()
    return int(done.value.code or 0), out, err


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COGSTAGE_CONFIG", raising=False)
    (tmp_path / "r.tsv").write_text("doc_id\tcodes\n1\ta;b\n2\ta;b;c\n")
    return tmp_path


def test_options_come_from_the_file_and_the_command_line_wins(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "cogstage.toml").write_text('[graph.build]\nmin-count = 2\nout = "g"\nlicence = ["One", "Two"]\n')
    code, out, err = call(capsys, "graph", "build", "r.tsv")
    assert (code, out) == (0, "g: 2 nodes, 1 edges\n")
    assert "from the configuration file: --min-count 2, --out g" in err
    assert Graph.load("g").made_with["licences"] == ["One", "Two"]
    assert call(capsys, "graph", "build", "r.tsv", "--min-count", "1")[1] == "g: 3 nodes, 3 edges\n"
    (folder / "other.toml").write_text('[graph.build]\nout = "h"\n')
    monkeypatch.setenv("COGSTAGE_CONFIG", "other.toml")
    assert call(capsys, "graph", "build", "r.tsv")[1] == "h: 3 nodes, 3 edges\n"
    monkeypatch.setenv("COGSTAGE_CONFIG", "missing.toml")
    assert "missing.toml: No such file" in call(capsys, "graph", "build", "r.tsv")[2]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[graph.buld]\nunit = 1", "no command `cogstage graph buld`; write a table per command"),
        ("unit = 1", "no command `cogstage unit`"),
        ("[graph.build]\ndocuments = 1", "`cogstage graph build` has no option --documents"),
        ("[graph.build\n", "cogstage.toml: "),
        ('[graph.build]\nunit = "year"\nout = "g"', "'year' is not one of"),
    ],
)
def test_mistakes_are_one_line(folder: Path, capsys: pytest.CaptureFixture[str], text: str, message: str) -> None:
    (folder / "cogstage.toml").write_text(text)
    code, out, err = call(capsys, "graph", "build", "r.tsv")
    assert (code, out) == (2, "")
    assert message in err.splitlines()[-1]
    assert not (folder / "g").exists()


def test_quiet_shows_results_alone(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(capsys, "graph", "build", "r.tsv", "-o", "g", "--quiet") == (0, "g: 3 nodes, 3 edges\n", "")
    code, _, err = call(capsys, "graph", "info", "nothing", "--quiet")
    assert code != 0
    assert err.startswith("cogstage: ")
    assert "Counting pairs" in call(capsys, "graph", "build", "r.tsv", "-o", "g")[2]  # and only for that call


def test_verbose_logs_and_names_versions(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = call(capsys, "--version", "--verbose")
    assert f"Python {sys.version.split()[0]}" in out
    assert f"numpy {version('numpy')}" in out.splitlines()
    assert len(call(capsys, "--version")[1].splitlines()) == 1
    call(capsys, "graph", "build", "r.tsv", "-o", "g", "--verbose")
    assert logging.getLogger("cogstage").level == logging.DEBUG
    call(capsys, "--version")
    assert logging.getLogger("cogstage").handlers == []
