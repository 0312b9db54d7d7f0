"""Training learns what is planted, does not cheat, is deterministic, resumes to the same bits, says when it fails."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks.planted import Plan, planted
from save_planted import save_both

from cogstage.errors import CogstageError, LeakageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset, FittingView
from cogstage.model.measures import dev_measures
from cogstage.progress import Silent
from cogstage.rationale.cogstage import CogStage
from conftest import JOINT, SMALL

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}


def auroc(model: CogStage, dataset: Dataset, relation: str = "may_treat") -> float:
    test = dataset.pairs(relation, "test")
    return dev_measures(model.logits(test.head, test.tail, relation), test.label)["auroc"]


@pytest.mark.slow
def test_learns_what_is_planted() -> None:
    graph, dataset = planted(Plan(facts=600))
    model = CogStage("may_treat", dimension=32, associations=8, tower=32).fit(graph, dataset)
    assert auroc(model, dataset) >= 0.9


@pytest.mark.slow
def test_does_not_cheat() -> None:
    """Facts and negatives drawn alike: whatever is learned of the training pairs says nothing about new ones."""
    graph, dataset = planted(Plan(facts=900, shuffled=True))
    model = CogStage("may_treat", dimension=16, associations=8, tower=16).fit(graph, dataset)
    assert abs(auroc(model, dataset) - 0.5) < 0.12  # 270 test pairs: a standard error of 0.035


def test_paper_preset_learns(small: tuple[Graph, Dataset]) -> None:
    model = CogStage("may_treat", preset="paper", **JOINT, learning_rate=0.01)
    model.fit(*small)
    losses = [line["loss_p"] for line in model.metrics["history"]]
    assert len(losses) == 3
    assert losses[-1] < losses[0]
    assert all(line["loss_n"] > 0 and line["loss_r"] > 0 for line in model.metrics["history"])


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_same_seed_same_bits(small: tuple[Graph, Dataset], preset: str) -> None:
    options = SMALL if preset == "default" else {**JOINT, "epochs": 1}
    first, second = (CogStage("may_treat", preset=preset, seed=3, **options).fit(*small) for _ in range(2))
    for (name, one), (_, other) in zip(
        first.network.named_parameters(), second.network.named_parameters(), strict=True
    ):
        assert torch.equal(one, other), name


def test_only_the_fitting_view_is_read(small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    graph, dataset = small

    def forbidden(*_: object) -> None:
        raise LeakageError("asked for more than the fitting view")

    monkeypatch.setattr(Dataset, "pairs", forbidden)
    monkeypatch.setattr(Dataset, "facts", forbidden)
    CogStage("all", **SMALL, epochs=1, least_steps=0).fit(graph, dataset)


def test_no_held_out_pair_is_fitted_on_and_no_training_fact_is_a_negative(small: tuple[Graph, Dataset]) -> None:
    """Positives of L_r are training facts alone, and no negative is one, in either direction."""
    from cogstage.model.config import PRESETS
    from cogstage.model.sampling import Sampler

    def both_ways(split: str) -> set[tuple[int, int]]:
        facts = dataset.facts(split)
        pairs = set(zip(facts.head.tolist(), facts.tail.tolist(), strict=True))
        return pairs | {(b, a) for a, b in pairs}

    graph, dataset = small
    train, held = both_ways("train"), both_ways("dev") | both_ways("test")
    sampler = Sampler(dataset.for_fitting(), PRESETS["default"].replace(negatives=20), graph.n_nodes, [0, 1])
    rng = np.random.default_rng(0)
    for fold in (-1, 0, 3):
        for _ in range(5):
            logistic = sampler.logistic_batch(rng, fold)
            batch = sampler.recognition_batch(rng, fold)
            n = batch.heads.shape[1]
            tails = np.stack([np.repeat(batch.triples[:, 0], n), batch.tails.ravel()], 1)[batch.allowed[0].ravel()]
            heads = np.stack([batch.heads.ravel(), np.repeat(batch.triples[:, 2], n)], 1)[batch.allowed[1].ravel()]
            ends = logistic.triples[:, [0, 2]]
            for pairs in (ends[logistic.label == 1], batch.triples[:, [0, 2]]):
                assert not held & set(map(tuple, pairs.tolist()))
            for pairs in (ends[logistic.label == 0], tails, heads, batch.na):
                assert not train & set(map(tuple, pairs.tolist()))


def test_folds_hide_their_pairs(small: tuple[Graph, Dataset]) -> None:
    from cogstage.model.config import PRESETS
    from cogstage.model.sampling import Sampler

    graph, dataset = small
    sampler = Sampler(dataset.for_fitting(), PRESETS["default"], graph.n_nodes, [0, 1])
    rng = np.random.default_rng(0)
    for batch in sampler.pair_batches(rng):
        assert len(set(batch.fold.tolist())) == len(set(batch.target.tolist())) == 1
        own = set(zip(batch.head.tolist(), batch.tail.tolist(), strict=True))
        seen = sampler.logistic_batch(rng, int(batch.fold[0])).triples[:, [0, 2]]
        assert not own & set(map(tuple, seen.tolist()))


def test_negatives_lack_as_many_facts_as_positives(small: tuple[Graph, Dataset]) -> None:
    """A positive's own fold hides a fact of its head and one of its tail; so does that of a negative where it can."""
    from cogstage.model.config import PRESETS
    from cogstage.model.sampling import Sampler

    graph, dataset = small
    sampler = Sampler(dataset.for_fitting(), PRESETS["default"], graph.n_nodes, [0, 1])
    facts, folds, train = dataset.facts("train"), sampler.fact_folds, sampler.train
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
    from cogstage.model.config import PRESETS
    from cogstage.model.sampling import Sampler

    graph, dataset = small
    config = PRESETS["default"].replace(pair_batch=16)
    sampler = Sampler(dataset.for_fitting(), config, graph.n_nodes, [0, 1])
    sizes = np.bincount(sampler.train.target)
    least = 3 * int(sizes.max()) / 16
    batches = sampler.pair_batches(np.random.default_rng(0), least)
    for target, size in enumerate(sizes.tolist()):
        drawn = np.concatenate([batch.head for batch in batches if batch.target[0] == target])
        assert len(drawn) % size == 0
        assert len(drawn) >= 16 * least
    assert len(np.concatenate([b.head for b in sampler.pair_batches(np.random.default_rng(0))])) == sizes.sum()


