"""Training of the published model: what is drawn, how losses are scaled, that it learns, and that it resumes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from benchmarks.planted import planted_communities
from sklearn.metrics import roc_auc_score

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.model.paper import PaperConfig
from cogstage.training.distributed import Processes
from cogstage.training.paper import PaperTraining
from cogstage.training.paper_batches import PaperBatches

CONFIG = PaperConfig(dimension=16, associations=6, negatives=10, pair_batch=64, learning_rate=5e-3)
RELATIONS = 2


def batches_of(small: tuple[Graph, Dataset], **options: object) -> PaperBatches:
    graph, data = small
    return PaperBatches(data.for_fitting(), replace(CONFIG, **options), 0, graph.ppmi())  # type: ignore[arg-type]


def training_of(small: tuple[Graph, Dataset], seed: int = 0, **options: object) -> PaperTraining:
    graph, data = small
    torch.manual_seed(seed)
    return PaperTraining(replace(CONFIG, **options), graph.ppmi(), data.for_fitting(), "may_treat")  # type: ignore[arg-type]


def facts_of(data: Dataset, split: str) -> set[tuple[int, int, int]]:
    facts = data.facts(split)
    return set(zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True))


def joined(data: Dataset, split: str) -> set[tuple[int, int]]:
    """The pairs that a fact joins, in both directions."""
    there = {(h, t) for h, _, t in facts_of(data, split)}
    return there | {(t, h) for h, t in there}


def test_an_epoch_is_one_pass_over_graph_facts_and_pairs(small: tuple[Graph, Dataset]) -> None:
    graph, data = small
    batches, rng = batches_of(small), np.random.default_rng(0)
    nodes, facts, pairs = batches.recall(rng), list(batches.recognition(rng)), batches.pairs(rng)
    assert len(nodes) == len(facts) == len(pairs) == batches.steps > 1
    positive = np.flatnonzero(np.asarray(graph.ppmi().sum(axis=1)).ravel() > 0)
    assert np.sort(np.concatenate(nodes)).tolist() == positive.tolist()
    train = data.pairs("may_treat", "train")
    drawn = [(h, t, y) for b in pairs for h, t, y in zip(b.head, b.tail, b.label, strict=True)]
    assert sorted(drawn) == sorted(zip(train.head, train.tail, train.label, strict=True))
    # every fact once, and its inverse once
    triples = sorted(map(tuple, np.concatenate([batch.triples for batch in facts]).tolist()))
    known = facts_of(data, "train")
    assert triples == sorted([*known, *((t, r + RELATIONS, h) for h, r, t in known)])


def test_batches_of_a_given_size(small: tuple[Graph, Dataset]) -> None:
    batches, rng = batches_of(small, recall_batch=40, recognition_batch=30), np.random.default_rng(0)
    assert {len(nodes) for nodes in batches.recall(rng)} == {40}
    assert {len(batch.triples) for batch in batches.recognition(rng)} == {60}


def test_corrupted_triples_are_no_training_facts_and_know_nothing_else(small: tuple[Graph, Dataset]) -> None:
    _, data = small
    held = joined(data, "train")
    candidates = {x for pair in held for x in pair}
    of_others = (joined(data, "dev") | joined(data, "test")) - held
    refused = unseen = 0
    for epoch in range(4):
        for batch in batches_of(small, negatives=60).recognition(np.random.default_rng(epoch)):
            assert batch.heads.shape == batch.tails.shape == (len(batch.triples), 60)
            assert set(batch.heads.ravel()) | set(batch.tails.ravel()) <= candidates
            for row, (h, _, t) in enumerate(batch.triples.tolist()):
                made = [[(h, x) for x in batch.tails[row].tolist()], [(x, t) for x in batch.heads[row].tolist()]]
                for pairs, allowed in zip(made, batch.allowed[:, row], strict=True):
                    assert allowed.tolist() == [pair not in held for pair in pairs]
                    refused += int((~allowed).sum())
                    unseen += sum(pair in of_others for pair in pairs)
    assert refused < 100  # they are drawn again first
    assert unseen > 0  # dev and test facts are not known while fitting


def test_both_ends_are_corrupted_on_their_own(small: tuple[Graph, Dataset]) -> None:
    batch = next(iter(batches_of(small).recognition(np.random.default_rng(0))))
    assert not np.array_equal(batch.heads, batch.tails)


def test_na_pairs_are_training_negatives_and_random_pairs(small: tuple[Graph, Dataset]) -> None:
    _, data = small
    held = joined(data, "train")
    negatives = set()
    for relation in data.relations:
        pairs = data.pairs(relation, "train")
        negatives |= {
            (h, t) for h, t, y in zip(pairs.head.tolist(), pairs.tail.tolist(), pairs.label, strict=True) if not y
        }
    drawn = [tuple(pair) for b in batches_of(small).recognition(np.random.default_rng(0)) for pair in b.na.tolist()]
    assert 0.8 * len(data.facts("train")) < len(drawn) <= len(data.facts("train"))
    assert not set(drawn) & held
    assert all(i != j for i, j in drawn)
    from_data = [pair in negatives or pair[::-1] in negatives for pair in drawn]
    assert 0.4 < np.mean(from_data) < 0.7
    turned = [pair[::-1] in negatives for pair, known in zip(drawn, from_data, strict=True) if known]
    assert 0.3 < np.mean(turned) < 0.7


@pytest.mark.parametrize("recall_loss", ["sum", "mean"])
def test_recall_loss_is_scaled_as_the_configuration_says(small: tuple[Graph, Dataset], recall_loss: str) -> None:
    training = training_of(small, recall_loss=recall_loss)
    nodes, network = training.batches.nodes[:50], training.network
    ppmi = np.asarray(small[0].ppmi()[nodes].todense())
    with torch.no_grad():
        log_p = (network.term[nodes] @ network.context.T).log_softmax(1).numpy()
    each = -(ppmi / ppmi.sum(1, keepdims=True) * log_p).sum(1)
    wanted = each.sum() if recall_loss == "sum" else each.mean()
    assert training.recall_step(nodes, Processes()) == pytest.approx(float(wanted), rel=1e-5)


def test_gradients_are_clipped(small: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch) -> None:
    training = training_of(small, clip=0.1)
    norms = []
    step = training._adam.step

    def watched() -> None:
        norms.append(
            float(torch.stack([p.grad.norm() for p in training.network.parameters() if p.grad is not None]).norm())
        )
        step()

    monkeypatch.setattr(training._adam, "step", watched)
    training.run_round(0, np.random.default_rng(0))
    assert len(norms) == 3 * training.batches.steps
    assert max(norms) == pytest.approx(0.1, rel=1e-4)


def test_na_learns_its_level(small: tuple[Graph, Dataset]) -> None:
    training = training_of(small, na_pairs=2, learning_rate=1e-2)
    for number in range(40):
        for batch in training.batches.recognition(np.random.default_rng(number)):
            training.recognition_step(batch, Processes())
    batch = next(iter(training.batches.recognition(np.random.default_rng(99))))
    with torch.no_grad():
        triples, na = torch.from_numpy(batch.triples), torch.from_numpy(batch.na)
        facts = training.network.scores(triples[:, 0], triples[:, 2])
        others = training.network.scores(na[:, 0], na[:, 1])
    beaten = (facts[:, :-1] > facts[:, -1:]).gather(1, triples[:, 1:2]).float().mean()
    assert beaten > 0.9
    assert (others[:, :-1] > others[:, -1:]).any(1).float().mean() < 0.4


def auroc(training: PaperTraining, data: Dataset, relation: str) -> float:
    test = data.pairs(relation, "test")
    head, tail = (torch.from_numpy(x.astype(np.int64)) for x in (test.head, test.tail))
    with torch.no_grad():
        return float(roc_auc_score(test.label, training.network(head, tail).logit.numpy()))


@pytest.mark.parametrize("world", ["open", "closed"])
def test_it_learns_what_is_planted(world: str) -> None:
    graph, data = planted_communities(pairs=2000)
    torch.manual_seed(0)
    config = replace(CONFIG, world=world, learning_rate=1e-2)
    training = PaperTraining(config, graph.ppmi(), data.for_fitting(), "may_treat")
    before = auroc(training, data, "may_treat")
    losses = [training.run_round(n, np.random.default_rng([0, n])) for n in range(training.pretraining + 8)]
    logits, label = training.dev_scores()
    wanted = 0.9 if world == "open" else 0.8  # a hundred facts say less than all recalled pairs
    assert roc_auc_score(label, logits) > wanted
    assert auroc(training, data, "may_treat") > max(wanted, before)
    assert losses[-1]["loss_p"] < losses[training.pretraining]["loss_p"]


def test_nothing_is_learned_from_shuffled_labels() -> None:
    graph, data = planted_communities(pairs=2000, shuffled=True)
    torch.manual_seed(0)
    training = PaperTraining(replace(CONFIG, learning_rate=1e-2), graph.ppmi(), data.for_fitting(), "may_treat")
    for number in range(8):
        training.run_round(number, np.random.default_rng([0, number]))
    assert 0.4 < auroc(training, data, "may_treat") < 0.6


@pytest.mark.parametrize("world", ["open", "closed"])
def test_training_resumes_to_the_same_bits(small: tuple[Graph, Dataset], world: str) -> None:
    def rounds(training: PaperTraining, begin: int, end: int) -> None:
        for number in range(begin, end):
            training.run_round(number, np.random.default_rng([0, number]))
            training.dev_scores()

    whole = training_of(small, world=world)
    first = whole.pretraining - 1 if world == "closed" else 0
    rounds(whole, first, first + 3)
    stopped = training_of(small, world=world)
    rounds(stopped, first, first + 1)
    weights, state = {k: v.clone() for k, v in stopped.network.state_dict().items()}, stopped.state()
    resumed = training_of(small, seed=5, world=world)
    resumed.network.load_state_dict(weights)
    resumed.restore(state)
    rounds(resumed, first + 1, first + 3)
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, resumed.network.state_dict()[name]), name


def test_recall_stays_once_the_closed_world_is_ranked(small: tuple[Graph, Dataset]) -> None:
    training = training_of(small, world="closed")
    before = training.network.term.detach().clone(), training.network.context.detach().clone()
    training.run_round(training.pretraining, np.random.default_rng(0))
    assert torch.equal(training.network.term, before[0])
    assert torch.equal(training.network.context, before[1])
    assert training.network.offset is not None
    assert training.network.offset.any()


def test_shares_of_a_batch_add_up_to_it(small: tuple[Graph, Dataset]) -> None:
    """What two processes compute of a step is what one computes alone."""
    rng = np.random.default_rng(0)
    one = training_of(small)
    nodes, facts, pairs = (
        one.batches.recall(rng)[0],
        next(iter(one.batches.recognition(rng))),
        one.batches.pairs(rng)[0],
    )
    for step, batch in (("recall_step", nodes), ("recognition_step", facts), ("pair_step", pairs)):
        halves = []
        for rank in range(2):
            part = Processes(rank, 1)  # no group to talk to: only its share of the batch is that of two
            object.__setattr__(part, "share", lambda size, rank=rank: np.arange(rank, size, 2))
            halves.append(getattr(training_of(small), step)(batch, part))
        assert sum(halves) == pytest.approx(getattr(training_of(small), step)(batch, Processes()), rel=1e-5)


def test_training_may_stop_after_its_minimum(small: tuple[Graph, Dataset]) -> None:
    training = training_of(small, minimum_epochs=20, patience=5)
    assert not training.may_stop(19, 3)
    assert training.may_stop(20, 15)
    assert not training.may_stop(20, 16)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("world", "ajar", "choose one of open, closed"),
        ("recall_loss", "median", "choose one of sum, mean"),
        ("dimension", 0, "dimension=0: must be at least 1"),
        ("pair_batch", 0, "pair_batch=0: must be at least 1"),
        ("recall_batch", -1, "recall_batch=-1: must not be negative"),
        ("learning_rate", 0.0, "learning_rate=0: must be above 0"),
    ],
)
def test_options_out_of_range_are_named(option: str, value: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        PaperConfig(**{option: value})  # type: ignore[arg-type]
