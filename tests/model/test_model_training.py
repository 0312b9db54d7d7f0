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
from training_settings import PAPER, QUICK, SMALL

from cogstage.errors import CogstageError, LeakageError, UsageError
from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset, FittingView, Pairs
from cogstage.model.config import Config
from cogstage.model.decision import Decision
from cogstage.model.network import Network
from cogstage.progress import Silent
from cogstage.training.checkpoint import Checkpoint
from cogstage.training.measures import dev_measures
from cogstage.training.sampling import Sampler
from cogstage.triples import UsualTypes, usual_types

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


def parameters(model: CogStage) -> dict[str, torch.Tensor]:
    return dict(model.fitted.network.named_parameters())


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_same_seed_same_bits(small: tuple[Graph, Dataset], preset: str) -> None:
    options = TWO_EPOCHS if preset == "default" else {**PAPER, "epochs": 1}
    first, second = (CogStage("may_treat", preset=preset, seed=3, **options).fit(*small) for _ in range(2))
    for name, value in parameters(first).items():
        assert torch.equal(value, parameters(second)[name]), name


@pytest.mark.slow
def test_only_the_fitting_view_is_read(small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    graph, dataset = small

    def forbidden(*_: object) -> None:
        raise LeakageError("asked for more than the fitting view")

    monkeypatch.setattr(Dataset, "pairs", forbidden)
    monkeypatch.setattr(Dataset, "facts", forbidden)
    one, other = (CogStage("all", **QUICK).fit(graph, data) for data in (dataset, dataset.for_fitting()))
    assert one.metrics["dev"] == other.metrics["dev"]


def sampler_of(small: tuple[Graph, Dataset], **options: int) -> Sampler:
    graph, dataset = small
    usual = usual_types(graph.vocabulary.type, dataset.facts("train"), len(dataset.relations))
    config = Config(**options)  # type: ignore[arg-type]
    return Sampler(dataset.for_fitting(), config, graph.n_nodes, [0, 1], usual)


def ends(pairs: Pairs) -> tuple[list[int], list[int]]:
    return pairs.head.tolist(), pairs.tail.tolist()


def joined(dataset: Dataset, split: str) -> set[tuple[int, int]]:
    facts = dataset.facts(split)
    there = set(zip(facts.head.tolist(), facts.tail.tolist(), strict=True))
    return there | {(b, a) for a, b in there}


def test_negatives_avoid_training_facts_and_know_no_others(small: tuple[Graph, Dataset]) -> None:
    sampler, rng = sampler_of(small), np.random.default_rng(0)
    known = joined(small[1], "train")
    elsewhere = (joined(small[1], "dev") | joined(small[1], "test")) - known
    met = 0
    for fold in (-1, 0, 3):
        for _ in range(60):
            batch = sampler.triple_batch(rng, fold)
            elsewhere_held = (batch.weight == 1) & (batch.label == 0)  # pairs that hold other relations
            drawn = set(map(tuple, batch.triples[(batch.label == 0) & ~elsewhere_held][:, [0, 2]].tolist()))
            assert not drawn & known
            assert all(head != tail for head, tail in drawn)
            met += len(drawn & elsewhere)
            facts = set(map(tuple, batch.triples[batch.label == 1][:, [0, 2]].tolist()))
            assert facts <= known
    assert met > 0  # a user knows no dev or test facts, so neither does the sampler


def test_typed_negatives_take_heads_from_heads_and_tails_from_tails(small: tuple[Graph, Dataset]) -> None:
    sampler, facts = sampler_of(small), small[1].facts("train")
    batch = sampler.triple_batch(np.random.default_rng(0))
    count, fresh = Config().recognition_batch, Config().fresh_negatives
    typed = batch.weight == np.float32(1 / (1 + fresh))
    typed &= np.arange(len(typed)) >= 2 * count  # behind facts and training negatives
    assert typed.sum() > 2 * count
    for head, relation, tail in batch.triples[typed]:
        same = facts.relation == relation
        assert head in facts.head[same]
        assert tail in facts.tail[same]


def test_facts_of_other_relations_are_negatives(small: tuple[Graph, Dataset]) -> None:
    """In L_r and L_p: pairs of a relation's own ends that hold another relation and not this one."""
    dataset, sampler, rng = small[1], sampler_of(small), np.random.default_rng(0)
    facts = dataset.facts("train")
    usual = UsualTypes(small[0].vocabulary.type, facts, len(dataset.relations))
    every = set(zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True))

    def check(head: int, relation: int, tail: int) -> None:
        assert (head, relation, tail) not in every
        assert any((head, k, tail) in every or (tail, k, head) in every for k in range(len(dataset.relations)))
        assert usual.allowed(np.array([head]), np.array([tail]))[0, relation]

    for fold in (-1, 0, 2):
        hidden = sampler.train[sampler.train.fold == fold]
        away = set(zip(hidden.head.tolist(), hidden.tail.tolist(), strict=True))
        met = 0
        for _ in range(20):
            batch = sampler.triple_batch(rng, fold)
            others = batch.triples[(batch.weight == 1) & (batch.label == 0)]
            met += len(others)
            for triple in others.tolist():
                check(*triple)
                assert fold < 0 or (triple[0], triple[2]) not in away
        assert 0 < met <= 20 * 0.1 * Config().recognition_batch + 20
    given = {
        (head, number, tail)
        for number, relation in enumerate(dataset.relations)
        for head, tail in zip(*ends(dataset.pairs(relation, "train")), strict=True)
    }
    train = sampler.train
    rows = zip(train.head.tolist(), train.target.tolist(), train.tail.tolist(), strict=True)
    added = [row for row in rows if row not in given]
    assert added
    assert len(added) <= 0.1 * train.label.sum() + len(dataset.relations)
    for triple in added:
        check(*triple)
    plain = sampler_of(small, other_facts=0)
    assert len(plain.train) == len(train) - len(added)
    batch = plain.triple_batch(rng)
    assert batch.label[batch.weight == 1].all()


