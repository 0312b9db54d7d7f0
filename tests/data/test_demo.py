"""The demo on a small training: everything is written at once, nothing when it is stopped, and it is repeatable."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cogstage.data.demo import BASELINES, CASES, OURS, RELATION, DemoOptions, DemoResult, run_demo
from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.record import Prediction

QUICK = {
    "dimension": 16,
    "tower": 16,
    "associations": 6,
    "folds": 0,
    "recall_passes": 1,
    "recognition_passes": 2,
    "decision_epochs": 1,
    "decision_steps": 0,
}


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, DemoResult]:
    out = tmp_path_factory.mktemp("demo") / "demo"
    return out, run_demo(out, DemoOptions(training=QUICK))


def test_every_piece_is_there_and_loads(made: tuple[Path, DemoResult]) -> None:
    out, result = made
    data, model = Dataset.load(out / "dataset"), CogStage.load(out / "model")
    assert model.relations == (RELATION,)
    lines = (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert [Prediction.from_json(line) for line in lines] == [case.prediction for case in result.cases]
    held_out = data.pairs(RELATION, "test")
    answers = {
        (data_head, data_tail): bool(label)
        for data_head, data_tail, label in zip(
            held_out.head.tolist(), held_out.tail.tolist(), held_out.label.tolist(), strict=True
        )
    }
    index = model.vocabulary.index
    for case in result.cases:
        assert answers[index[case.prediction.head.key], index[case.prediction.tail.key]] is case.label
    assert 1 <= len(result.cases) <= 2 * CASES + 2


def test_report_is_one_file_without_outside_resources(made: tuple[Path, DemoResult]) -> None:
    out, result = made
    page = (out / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=[\"'](?!#)", re.sub(r"xlink:href=\"#[^\"]*\"", "", page))
    assert "url(http" not in page
    assert "<script" not in page
    for name in (*BASELINES, OURS):
        assert f">{name}<" in page
        assert f"{result.figures[name]['auroc']:.3f}" in page
    for case in result.cases:
        assert case.prediction.head.name in page
    assert page.count("<svg") >= len(result.cases) + 2
    assert "medical advice" in page


def test_the_floor_is_where_it_must_be(made: tuple[Path, DemoResult]) -> None:
    _, result = made
    assert result.figures["always-positive"]["f1"] == pytest.approx(2 / 3, abs=1e-9)
    assert abs(result.figures["degree"]["auroc"] - 0.5) < 0.1  # popularity says next to nothing
    assert result.figures["svd+distmult"]["auroc"] > 0.7  # and the counts say a good deal


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="is not a demo folder"):
        run_demo(tmp_path / "demo", DemoOptions(training=QUICK))
    assert [path.name for path in (tmp_path / "demo").iterdir()] == ["thesis.txt"]


def test_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    # a shell that starts tests in the background has interrupts ignored, and children inherit that
    code = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    code += "from cogstage.cli.main import run; run(['demo', '--out', 'demo'])"
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", code], cwd=tmp_path, stderr=subprocess.PIPE, text=True, env={**os.environ}
    )
    assert process.stderr is not None
    for line in process.stderr:  # until training is under way, when files are already written
        if line.startswith("Stage 1"):
            break
    assert any(tmp_path.iterdir())
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    rest = process.stderr.read()
    assert process.wait(60) == 130
    assert "nothing half-written was left" in rest
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []


def test_json_names_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    from cogstage.cli import demo as command
    from cogstage.data import demo

    def quick(out: Path, options: DemoOptions, progress: object) -> DemoResult:
        return DemoResult(table=None, figures={OURS: {"f1": 0.5}}, cases=(), seconds=1.0)  # type: ignore[arg-type]

    monkeypatch.setattr(demo, "run_demo", quick)
    command.demo(out=tmp_path / "demo", seed=0, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "report": str(tmp_path / "demo" / "report.html"),
        "seconds": 1.0,
        "test": {OURS: {"f1": 0.5}},
    }