@pytest.mark.slow
def test_killed_run_resumes_to_the_same_result(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    graph, data = save_both(*small, tmp_path)
    script = """
import sys
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.cogstage import CogStage
import cogstage.model.training as training
training.BLOCK = 10
graph, data, out, resume = sys.argv[1:5]
options = dict(dimension=16, associations=6, tower=16, pretrain_recall=5, pretrain_recognition=10)
model = CogStage("may_treat", **options, epochs=8, least_steps=0)
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
    for (name, first), (_, second) in zip(
        one.network.named_parameters(), other.network.named_parameters(), strict=True
    ):
        assert torch.equal(first, second), name
    assert one.metrics["dev"] == other.metrics["dev"]
    assert one.calibration == other.calibration


def test_resume_without_a_checkpoint_begins_as_any_run(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    """A command that may be restarted says ``--resume`` from the first: it must not miss the SVD start."""
    one = CogStage("may_treat", **SMALL, epochs=1).fit(*small)
    other = CogStage("may_treat", **SMALL, epochs=1).fit(*small, checkpoint=tmp_path / "state", resume=True)
    assert torch.equal(one.network.recall.term, other.network.recall.term)
    assert one.metrics["dev"] == other.metrics["dev"]


def test_resume_refuses_other_settings(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    CogStage("may_treat", **SMALL, epochs=1).fit(*small, checkpoint=tmp_path / "state", checkpoint_every=0.0)
    with pytest.raises(UsageError, match=r"other settings \(dropout=0\.3\)"):
        CogStage("may_treat", **SMALL, epochs=1, dropout=0.3).fit(*small, checkpoint=tmp_path / "state", resume=True)


def test_time_limit_gives_a_model(small: tuple[Graph, Dataset]) -> None:
    model = CogStage("may_treat", **SMALL).fit(*small, time_limit=1e-6)
    assert model.metrics["stopped"] == "time limit"
    assert np.isfinite(model.probabilities([0], [1], "may_treat")).all()


def test_numbers_that_explode_stop_training(
    small: tuple[Graph, Dataset], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from cogstage.model.cogstage import Network

    calls = []
    forward = Network.forward

    def broken(self: Network, *arguments: object) -> object:
        calls.append(1)
        if len(calls) == 12:
            with torch.no_grad():
                self.decision.v.fill_(float("nan"))
        return forward(self, *arguments)

    monkeypatch.setattr(Network, "forward", broken)
    state = tmp_path / "state"
    with pytest.raises(CogstageError, match=r"L_p is no longer a number in round .* last good checkpoint is kept"):
        CogStage("may_treat", **SMALL).fit(*small, checkpoint=state, checkpoint_every=0.0)
    monkeypatch.undo()
    model = CogStage("may_treat", **SMALL).fit(*small, checkpoint=state, resume=True)
    assert all(torch.isfinite(p).all() for p in model.network.parameters())


def test_trace_and_progress(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    said: list[str] = []

    class Listening(Silent):
        def done(self, note: str = "") -> None:
            said.append(note)

    model = CogStage("may_treat", **SMALL, epochs=2, least_steps=0)
    model.fit(*small, trace=tmp_path / "deep" / "trace.jsonl", progress=Listening())
    lines = [json.loads(line) for line in (tmp_path / "deep" / "trace.jsonl").read_text().splitlines()]
    epochs = [line for line in lines if line["stage"] == "epoch"]
    assert [line["epoch"] for line in epochs] == [1, 2]
    assert all(0 <= line["dev_f1"] <= 1 and line["loss_p"] > 0 for line in epochs)
    assert any("dev F1" in note for note in said)


def test_tensorboard_files(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="tensorboard is an optional dependency")
    CogStage("may_treat", **SMALL, epochs=1, least_steps=0).fit(*small, tensorboard=tmp_path / "board")
    assert list((tmp_path / "board").glob("events.*"))


def test_all_relations_share_stages(small: tuple[Graph, Dataset]) -> None:
    graph, dataset = small
    model = CogStage("all", **SMALL, epochs=1, least_steps=0).fit(graph, dataset)
    assert model.relations == dataset.relations
    assert model.network.decision.v.shape[0] == 2
    assert set(model.calibration) == set(dataset.relations)
    for number, relation in enumerate(dataset.relations):
        facts = dataset.facts("train")
        chosen = np.flatnonzero(facts.relation == number)[:20]
        found = model.assumptions(facts.head[chosen], facts.tail[chosen], relation)
        own = found.recalled.forward()
        assert not found.relation_probability[own][:, number].any()


@pytest.mark.parametrize("preset", ["default", "paper"])
def test_closed_world_trains(small: tuple[Graph, Dataset], preset: str) -> None:
    graph, dataset = small
    options = SMALL if preset == "default" else {**JOINT, "epochs": 1, "pretrain_recall": 2}
    model = CogStage("may_treat", world="closed", preset=preset, assumptions=20, **options).fit(graph, dataset)
    test = dataset.pairs("may_treat", "test")
    found = model.assumptions(test.head, test.tail, "may_treat")
    assert found.attention.shape == (len(test), 20)
    known = model.evidence.is_fact(
        found.pair_head.numpy().ravel(),
        found.relation_probability.argmax(2).numpy().ravel(),
        found.pair_tail.numpy().ravel(),
    )
    assert known.all()


@pytest.mark.slow
def test_two_processes_train_alike(small: tuple[Graph, Dataset], tmp_path: Path) -> None:
    graph, data = save_both(*small, tmp_path)
    command = [str(Path(sys.executable).parent / "cogstage"), "train", "--graph", str(graph), "--dataset", str(data)]
    command += ["--relation", "may_treat", "--preset", "paper"]
    for option in (
        "dimension=16",
        "associations=6",
        "epochs=3",
        "negatives=10",
        "learning_rate=0.01",
        "optimizer=lazy_adam",
    ):
        command += ["--set", option]
    subprocess.run([*command, "--out", str(tmp_path / "one")], check=True, env=ENVIRONMENT)
    together = [str(Path(sys.executable).parent / "torchrun"), "--standalone", "--nproc-per-node", "2", "--no-python"]
    subprocess.run([*together, *command, "--out", str(tmp_path / "two")], check=True, env=ENVIRONMENT)
    one, two = (CogStage.load(tmp_path / name) for name in ("one", "two"))
    for first, second in zip(one.metrics["history"], two.metrics["history"], strict=True):
        for name in ("loss_n", "loss_r", "loss_p"):
            assert second[name] == pytest.approx(first[name], rel=0.02)
    assert two.metrics["dev"]["may_treat"]["auroc"] == pytest.approx(one.metrics["dev"]["may_treat"]["auroc"], abs=0.05)


def test_view_hides_test_pairs(small: tuple[Graph, Dataset]) -> None:
    view = small[1].for_fitting()
    assert isinstance(view, FittingView)
    with pytest.raises(LeakageError):
        view.pairs("may_treat", "test")


def test_the_demand_on_the_top_five_grows_with_what_is_known(small: tuple[Graph, Dataset]) -> None:
    """Pair by pair: remove the five with the highest attention times best p, take the softmax again, compare."""
    model = CogStage("may_treat", **SMALL, epochs=1).fit(*small)
    pairs, network = small[1].pairs("may_treat", "dev"), model.network
    found = model.assumptions(pairs.head, pairs.tail, "may_treat")
    label = torch.from_numpy(pairs.label).float()
    expected, bits = 0.0, 0.0
    for row in range(len(pairs)):
        p = 1 / (1 + math.exp(-float(found.logit[row])))
        bits -= math.log2(p if pairs.label[row] else 1 - p) / len(pairs)
        if not pairs.label[row]:
            continue
        score = found.attention[row] * found.best_probability[row]
        left = [i for i in range(len(score)) if i not in score.topk(5).indices.tolist() and found.valid[row, i]]
        power = found.gate[row, left].softmax(0) if left else torch.zeros(0)
        without = float((power * found.value[row, left]).sum() + found.bias.detach())
        expected += max(0.0, network.config.comprehensiveness_goal - p + 1 / (1 + math.exp(-without)))
    factor = 2 * network.config.comprehensiveness
    assert 0 < bits < 1
    assert float(network.erasure_loss(found, label)) == pytest.approx(factor * (1 - bits) * expected, rel=1e-4)
    wrong = network.erasure_loss(found, 1 - label)  # decided worse than by chance: nothing is asked
    assert float(wrong) == 0.0