def test_weights_of_facts_and_negatives(small: tuple[Graph, Dataset]) -> None:
    batch, count = sampler_of(small).triple_batch(np.random.default_rng(0)), Config().recognition_batch
    assert batch.label.sum() == count
    assert (batch.weight[batch.label == 1] == 1).all()
    assert batch.weight[batch.label == 0].sum() <= count * (1 + 0.1 + 0.25) + 1
    assert np.isclose(batch.weight[-1], 0.25)


def test_folds_hide_their_pairs(small: tuple[Graph, Dataset]) -> None:
    sampler, rng = sampler_of(small), np.random.default_rng(0)
    for batch in sampler.pair_batches(rng):
        assert len(set(batch.fold.tolist())) == len(set(batch.target.tolist())) == 1
        own = set(zip(batch.head.tolist(), batch.tail.tolist(), strict=True))
        seen = sampler.triple_batch(rng, int(batch.fold[0])).triples[:, [0, 2]]
        assert not own & set(map(tuple, seen.tolist()))


def test_stage_3_asks_the_recognition_that_has_not_seen_the_fold(
    small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int | None, bool]] = []
    forward = Network.forward

    dev = small[1].pairs("may_treat", "dev")
    of_dev = set(zip(dev.head.tolist(), dev.tail.tolist(), strict=True))

    def watched(self: Network, head, tail, target, ready, knowledge, hidden=None):  # type: ignore[no-untyped-def]
        right = ready.recognition is (self.recognition if hidden is None else self.folds[hidden])
        right &= (hidden is None) == (set(zip(head.tolist(), tail.tolist(), strict=True)) <= of_dev)
        asked.append((hidden, right))
        return forward(self, head, tail, target, ready, knowledge, hidden)

    monkeypatch.setattr(Network, "forward", watched)
    CogStage("may_treat", **QUICK).fit(*small)
    assert {hidden for hidden, _ in asked} == {None, 0, 1}
    assert all(right for _, right in asked)


def test_negatives_lack_as_many_facts_as_positives(small: tuple[Graph, Dataset]) -> None:
    """A positive's own fold hides a fact of its head and one of its tail; so does that of a negative where it can."""
    sampler = sampler_of(small)
    facts, folds, train = small[1].facts("train"), sampler.fact_folds, sampler.train
    assert folds is not None
    pairs, times = np.unique(np.stack([train.head, train.tail], 1), axis=0, return_counts=True)
    twice = set(map(tuple, pairs[times > 1].tolist()))  # a negative of two relations has one fold
    assert (train.fold >= 0).all()
    for number in np.flatnonzero(train.label == 0).tolist():
        if (train.head[number], train.tail[number]) in twice:
            continue
        same = facts.relation == train.target[number]
        of_head = set(folds[same & (facts.head == train.head[number])].tolist())
        of_tail = set(folds[same & (facts.tail == train.tail[number])].tolist())
        wanted = of_head & of_tail or of_head | of_tail
        assert not wanted or train.fold[number] in wanted


