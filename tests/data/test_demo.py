"""The demo on a small training: everything is written at once, nothing when it is stopped, and it is repeatable."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

from cogstage.cli.demo import suggested_commands
from cogstage.cli.main import run
from cogstage.data import embedded
from cogstage.data.demo import BASELINES, OURS, DemoOptions, DemoResult, run_demo
from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.record import Prediction
from cogstage.rationale.verdict import Verdict
from cogstage.relations import contradict

QUICK = {
    "dimension": 16,
    "tower": 16,
    "associations": 6,
    "folds": 0,
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
    assert set(model.relations) == set(data.relations) == set(embedded.facts().relations)
    lines = (out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    assert [Prediction.from_json(line) for line in lines] == [case.prediction for case in result.cases]
    for folder in ("graph", "facts", "dataset", "model"):
        assert "## Sources and licences" in (out / folder / "REPORT.md").read_text(encoding="utf-8")


def test_no_textbook_pair_is_in_anything_a_model_is_fitted_on(made: tuple[Path, DemoResult]) -> None:
    out, _ = made
    data, find = Dataset.load(out / "dataset"), embedded.graph().vocabulary.find
    asked = {frozenset((find(pair.head), find(pair.tail))) for pair in embedded.textbook()}
    view = data.for_fitting()
    facts = view.train_facts()
    used = list(zip(facts.head.tolist(), facts.tail.tolist(), strict=True))
    for relation in data.relations:
        for split in ("train", "dev"):
            pairs = view.pairs(relation, split)
            used += zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)
    assert len(used) > 10_000
    assert not asked & {frozenset(pair) for pair in used}


def test_answers_are_the_models_and_are_counted_right(made: tuple[Path, DemoResult]) -> None:
    out, result = made
    model = CogStage.load(out / "model")
    pairs = embedded.textbook()
    assert [answer.pair for answer in result.answers] == list(pairs)
    for answer in result.answers[::20]:
        pair = answer.pair
        assert answer.probability == pytest.approx(model.predict(pair.head, pair.tail, pair.relation).probability)
    counted = 0
    for answer in result.answers:
        pair = answer.pair
        own, *others = (
            model.predict(pair.head, pair.tail, name).probability
            for name in (pair.relation, *(r for r in model.relations if contradict(r, pair.relation)))
        )
        head, tail = (model.vocabulary.type[model.vocabulary.find(term)] for term in (pair.head, pair.tail))
        likely = own >= 0.5 and types_fit(model, head, pair.relation, tail)
        if likely and not any(other >= 0.5 for other in others):  # nothing that could contradict
            assert answer.verdict is Verdict.LIKELY
        if not likely:
            assert answer.verdict in (Verdict.UNLIKELY, Verdict.DOES_NOT_APPLY)
        counted += (answer.verdict is Verdict.LIKELY) is pair.label
    assert result.right == counted
    *_, (name, true, unrelated, wrong, everything, share) = result.tables[-1].rows
    assert (name, everything, share) == ("all", f"{counted} of {len(pairs)}", f"{counted / len(pairs):.0%}")
    assert sum(int(str(text).split(" of ")[0]) for text in (true, unrelated, wrong)) == counted
    assert str(wrong).endswith(f" of {sum(pair.kind == 'wrong relation' for pair in pairs)}")


def types_fit(model: CogStage, head: str, relation: str, tail: str) -> bool:
    """Whether at least 1 % of the relation's training facts join these two types."""
    facts, types = model.fitted.facts, np.array(model.vocabulary.type)
    own = facts.relation == model.all_relations.index(relation)
    return bool(np.mean((types[facts.head[own]] == head) & (types[facts.tail[own]] == tail)) >= 0.01)


def test_every_suggested_command_runs_as_it_is_printed(
    made: tuple[Path, DemoResult], capsys: pytest.CaptureFixture[str]
) -> None:
    out, result = made
    commands = [shlex.split(line) for line in suggested_commands(out, result.cases[0].prediction)]
    assert {command[0] for command in commands} == {"cogstage"}
    for command in commands:
        arguments = [*command[1:], "--help"] if command[1] == "serve" else command[1:]
        with pytest.raises(SystemExit) as ended:
            run(arguments)
        assert not ended.value.code, capsys.readouterr().err
        assert capsys.readouterr().out


ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/index.md", "docs/rationale.md", "docs/howto/safety.md", "docs/web.md")


