"""What baselines learn from: dev pairs stop them, REPEL reads facts, LINE draws noise and SVD weighs as published."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from benchmarks.planted import Plan, planted, planted_communities, two_communities

from cogstage.baselines import resolver
from cogstage.baselines.classifier import Training
from cogstage.baselines.edge_weights import edge_matrix
from cogstage.baselines.encoders.line import EdgeTraining, LineEncoder
from cogstage.baselines.encoders.repel import RepelEncoder
from cogstage.baselines.encoders.svd import SvdEncoder
from cogstage.baselines.fresh import FreshMethod, FreshTraining
from cogstage.knowledge.dataset import Dataset, Pairs
from cogstage.training.sampling import TripleBatch
from cogstage.triples import Triples


def turned(pairs: Pairs) -> Pairs:
    """The same pairs with every label turned round."""
    return dataclasses.replace(pairs, label=(1 - pairs.label).astype(np.int8))


@pytest.mark.parametrize("name", resolver.SCORERS)
def test_a_scorer_stops_by_the_dev_pairs(name: str) -> None:
    """Where dev says the opposite of train, every pass makes the dev loss worse: the first pass is kept."""
    graph, data = planted_communities(1000)
    vectors = SvdEncoder(dimension=8).encode(graph, data.for_fitting(), 0)
    train, dev, test = (data.pairs("may_treat", split) for split in ("train", "dev", "test"))

    def fitted(dev: Pairs, epochs: int) -> np.ndarray:
        training = Training(rate=0.01, weight_decays=(0.001,), epochs=epochs, patience=3)
        scorer = resolver.resolve_scorer(name, {"training": training}).fit(vectors, train, dev, 0)
        return scorer.scores(test.head, test.tail)

    once = fitted(turned(train), 1)
    assert np.array_equal(fitted(turned(train), 12), once)
    assert not np.allclose(fitted(dev, 12), once, atol=1e-3)


def test_a_scorer_keeps_the_weight_decay_that_dev_likes() -> None:
    """Train wants weights, dev (turned round) wants none of them: the strong decay must be chosen."""
    graph, data = planted_communities(1000)
    vectors = SvdEncoder(dimension=8).encode(graph, data.for_fitting(), 0)
    train, dev = data.pairs("may_treat", "train"), data.pairs("may_treat", "dev")

    def logits(dev: Pairs) -> float:
        training = Training(rate=0.01, weight_decays=(0.0, 100.0), epochs=5, patience=5)
        scorer = resolver.resolve_scorer("distmult", {"training": training}).fit(vectors, train, dev, 0)
        found = scorer.scores(train.head, train.tail)
        return float(np.abs(np.log(found / (1 - found))).mean())

    assert logits(turned(train)) < 0.1 < logits(dev)


def test_the_fresh_form_stops_by_the_dev_pairs() -> None:
    graph, data = planted_communities(1000)
    pairs = {**data._pairs, ("may_treat", "dev"): turned(data.pairs("may_treat", "train"))}
    other = dataclasses.replace(data, _pairs=pairs)
    test = data.pairs("may_treat", "test")

    def fitted(data: Dataset, epochs: int) -> np.ndarray:
        method = resolver.resolve("svd+rescal+fresh", {"dimension": 8}, {"training": Training(rate=0.003)})
        method.training = FreshTraining(weight_decays=(0.01,), dropouts=(0.0,), epochs=epochs, patience=3)
        return method.fit(graph, data.for_fitting(), "all", 0).scores(test.head, test.tail, "may_treat")

    assert not np.allclose(fitted(data, 10), fitted(data, 1), atol=1e-3)
    stopped = fitted(other, 10)
    assert any(np.array_equal(stopped, fitted(other, epochs)) for epochs in (1, 2, 3))


def test_repel_puts_facts_beside_each_other() -> None:
    """Facts that the graph says nothing of: with one translation, a fact's tail lies nearer than another's."""
    graph, _ = two_communities(size=60, seed=3)
    rng = np.random.default_rng(0)
    head, tail = rng.integers(0, 60, 150).astype(np.int32), rng.integers(60, 120, 150).astype(np.int32)
    data = planted_communities(100)[1]
    facts = Triples(head, np.zeros(150, np.int16), tail)
    view = dataclasses.replace(data, _facts={**data._facts, "train": facts}).for_fitting()

    def told_apart(vectors: np.ndarray) -> float:
        step = (vectors[tail] - vectors[head]).mean(axis=0)
        others = rng.permutation(tail)
        near, far = (np.linalg.norm(vectors[head] + step - vectors[end], axis=1) for end in (tail, others))
        return float(np.mean((near < far)[tail != others]))

    options = {"dimension": 16, "epochs": 20.0}
    assert told_apart(RepelEncoder(**options, fact_epochs=60.0).encode(graph, view, 0)) > 0.8
    assert abs(told_apart(RepelEncoder(**options, fact_epochs=0.0).encode(graph, view, 0)) - 0.5) < 0.15
    assert abs(told_apart(LineEncoder(**options).encode(graph, view, 0)) - 0.5) < 0.15


def test_lines_noise_is_degree_to_the_three_quarters() -> None:
    graph, _ = two_communities(size=40, seed=1)
    weights = edge_matrix(graph, "ppmi")
    stay, other = EdgeTraining.start(weights, 4, 5, 0).noise
    drawn = stay.astype(np.float64)
    np.add.at(drawn, other, 1.0 - stay.astype(np.float64))
    degree = np.asarray(weights.sum(axis=1)).ravel()
    assert np.allclose(drawn / drawn.sum(), degree**0.75 / (degree**0.75).sum(), atol=1e-6)


@pytest.mark.parametrize("power", [0.5, 1.0, 0.0])
def test_svd_weighs_by_the_root_of_the_singular_values(power: float) -> None:
    graph, _ = two_communities(size=30, seed=1)
    exact = np.linalg.svd(graph.ppmi().toarray())
    view = planted_communities(100)[1].for_fitting()
    options = {} if power == 0.5 else {"power": power}  # the default is the square root
    vectors = SvdEncoder(dimension=4, iterations=30, **options).encode(graph, view, 0)
    assert np.allclose(np.linalg.norm(vectors, axis=0), exact.S[:4] ** power, rtol=1e-3)
    gram = (exact.U[:, :2] * exact.S[:2] ** (2 * power)) @ exact.U[:, :2].T
    assert np.allclose(vectors[:, :2] @ vectors[:, :2].T, gram, atol=1e-2)


def test_the_fresh_form_learns_from_the_batches_of_recognition(monkeypatch: pytest.MonkeyPatch) -> None:
    """Typed negatives, co-occurring pairs and facts of other relations; the weight is that of one score."""
    graph, data = planted(Plan(relations=3))
    batches: list[TripleBatch] = []
    loss = FreshMethod._loss

    def recorded(self, modules, batch, dropout):  # type: ignore[no-untyped-def]
        batches.append(batch)
        return loss(self, modules, batch, dropout)

    monkeypatch.setattr(FreshMethod, "_loss", recorded)
    method = resolver.resolve("svd+distmult+fresh", {"dimension": 8}, {"training": Training(rate=0.01)})
    method.training = FreshTraining(batch=64, epochs=1, weight_decays=(0.01,), dropouts=(0.0,))
    method.fit(graph, data.for_fitting(), "all", 0)
    facts = data.facts("train")
    known = set(zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True))
    pairs = {frozenset((h, t)) for h, _, t in known}
    edges = {frozenset(pair) for pair in zip(graph.source.tolist(), graph.target.tolist(), strict=True)}
    triples, label, weight = (
        np.concatenate([getattr(batch, name) for batch in batches]) for name in ("triples", "label", "weight")
    )
    assert {tuple(row) for row in triples[label == 1].tolist()} == known
    negatives = [tuple(row) for row in triples[label == 0].tolist()]
    assert not known & set(negatives)
    of_others = [frozenset((h, t)) in pairs for h, _, t in negatives]
    assert sum(of_others) > 0.5 * len(known)
    heavy = [w == 1 for w in weight[label == 0]]
    assert all(one for one, other in zip(heavy, of_others, strict=True) if other)
    together = [pair for pair, one, other in zip(negatives, heavy, of_others, strict=True) if one and not other]
    assert len(together) > 0.05 * len(known)
    assert all(frozenset((h, t)) in edges for h, _, t in together)
