"""``cogstage evaluate --rationales`` prints the tables and writes one report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from small_model import save_small_data, small_model

from cogstage.cli.main import run
from cogstage.rationale.record import Prediction


def test_evaluate_with_rationales_and_a_second_seed(
    small_model_folder: Path, shared_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = save_small_data(tmp_path / "data")
    other = small_model(shared_folder, seed=1)
    arguments = ["evaluate", str(small_model_folder), "-d", str(data), "--rationales", "--also", str(other)]
    arguments += ["--rationale-pairs", "40", "--ranking-heads", "5", "-r", "may_treat", "--out", str(tmp_path / "out")]
    with pytest.raises(SystemExit) as ended:
        run(arguments)
    assert not ended.value.code
    printed = capsys.readouterr().out
    for words in ("p falls without them, K=5", "effective reasons", "uniform weights", "Jaccard@5"):
        assert words in printed
    assert "reasons that restate the target" in printed
    figures = json.loads((tmp_path / "out" / "metrics.json").read_text(encoding="utf-8"))
    measured = figures["rationales"][0]
    assert measured["restated"] == 0
    assert 0 <= measured["stability"]["jaccard"] <= 1
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Reliability" in page
    assert "Ablation of the weights" in page


def test_cases_by_seed_in_every_form(
    small_model_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = save_small_data(tmp_path / "data")
    base = ["cases", str(small_model_folder), "--dataset", str(data), "--true", "1", "--false", "1"]
    printed = {}
    for form in ("text", "markdown", "latex", "html", "jsonl"):
        with pytest.raises(SystemExit) as ended:
            run([*base, "--output-format", form])
        assert not ended.value.code
        printed[form] = capsys.readouterr().out
    statements = [Prediction.from_json(line).statement for line in printed["jsonl"].splitlines()]
    assert all(f"{statement} The held-out answer is" in printed["text"] for statement in statements)
    assert "### Case 2" in printed["markdown"]
    assert r"\bottomrule" in printed["latex"]
    assert "</html>" in printed["html"]
    assert len(printed["jsonl"].splitlines()) == 2
    with pytest.raises(SystemExit) as ended:
        run([*base, "--output-format", "docx"])
    assert ended.value.code == 2