def shown_commands() -> list[str]:
    """Commands about a trained model: lines of the pages' code blocks, and the examples of the command help."""
    lines = [
        re.sub(r"\s+#.*$", "", line)
        for page in PAGES
        for block in re.findall(r"```(?:bash|text|sh)\n(.*?)```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S)
        for line in re.sub(r"\\\n\s*", " ", block).splitlines()
    ]
    for name in ("explain", "publish"):
        text = (ROOT / "src" / "cogstage" / "cli" / f"{name}.py").read_text(encoding="utf-8")
        lines += re.findall(r"Example: (cogstage .*)", text)
    return sorted({line for line in lines if re.match(r"cogstage (explain|discover|cases|publish) ", line)})


@pytest.mark.slow
def test_commands_of_pages_and_help_run_as_they_are_shown(
    made: tuple[Path, DemoResult], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    out, _ = made
    for name, target in (("demo", out), ("model", out / "model"), ("MODEL", out / "model")):
        (tmp_path / name).symlink_to(target)
    for name in ("dataset", "D"):
        (tmp_path / name).symlink_to(out / "dataset")
    (tmp_path / "pairs.tsv").write_text("head\ttail\naspirin\theadache\n")
    (tmp_path / "corrections.tsv").write_text("head\trelation\ttail\tverdict\nAspirin\tmay_treat\tFever\tright\n")
    monkeypatch.chdir(tmp_path)
    commands = shown_commands()
    assert len(commands) >= 12
    for line in commands:
        with pytest.raises(SystemExit) as ended:
            run(shlex.split(line)[1:])
        assert not ended.value.code, f"{line}: {capsys.readouterr().err}"


def test_cases_follow_their_rule(made: tuple[Path, DemoResult]) -> None:
    _, result = made
    terms = embedded.graph().vocabulary
    rarer = {
        pair: min(terms.count[terms.find(pair.head)], terms.count[terms.find(pair.tail)])
        for pair in embedded.textbook()
    }
    for case in result.cases[:5]:
        p = case.prediction
        assert case.label is True
        shown = next(q for q in rarer if (q.head, q.relation, q.tail) == (p.head.name, p.relation, p.tail.name))
        assert rarer[shown] == max(n for q, n in rarer.items() if q.relation == p.relation and q.label)
    assert len({case.prediction.relation for case in result.cases[:5]}) == 5
    assert all(case.correct is False for case in result.cases[5:])


def test_report_is_one_file_without_outside_resources(made: tuple[Path, DemoResult]) -> None:
    out, result = made
    page = (out / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"(?:src|href)=[\"'](?!#)", re.sub(r"xlink:href=\"#[^\"]*\"", "", page))
    assert "url(http" not in page
    assert "<script" not in page
    for name in (*BASELINES, OURS):
        assert f">{name}<" in page
        for figures in result.figures[name].values():
            assert f"{figures['auroc']:.3f}" in page
    for relation in embedded.facts().relations:
        assert f">{relation}<" in page
    for case in result.cases:
        assert str(escape(case.prediction.head.name)) in page
    for answer in result.answers:
        if not answer.right:
            assert str(escape(answer.pair.source)) in page.replace("&#x27;", "&#39;")
    assert page.count("<svg") >= len(result.cases) + 2
    assert "medical advice" in page


def test_the_floor_is_where_it_must_be(made: tuple[Path, DemoResult]) -> None:
    _, result = made
    for figures in result.figures["always-positive"].values():
        assert figures["f1"] == pytest.approx(2 / 3, abs=0.01)
    degree = [figures["auroc"] for figures in result.figures["degree"].values()]
    assert abs(sum(degree) / len(degree) - 0.5) < 0.1  # popularity says next to nothing
    assert result.figures["svd+distmult"]["may_treat"]["auroc"] > 0.7  # and the counts say a good deal


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
    assert "no partial output was left" in rest
    assert "Traceback" not in rest
    assert list(tmp_path.iterdir()) == []


def test_json_names_the_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture) -> None:
    from cogstage.cli import demo as command
    from cogstage.data import demo

    def quick(out: Path, options: DemoOptions, progress: object) -> DemoResult:
        return DemoResult(tables=(), figures={OURS: {"causes": {"f1": 0.5}}}, answers=(), cases=(), seconds=1.0)

    monkeypatch.setattr(demo, "run_demo", quick)
    command.demo(out=tmp_path / "demo", seed=0, as_json=True)
    assert json.loads(capsys.readouterr().out) == {
        "report": str(tmp_path / "demo" / "report.html"),
        "seconds": 1.0,
        "test": {OURS: {"causes": {"f1": 0.5}}},
        "textbook": {
            "right": 0,
            "pairs": 0,
            "kinds": {kind: {"right": 0, "pairs": 0} for kind in ("true", "unrelated", "wrong relation")},
        },
    }
