"""ρ, the vectors of stage 1 that know the training facts, against loops and a full SVD."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import Dataset
from cogstage.model.config import Config
from cogstage.model.recall import PpmiWithFacts, fact_vectors
from cogstage.training.fitting import prepare

TERMS, RELATIONS, WEIGHT = 9, 2, 2.0


def graph_of(seed: int) -> Graph:
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(1, 9, (TERMS, TERMS)) * (rng.random((TERMS, TERMS)) < 0.6), 1)
    source, target = np.nonzero(upper)
    counts = upper[source, target].astype(np.int64)
    vocabulary = Vocabulary.from_terms([f"t{i}" for i in range(TERMS)])
    return Graph(vocabulary, source.astype(np.int32), target.astype(np.int32), counts)


def literal(ppmi: np.ndarray, facts: list[tuple[int, int, int]], weight: float = WEIGHT) -> np.ndarray:
    """A = [P | λ·F] with loops; F has a column for every (k, j), filled or not."""
    terms = len(ppmi)
    table = np.zeros((terms, 2 * RELATIONS * terms))
    both = {(h, k, t) for h, k, t in facts} | {(t, k + RELATIONS, h) for h, k, t in facts}
    for i, k, j in both:
        column = sum(1 for _, other_k, other_j in both if (other_k, other_j) == (k, j))
        table[i, k * terms + j] = 1 / math.sqrt(column)
    parts = []
    many = (table > 0).sum(axis=1, keepdims=True)
    for part, scale in ((ppmi, 1.0), (table, weight * np.sqrt(many / (many + 4)))):
        length = np.sqrt((part**2).sum(axis=1, keepdims=True))
        parts.append(scale * part / np.where(length > 0, length, 1.0))
    return np.concatenate(parts, axis=1)


fact = st.tuples(st.integers(0, TERMS - 2), st.integers(0, RELATIONS - 1), st.integers(0, TERMS - 2))


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 50), st.lists(fact.filter(lambda f: f[0] != f[2]), min_size=1, max_size=12, unique=True))
def test_products_and_vectors_are_those_of_the_literal_matrix(seed: int, facts: list[tuple[int, int, int]]) -> None:
    graph = graph_of(seed)
    matrix, expected = (
        PpmiWithFacts.from_facts(graph.lazy_ppmi(), np.array(facts), RELATIONS, WEIGHT),
        literal(graph.ppmi().toarray(), facts),
    )
    filled = np.concatenate([np.arange(TERMS), TERMS + matrix.columns])
    assert not np.delete(expected, filled, axis=1).any()
    expected = expected[:, filled]
    assert matrix.shape == expected.shape
    rng = np.random.default_rng(1)
    right, left = rng.normal(size=(expected.shape[1], 3)), rng.normal(size=(TERMS, 3))
    assert matrix @ right == pytest.approx(expected @ right)
    assert matrix.T @ left == pytest.approx(expected.T @ left)
    vectors = fact_vectors(matrix, 4, 0)
    u, s, _ = np.linalg.svd(expected, full_matrices=False)
    best = (u[:, :4] * s[:4]) @ u[:, :4].T  # ρ·ρᵀ, whatever the signs
    if s[3] > 1.05 * s[4]:  # otherwise the fourth direction is not determined
        assert vectors @ vectors.T == pytest.approx(best, abs=1e-3)


def test_terms_with_neither_counts_nor_facts_have_no_direction_and_spare_columns_are_zero() -> None:
    graph = Graph(
        Vocabulary.from_terms(["a", "b", "c", "alone"]), np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32),
        np.array([3, 1, 2], np.int64),
    )  # fmt: skip
    matrix = PpmiWithFacts.from_facts(graph.lazy_ppmi(), np.array([[0, 0, 1]]), 1, 1.0)
    vectors = fact_vectors(matrix, 8, 0)
    assert vectors.shape == (4, 8)
    assert not vectors[3].any()
    assert not vectors[:, 3:].any()
    assert np.isfinite(vectors).all()


def test_every_fold_has_vectors_of_its_own_that_know_nothing_of_its_facts(small: tuple[Graph, Dataset]) -> None:
    graph, dataset = small
    config = Config(dimension=8, tower=8, folds=3)
    training = prepare(graph, dataset.for_fitting(), [0], config, seed=0)
    ppmi, relations = graph.lazy_ppmi(), len(dataset.relations)
    seen = []
    for fold, recognition in enumerate([training.network.recognition, *training.network.folds], start=-1):
        facts = training.sampler.facts(fold)
        seen.append({tuple(row) for row in facts.tolist()})
        expected = fact_vectors(PpmiWithFacts.from_facts(ppmi, facts, relations, config.fact_weight), 8, 0)
        assert torch.equal(recognition.fact_vectors, torch.from_numpy(expected))
    assert all(part < seen[0] for part in seen[1:])  # each lacks some
    assert set.union(*(seen[0] - part for part in seen[1:])) == seen[0]  # and every fact is hidden from one


def test_training_does_not_move_them(small: tuple[Graph, Dataset]) -> None:
    graph, dataset = small
    config = Config(dimension=8, tower=8, folds=0, recall_passes=1, recognition_passes=1, decision_epochs=1)
    training = prepare(graph, dataset.for_fitting(), [0], config, seed=0)
    before = training.network.recognition.fact_vectors.clone()
    rng = np.random.default_rng(0)
    for number in range(training.rounds):
        training.run_round(number, rng)
    assert torch.equal(training.network.recognition.fact_vectors, before)