def test_small_relations_get_their_steps(small: tuple[Graph, Dataset]) -> None:
    sampler = sampler_of(small, pair_batch=16)
    sizes = np.bincount(sampler.train.target)
    least = 3 * int(sizes.max()) / 16
    batches = sampler.pair_batches(np.random.default_rng(0), least)
    for target, size in enumerate(sizes.tolist()):
        drawn = np.concatenate([batch.head for batch in batches if batch.target[0] == target])
        assert len(drawn) % size == 0
        assert len(drawn) >= 16 * least
    assert len(np.concatenate([b.head for b in sampler.pair_batches(np.random.default_rng(0))])) == sizes.sum()


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
import cogstage.training.staged as staged
staged.BLOCK = 10
graph, data, out, resume = sys.argv[1:5]
options = dict(dimension=16, associations=6, tower=16, recall_passes=5, recognition_passes=10)
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
    for name, value in parameters(one).items():
        assert torch.equal(value, parameters(other)[name]), name
    assert one.metrics["dev"] == other.metrics["dev"]
    assert one.calibration == other.calibration


@pytest.mark.slow
def test_resume_without_a_checkpoint_begins_as_any_run(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    """A command that may be restarted says ``--resume`` from the first: it must not miss the SVD start."""
    one = CogStage("may_treat", **QUICK).fit(*small)
    other = CogStage("may_treat", **QUICK).fit(*small, checkpoint=tmp_path / "state", resume=True)
    assert torch.equal(parameters(one)["recall.term"], parameters(other)["recall.term"])
    assert one.metrics["dev"] == other.metrics["dev"]


def test_checkpoints_copy_no_weights(
    small: tuple[Graph, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is the weights themselves: a copy of them would be the peak of a training's memory."""
    written = []
    monkeypatch.setattr(Checkpoint, "save", lambda _, tensors, info: written.append(dict(tensors)))
    model = CogStage("may_treat", **QUICK).fit(*small, checkpoint=tmp_path / "state", checkpoint_every=0.0)
    assert len(written) > 1
    for tensors in written:
        for name, value in parameters(model).items():
            assert tensors[f"network.{name}"].data_ptr() == value.data_ptr(), name


def test_resume_refuses_other_settings(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    CogStage("may_treat", **QUICK).fit(*small, checkpoint=tmp_path / "state", checkpoint_every=0.0)
    with pytest.raises(UsageError, match=r"other settings \(clip=0\.3\)"):
        CogStage("may_treat", **QUICK, clip=0.3).fit(*small, checkpoint=tmp_path / "state", resume=True)


def test_time_limit_gives_a_model(small: tuple[Graph, Dataset]) -> None:
    model = CogStage("may_treat", **SMALL).fit(*small, time_limit=1e-6)
    assert model.metrics["stopped"] == "time limit"
    assert np.isfinite(model.probabilities([0], [1], "may_treat")).all()


@pytest.mark.slow
def test_numbers_that_explode_stop_training(
    small: tuple[Graph, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    forward = Decision.forward

    def broken(self: Decision, *arguments: Any) -> object:
        if torch.is_grad_enabled():
            calls.append(1)
        if len(calls) == 3:
            with torch.no_grad():
                self.bias.fill_(float("nan"))
        return forward(self, *arguments)

    monkeypatch.setattr(Decision, "forward", broken)
    state = tmp_path / "state"
    with pytest.raises(CogstageError, match=r"L_p is no longer a number in round .* last good checkpoint is in"):
        CogStage("may_treat", **TWO_EPOCHS).fit(*small, checkpoint=state, checkpoint_every=0.0)
    monkeypatch.undo()
    model = CogStage("may_treat", **TWO_EPOCHS).fit(*small, checkpoint=state, resume=True)
    assert all(torch.isfinite(p).all() for p in parameters(model).values())


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
    assert parameters(model)["decision.value"].shape == (2, 4)
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
        for name in ("loss_n", "loss_r", "loss_p") if preset == "paper" else {"L_n", "L_r", "L_p"} & set(first):
            assert second[name] == pytest.approx(first[name], rel=0.02)
    assert two.metrics["dev"]["may_treat"]["auroc"] == pytest.approx(one.metrics["dev"]["may_treat"]["auroc"], abs=0.05)


def test_view_hides_test_pairs(small: tuple[Graph, Dataset]) -> None:
    view = small[1].for_fitting()
    assert isinstance(view, FittingView)
    with pytest.raises(LeakageError):
        view.pairs("may_treat", "test")
