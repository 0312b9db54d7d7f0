"""υ and ρ, the vectors of stage 1, against loops and a full SVD."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import Dataset
from cogstage.model.config import Config
from cogstage.model.recall import fact_columns, similarity, unit_rows, vectors, with_facts
from cogstage.model.recognition import inputs
from cogstage.training.default import DefaultTraining

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
    n_facts = (table > 0).sum(axis=1, keepdims=True)
    for part, scale in ((ppmi, 1.0), (table, weight * np.sqrt(n_facts / (n_facts + 4)))):
        length = np.sqrt((part**2).sum(axis=1, keepdims=True))
        parts.append(scale * part / np.where(length > 0, length, 1.0))
    return np.concatenate(parts, axis=1)


fact = st.tuples(st.integers(0, TERMS - 2), st.integers(0, RELATIONS - 1), st.integers(0, TERMS - 2))


def same_vectors(vectors: np.ndarray, matrix: np.ndarray, dimension: int) -> None:
    """Vectors are U·√S of a matrix, whatever the signs."""
    u, s, _ = np.linalg.svd(matrix, full_matrices=False)
    best = (u[:, :dimension] * s[:dimension]) @ u[:, :dimension].T
    if dimension >= len(s) or s[dimension - 1] > 1.05 * s[dimension]:  # otherwise the last direction is not determined
        assert vectors @ vectors.T == pytest.approx(best, abs=1e-3)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 50), st.lists(fact.filter(lambda f: f[0] != f[2]), min_size=1, max_size=12, unique=True))
def test_matrix_and_vectors_are_the_literal_ones(seed: int, facts: list[tuple[int, int, int]]) -> None:
    ppmi = graph_of(seed).ppmi()
    expected = literal(ppmi.toarray(), facts)
    table, columns = fact_columns(np.array(facts), RELATIONS, TERMS)
    matrix = with_facts(unit_rows(ppmi), table, WEIGHT)
    filled = np.concatenate([np.arange(TERMS), TERMS + columns])
    assert not np.delete(expected, filled, axis=1).any()
    assert matrix.toarray() == pytest.approx(expected[:, filled], abs=1e-6)
    same_vectors(vectors(matrix, 4, 0), expected, 4)
    same_vectors(vectors(unit_rows(ppmi), 4, 0), expected[:, :TERMS], 4)


def test_terms_with_neither_counts_nor_facts_have_no_direction_and_spare_columns_are_zero() -> None:
    graph = Graph(
        Vocabulary.from_terms(["a", "b", "c", "alone"]), np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32),
        np.array([3, 1, 2], np.int64),
    )  # fmt: skip
    table, _ = fact_columns(np.array([[0, 0, 1]]), 1, 4)
    for matrix in (unit_rows(graph.ppmi()), with_facts(unit_rows(graph.ppmi()), table, 1.0)):
        result = vectors(matrix, 8, 0)
        assert result.shape == (4, 8)
        assert not result[3].any()
        assert not result[:, 3:].any()
        assert np.isfinite(result).all()
        assert not inputs(result, result)[3].any()


def test_a_graph_without_positive_ppmi_has_vectors_of_zeros() -> None:
    empty = graph_of(0).ppmi(shift=99.0)
    assert not empty.nnz
    assert not vectors(unit_rows(empty), 4, 0).any()


def test_similarity_is_the_cosine_where_it_is_positive() -> None:
    term = np.array([[1.0, 0.0], [2.0, 2.0], [-1.0, 0.0], [0.0, 0.0]])
    pairs = np.array([[0, 1], [0, 2], [1, 1], [3, 0]])
    assert similarity(term, *pairs.T) == pytest.approx([0.5**0.5, 0.0, 1.0, 0.0])


def test_every_fold_has_vectors_of_its_own_that_know_nothing_of_its_facts(small: tuple[Graph, Dataset]) -> None:
    graph, dataset = small
    config = Config(dimension=8, tower=8, folds=3)
    training = DefaultTraining(graph, dataset.for_fitting(), [0], config, 0)
    unit, relations = unit_rows(graph.ppmi().astype(np.float32)), len(dataset.relations)
    seen = []
    for fold, fact_vectors in training._fact.items():
        facts = training.sampler.facts(fold)
        seen.append({tuple(row) for row in facts.tolist()})
        table, _ = fact_columns(facts, relations, graph.n_nodes)
        assert np.array_equal(fact_vectors, vectors(with_facts(unit, table, config.fact_weight), 8, 0))
    assert list(training._fact) == [-1, 0, 1, 2]
    assert all(part < seen[0] for part in seen[1:])  # each lacks some
    assert set.union(*(seen[0] - part for part in seen[1:])) == seen[0]  # and every fact is hidden from one


def test_training_does_not_move_them(small: tuple[Graph, Dataset]) -> None:
    graph, dataset = small
    config = Config(dimension=8, tower=8, folds=0, recognition_passes=1, decision_epochs=1)
    training = DefaultTraining(graph, dataset.for_fitting(), [0], config, 0)
    before = training.trained()
    for number in range(training.rounds):
        training.run_round(number, np.random.default_rng(0))
    after = training.trained()
    assert np.array_equal(after.fact, vectors_of_both(graph, dataset, config))
    assert np.array_equal(after.term, before.term)
    assert not np.array_equal(after.recognition.offset, before.recognition.offset)


def vectors_of_both(graph: Graph, dataset: Dataset, config: Config) -> np.ndarray:
    facts = dataset.facts("train")
    table, _ = fact_columns(
        np.stack([facts.head, facts.relation, facts.tail], 1), len(dataset.relations), graph.n_nodes
    )
    unit = unit_rows(graph.ppmi().astype(np.float32))
    return vectors(with_facts(unit, table, config.fact_weight), config.dimension, 0)
