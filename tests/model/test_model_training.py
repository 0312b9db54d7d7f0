"""Training learns what is planted, does not cheat, is deterministic, resumes to the same bits, says when it fails."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from benchmarks.planted import Plan, planted
from save_planted import save_both
from threadpoolctl import threadpool_info, threadpool_limits
from training_settings import PAPER, QUICK, SMALL

from cogstage.errors import CogstageError, LeakageError, UsageError
from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset, FittingView
from cogstage.model.config import Config
from cogstage.model.network import PreparedNetwork
from cogstage.model.recognition import inputs
from cogstage.progress import Silent
from cogstage.training import default
from cogstage.training.decision import DecisionModule
from cogstage.training.default import DefaultTraining
from cogstage.training.measures import dev_measures
from cogstage.training.sampling import PairBatch

TWO_EPOCHS = {**QUICK, "decision_epochs": 2}
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def auroc(model: CogStage, dataset: Dataset, relation: str = "may_treat") -> float:
    test = dataset.pairs(relation, "test")
    return dev_measures(model.logits(test.head, test.tail, relation), test.label)["auroc"]


@pytest.mark.slow
def test_learns_what_is_planted() -> None:
    graph, dataset = planted(Plan(facts=900))
    model = CogStage("may_treat", dimension=32, associations=8, tower=32).fit(graph, dataset)
    assert auroc(model, dataset) >= 0.93


@pytest.mark.slow
def test_does_not_cheat() -> None:
    """Facts and negatives drawn alike: whatever is learned of the training pairs says nothing about new ones."""
    graph, dataset = planted(Plan(facts=900, shuffled=True))
    model = CogStage("may_treat", dimension=16, associations=8, tower=16).fit(graph, dataset)
    assert abs(auroc(model, dataset) - 0.5) < 0.12  # 270 test pairs: a standard error of 0.035


def test_paper_preset_learns(small: tuple[Graph, Dataset]) -> None:
    model = CogStage("may_treat", preset="paper", **PAPER, learning_rate=0.01).fit(*small)
    history = model.metrics["history"]
    assert len(history) == 3
    assert history[-1]["loss_p"] < history[0]["loss_p"]
    assert all(line["loss_n"] > 0 and line["loss_r"] > 0 for line in history)


def arrays(model: CogStage) -> dict[str, np.ndarray]:
    return model.fitted._arrays()


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_same_seed_same_bits(small: tuple[Graph, Dataset], preset: str) -> None:
    options = TWO_EPOCHS if preset == "default" else {**PAPER, "epochs": 1}
    first, second = (CogStage("may_treat", preset=preset, seed=3, **options).fit(*small) for _ in range(2))
    for name, value in arrays(first).items():
        assert np.array_equal(value, arrays(second)[name]), name
    assert first.calibration == second.calibration


@pytest.mark.slow
def test_only_the_fitting_view_is_read(small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    graph, dataset = small

    def forbidden(*_: object) -> None:
        raise LeakageError("asked for more than the fitting view")

    monkeypatch.setattr(Dataset, "pairs", forbidden)
    monkeypatch.setattr(Dataset, "facts", forbidden)
    monkeypatch.setattr(Dataset, "negatives", forbidden)
    one, other = (CogStage("all", **QUICK).fit(graph, data) for data in (dataset, dataset.for_fitting()))
    assert one.metrics["dev"] == other.metrics["dev"]


def test_stage_3_sees_each_pair_by_the_recognition_that_has_not_seen_its_fold(
    small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[PreparedNetwork, PairBatch]] = []
    sight = default.sight

    def watched(prepared: PreparedNetwork, pairs: PairBatch) -> default.Sight:
        calls.append((prepared, pairs))
        return sight(prepared, pairs)

    monkeypatch.setattr(default, "sight", watched)
    training = DefaultTraining(small[0], small[1].for_fitting(), [0, 1], Config(**QUICK), 0)  # type: ignore[arg-type]
    for number in range(training.rounds):
        training.run_round(number, np.random.default_rng(number))
    assert {prepared.recognition.hidden for prepared, _ in calls} == {None, 0, 1}
    dev = np.concatenate([np.stack([pairs.head, pairs.tail], 1) for pairs in training.sampler.dev.values()])
    of_dev = set(map(tuple, dev.tolist()))
    for prepared, pairs in calls:
        hidden = prepared.recognition.hidden
        fold = -1 if hidden is None else hidden
        assert (pairs.fold == fold).all()
        assert (hidden is None) == (set(zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)) <= of_dev)
        own, x = training._recognitions[fold].weights(), inputs(training._term, training._fact[fold])
        assert np.array_equal(prepared.recognition.head, np.tanh((x + own.offset) @ own.w_head + own.b_head))
        assert np.array_equal(prepared.recognition.weights.contrast, own.contrast)
    for target, train in training.sampler.train.items():  # each row is that of its own pair
        for row in range(0, len(train), 37):
            alone = sight(training._prepared(int(train.fold[row])), train[np.array([row])])
            for one, all_rows in zip(alone, training._seen[target], strict=True):
                assert torch.allclose(one[0].float(), all_rows[row].float(), atol=1e-5)


def test_the_best_epoch_is_kept_and_training_stops(
    small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With dev AUROC made up: the best epoch's weights stay, and patience ends the run after the minimum."""
    from cogstage.training.paper import PaperTraining
    from cogstage.training.trainer import Trainer

    made_up = iter([0.6, 0.9, 0.7, 0.65, 0.6, 0.6, 0.6, 0.6])
    seen: list[torch.Tensor] = []

    def measure(trainer: Trainer) -> dict[str, dict[str, float]]:
        method = trainer._method
        assert isinstance(method, PaperTraining)
        seen.append(method.network.v.weight.detach().clone())
        return {"may_treat": {"auroc": next(made_up)}}

    monkeypatch.setattr(Trainer, "measure", measure)
    options = {**PAPER, "epochs": 8, "minimum_epochs": 5, "patience": 2}
    model = CogStage("may_treat", preset="paper", **options).fit(*small)
    assert model.metrics["epochs"] == 5  # patience was used up after 4, the minimum is 5
    assert model.metrics["kept_epoch"] == 2
    assert model.metrics["stopped"] == "dev AUROC no longer rises"
    assert torch.equal(model.fitted.network["0"].v.weight, seen[1])  # type: ignore[index]


