"""Figures of the documentation: recorded with what they need to be measured again, and compared by their kind."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from benchmarks import __main__ as front
from benchmarks import counting, figures, harness


def row(method: str = "PPMI", **values: Any) -> dict[str, Any]:
    return {"method": method, **values}


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"AUROC": 0.8}, {"AUROC": 0.802}, []),
        ({"AUROC": 0.8}, {"AUROC": 0.803}, ["PPMI, AUROC: 0.8 in the documentation, 0.803 now"]),
        ({"× faster": 10.0}, {"× faster": 8.1}, []),
        ({"× faster": 10.0}, {"× faster": 7.9}, ["PPMI, × faster: 10.0 in the documentation, 7.9 now"]),
        ({"nodes": 100}, {"nodes": 101}, ["PPMI, nodes: 100 in the documentation, 101 now"]),
        ({"CPU seconds": 1.0, "peak MB": 5}, {"CPU seconds": 3.0, "peak MB": 50}, []),
        ({"build CPU s": 1.0, "bytes per edge": 5}, {"build CPU s": 3.0, "bytes per edge": 50}, []),
        ({"AUROC": 0.8}, {}, ["PPMI, AUROC: 0.8 in the documentation, None now"]),
    ],
)
def test_values_and_ratios_are_compared_by_their_kind(
    before: dict[str, Any], after: dict[str, Any], said: list[str]
) -> None:
    assert figures.differences([row(**before)], [row(**after)]) == said


def test_rows_are_found_by_what_they_are_about() -> None:
    old = [row("a", cut=1991, AUROC=0.5), row("a", cut=2000, AUROC=0.6), row("b", AUROC=0.7)]
    assert figures.differences(old, old) == []
    assert figures.differences(old, [*old[:2], row("c", AUROC=0.7)]) == ["b: the row is gone", "c: a new row"]


SMALL = {"n_rows": 2_000, "n_terms": 100, "n_units": 200}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A figure of the counting benchmark, measured with small sizes."""
    folder = tmp_path_factory.mktemp("figures")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "QUICK", SMALL)
        assert front.main(["counting", "--quick", "--out", str(folder / "out")]) == front.DONE
    figures.main(["--figures", str(folder / "kept"), "--record", str(folder / "out" / "counting.json")])
    return folder / "kept" / "counting.json"


@pytest.mark.slow
def test_a_figure_says_what_made_it_and_is_measured_again(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = json.loads(recorded.read_text(encoding="utf-8"))
    assert (kept["benchmark"], kept["arguments"]) == ("counting", ["--quick"])  # no place on this machine
    assert re.fullmatch(r"[0-9a-f]{40}( with changes)?|unknown", kept["commit"])
    assert "system" not in kept["machine"]
    arguments = ["--figures", str(recorded.parent), "--out", str(recorded.parent / "again")]

    def measured(command: list[str]) -> str:
        """The benchmark in this process, with the small sizes."""
        assert command[1:5] == ["-m", "benchmarks", "counting", "--quick"]
        front.main(command[3:])
        return ""

    monkeypatch.setattr(figures, "run", measured)
    monkeypatch.setattr(counting, "QUICK", SMALL)
    monkeypatch.setattr(harness, "provenance", lambda *_: {"commit": "x", "inputs": {}, "cpu_seconds": 1.0})
    monkeypatch.setattr(figures, "RATIO", 1.0)  # ratios of so small sizes are chance
    figures.main(arguments)
    assert "counting: the same" in capsys.readouterr().out
    kept["rows"][0]["pairs"] = -1
    (recorded.parent / "changed").mkdir()
    (recorded.parent / "changed" / "counting.json").write_text(json.dumps(kept), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"counting: .*, pairs: -1 in the documentation"):
        figures.main(["--figures", str(recorded.parent / "changed"), *arguments[2:]])


@pytest.mark.slow
def test_what_cannot_be_measured_here_is_left_out_with_a_reason(recorded: Path) -> None:
    kept = json.loads(recorded.read_text(encoding="utf-8"))
    assert figures.measure({**kept, "cpu_seconds": 3000.0}, "")[0] == "left out: takes 50 minutes of processor time"
    needs = figures.measure({**kept, "inputs": {"facts.tsv": "0"}}, "")[0]
    assert needs == "left out: needs facts.tsv; name their folder with --data"
    model = figures.measure({**kept, "arguments": ["--model", "no-such-model"]}, "")[0]
    assert model == "left out: needs the folder no-such-model; its page says how it was made"
    outcome, found = figures.measure({**kept, "arguments": ["--no-such-option"]}, "")
    assert outcome.startswith("FAILED")
    assert found


@pytest.mark.parametrize("broken", ["{", '{"name": "x"}', "[]"])
def test_what_is_no_figure_is_named(broken: str, tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text(broken, encoding="utf-8")
    with pytest.raises(SystemExit, match=r"x\.json.* record it again"):
        figures.main(["--figures", str(tmp_path), "--out", str(tmp_path)])


def test_every_recorded_figure_can_be_measured_again() -> None:
    for path in sorted(figures.FIGURES.glob("*.json")):
        kept = figures.read_figure(path)
        assert kept["benchmark"] in front.names()
        assert kept["rows"], path
        assert "/" not in " ".join(kept["arguments"])  # no place on a machine