@pytest.mark.slow
def test_killed_run_resumes_to_the_same_result(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    graph, data = save_both(*small, tmp_path)
    script = """
import sys
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.estimator import CogStage
import cogstage.training.default as default
default.BLOCK = 10
graph, data, out, resume = sys.argv[1:5]
options = dict(dimension=16, associations=6, tower=16, recognition_passes=10)
model = CogStage("may_treat", **options, decision_epochs=4, decision_steps=0)
keep = dict(checkpoint=out + ".state", checkpoint_every=0.0, resume=resume == "yes")
model.fit(Graph.load(graph), Dataset.load(data), **keep)
model.save(out)
"""

    def command(out: str, resume: str) -> list[str]:
        return [sys.executable, "-c", script, str(graph), str(data), str(tmp_path / out), resume]

    subprocess.run(command("whole", "no"), check=True, env=ENVIRONMENT)
    process = subprocess.Popen(command("killed", "no"), env=ENVIRONMENT)
    state = tmp_path / "killed.state" / "state.safetensors"
    written, deadline = set(), time.monotonic() + 120
    while len(written) < 4 and process.poll() is None and time.monotonic() < deadline:
        if state.exists():
            written.add(state.stat().st_mtime_ns)
        time.sleep(0.002)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert state.exists()
    assert not (tmp_path / "killed").exists()
    subprocess.run(command("killed", "yes"), check=True, env=ENVIRONMENT)
    one, other = (CogStage.load(tmp_path / name) for name in ("whole", "killed"))
    for name, value in arrays(one).items():
        assert np.array_equal(value, arrays(other)[name]), name
    assert one.metrics["dev"] == other.metrics["dev"]
    assert one.calibration == other.calibration


@pytest.mark.slow
def test_resume_without_a_checkpoint_begins_as_any_run(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    """A command that may be restarted says ``--resume`` from the first."""
    one = CogStage("may_treat", **QUICK).fit(*small)
    other = CogStage("may_treat", **QUICK).fit(*small, checkpoint=tmp_path / "state", resume=True)
    assert all(np.array_equal(value, arrays(other)[name]) for name, value in arrays(one).items())
    assert one.metrics["dev"] == other.metrics["dev"]


def test_resume_refuses_other_settings(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    CogStage("may_treat", **QUICK).fit(*small, checkpoint=tmp_path / "state", checkpoint_every=0.0)
    with pytest.raises(UsageError, match=r"other settings \(offset_decay=0\.1\)"):
        CogStage("may_treat", **QUICK, offset_decay=0.1).fit(*small, checkpoint=tmp_path / "state", resume=True)


def test_time_limit_gives_a_model(small: tuple[Graph, Dataset]) -> None:
    model = CogStage("may_treat", **SMALL).fit(*small, time_limit=1e-6)
    assert model.metrics["stopped"] == "time limit"
    assert np.isfinite(model.probabilities([0], [1], "may_treat")).all()


@pytest.mark.slow
def test_numbers_that_explode_stop_training(
    small: tuple[Graph, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    forward = DecisionModule.forward

    def broken(self: DecisionModule, *arguments: Any) -> object:
        if torch.is_grad_enabled():
            calls.append(1)
        if len(calls) == 3:
            with torch.no_grad():
                self.bias.fill_(float("nan"))
        return forward(self, *arguments)

    monkeypatch.setattr(DecisionModule, "forward", broken)
    state = tmp_path / "state"
    with pytest.raises(
        CogstageError, match=r"the loss of DecisionModule is no longer a number in round .* last good checkpoint is in"
    ):
        CogStage("may_treat", **TWO_EPOCHS).fit(*small, checkpoint=state, checkpoint_every=0.0)
    monkeypatch.undo()
    model = CogStage("may_treat", **TWO_EPOCHS).fit(*small, checkpoint=state, resume=True)
    assert all(np.isfinite(values).all() for values in arrays(model).values())


def test_trace_and_progress(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    said: list[str] = []

    class Listening(Silent):
        def done(self, note: str = "") -> None:
            said.append(note)

    model = CogStage("may_treat", **TWO_EPOCHS)
    model.fit(*small, trace=tmp_path / "deep" / "trace.jsonl", progress=Listening())
    lines = [json.loads(line) for line in (tmp_path / "deep" / "trace.jsonl").read_text().splitlines()]
    epochs = [line for line in lines if line["stage"] == "epoch"]
    assert [line["epoch"] for line in epochs] == [1, 2]
    assert all(0 <= line["dev_auroc"] <= 1 and line["L_p"] > 0 for line in epochs)
    assert any("dev AUROC" in note for note in said)


@pytest.mark.slow
def test_tensorboard_files(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is an optional dependency")
    CogStage("may_treat", **QUICK).fit(*small, tensorboard=tmp_path / "board")
    assert list((tmp_path / "board").glob("events.*"))


def test_all_relations_share_stages(small: tuple[Graph, Dataset]) -> None:
    graph, dataset = small
    model = CogStage("all", **QUICK).fit(graph, dataset)
    assert model.relations == dataset.relations
    assert arrays(model)["decision.value"].shape == (2, 4)
    assert set(model.calibration) == set(dataset.relations)


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_closed_world_trains(small: tuple[Graph, Dataset], preset: str) -> None:
    graph, dataset = small
    options = TWO_EPOCHS if preset == "default" else {**PAPER, "epochs": 1, "assumptions": 20}
    model = CogStage("may_treat", world="closed", preset=preset, **options).fit(graph, dataset)
    test = dataset.pairs("may_treat", "test")
    reasons = [r for record in model.predict_batch(test.head, test.tail, "may_treat") for r in record.reasons]
    assert reasons
    assert all(r.known_fact for r in reasons)


@pytest.mark.slow
@pytest.mark.parametrize("preset", ["default", "paper"])
def test_two_processes_train_alike(small: tuple[Graph, Dataset], tmp_path: Path, preset: str) -> None:
    graph, data = save_both(*small, tmp_path)
    command = [str(Path(sys.executable).parent / "cogstage"), "train", "--graph", str(graph), "--dataset", str(data)]
    command += ["--relation", "may_treat", "--preset", preset]
    options = PAPER | {"learning_rate": 0.01} if preset == "paper" else {**SMALL, "recognition_dropout": 0.0}
    for option in (f"{name}={value}" for name, value in options.items()):
        command += ["--set", option]
    subprocess.run([*command, "--out", str(tmp_path / "one")], check=True, env=ENVIRONMENT)
    together = [str(Path(sys.executable).parent / "torchrun"), "--standalone", "--nproc-per-node", "2", "--no-python"]
    subprocess.run([*together, *command, "--out", str(tmp_path / "two")], check=True, env=ENVIRONMENT)
    one, two = (CogStage.load(tmp_path / name) for name in ("one", "two"))
    for first, second in zip(one.metrics["history"], two.metrics["history"], strict=True):
        for name in ("loss_n", "loss_r", "loss_p") if preset == "paper" else {"L_r", "L_p"} & set(first):
            assert second[name] == pytest.approx(first[name], rel=0.02)
    assert two.metrics["dev"]["may_treat"]["auroc"] == pytest.approx(one.metrics["dev"]["may_treat"]["auroc"], abs=0.05)


def test_view_hides_test_pairs(small: tuple[Graph, Dataset]) -> None:
    view = small[1].for_fitting()
    assert isinstance(view, FittingView)
    with pytest.raises(LeakageError):
        view.pairs("may_treat", "test")
    with pytest.raises(LeakageError):
        view.negatives("may_treat", "test", "hard")


def test_training_runs_on_one_thread_and_gives_the_others_back(
    small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    def threads() -> set[int]:
        return {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"}

    seen = []
    run_round = DefaultTraining.run_round

    def watched(self: DefaultTraining, *given: Any) -> dict[str, float]:
        seen.append((threads(), torch.get_num_threads()))
        return run_round(self, *given)

    monkeypatch.setattr(DefaultTraining, "run_round", watched)
    with threadpool_limits(2, user_api="blas"):
        assert threads() == {2}
        CogStage("may_treat", **QUICK).fit(*small)
        assert threads() == {2}
    assert seen
    assert all(entry == ({1}, 1) for entry in seen)
