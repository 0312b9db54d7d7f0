"""Degree-matched negatives in dense relations, and the look-up of edges that drawing and the report use."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from knowledge_files import graph_of
from sklearn.metrics import roc_auc_score
from test_dataset_build import facts_of

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import SPLITS, Dataset
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.leakage import BY_SPLIT, FLOORS
from cogstage.knowledge.located import Concepts, LocatedFacts
from cogstage.knowledge.negatives import draw_negatives


def dense_world(seed: int, heads: int, tails: int, facts: int, skew: float) -> tuple[Graph, Facts]:
    """Popular tails hold most heads of the relation, so that few pairs are left to be their negatives."""
    rng = np.random.default_rng(seed)
    weight_head, weight_tail = (1 / np.arange(1, n + 1) ** skew for n in (heads, tails))
    chance = np.outer(weight_head, weight_tail).ravel()
    cells = rng.choice(heads * tails, facts, replace=False, p=chance / chance.sum())
    triples = {(f"h{cell // tails}", "causes", f"t{cell % tails}") for cell in cells.tolist()}
    graph = graph_of([*(f"h{i}" for i in range(heads)), *(f"t{i}" for i in range(tails))], seed, density=0.02)
    return graph, facts_of(triples)


def degree_auroc(data: Dataset, relation: str, split: str) -> float:
    """AUROC of (1 + training facts of the head)·(1 + training facts of the tail), counted from the files."""
    train = data.facts("train")
    own = train.relation == data.relations.index(relation)
    heads, tails = Counter(train.head[own].tolist()), Counter(train.tail[own].tolist())
    pairs = data.pairs(relation, split)
    score = [(1 + heads[h]) * (1 + tails[t]) for h, t in zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)]
    return float(roc_auc_score(pairs.label, score))


def test_splits_of_a_dense_relation_are_alike_and_degrees_say_nothing(tmp_path: Path) -> None:
    graph, facts = dense_world(0, heads=120, tails=600, facts=4000, skew=1.0)
    data = build_dataset(graph, facts, tmp_path / "data")
    found = {split: degree_auroc(data, "causes", split) for split in SPLITS}
    assert data.leakage[BY_SPLIT]["degree"]["causes"] == pytest.approx(found, abs=1e-4)
    assert max(found.values()) < 0.56
    assert max(found.values()) - min(found.values()) < 0.06
    counts = data.manifest["counts"]["causes"]
    shares = [counts[f"{split} negatives"] / counts[split] for split in SPLITS]
    assert min(shares) > 0.3
    assert max(shares) - min(shares) < 0.05


@given(
    st.integers(0, 10_000),
    st.integers(15, 40),
    st.integers(15, 60),
    st.floats(0.05, 0.6),
    st.sampled_from([0.0, 0.5, 1.0]),
)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_end_has_more_negatives_than_positives_in_any_split(
    seed: int, heads: int, tails: int, density: float, skew: float
) -> None:
    rng = np.random.default_rng(seed)
    chance = np.outer(1 / np.arange(1, heads + 1) ** skew, 1 / np.arange(1, tails + 1) ** skew).ravel()
    cells = np.sort(rng.choice(heads * tails, int(density * heads * tails), replace=False, p=chance / chance.sum()))
    head, tail = (cells // tails).astype(np.int32), (heads + cells % tails).astype(np.int32)
    concepts = Concepts.from_vocabulary(Vocabulary.from_terms([f"n{i}" for i in range(heads + tails)]))
    facts = LocatedFacts(("causes",), head, np.zeros(len(cells), np.int16), tail, concepts.pair(head, tail))
    side = rng.choice(3, len(cells), p=(0.7, 0.15, 0.15))
    edges = EdgeLookup(graph_of([f"n{i}" for i in range(heads + tails)], density=0.0))
    drawn = draw_negatives("degree", facts, side, np.unique(facts.pair), concepts, edges, seed)
    known = set(zip(head.tolist(), tail.tolist(), strict=True))
    everywhere: list[tuple[int, int]] = []
    gap = {}
    for number, split in enumerate(SPLITS):
        own = side == number
        negatives = drawn.ends["causes", split]
        for positive_end, negative_end in zip((head[own], tail[own]), negatives, strict=True):
            assert not Counter(negative_end.tolist()) - Counter(positive_end.tolist())
        assert len(negatives[0]) + drawn.short["causes", split] == own.sum()
        everywhere += zip(*(end.tolist() for end in negatives), strict=True)
        if len(negatives[0]):
            gap[split] = len(negatives[0]) / own.sum()
    assert len(set(everywhere)) == len(everywhere)
    assert not set(everywhere) & known
    if len(cells) > 400 and len(gap) == 3:  # what is wanting is wanting everywhere
        assert max(gap.values()) - min(gap.values()) < 0.25


def test_where_degrees_cannot_be_matched_the_report_warns(tmp_path: Path) -> None:
    graph, facts = dense_world(0, heads=60, tails=80, facts=2500, skew=0.8)
    data = build_dataset(graph, facts, tmp_path / "data")
    splits = data.leakage[BY_SPLIT]["degree"]["causes"]
    assert max(splits.values()) > 0.55
    warning = next(line for line in data.leakage["warnings"] if line.startswith("causes, degree negatives: the train"))
    for split, value in splits.items():
        assert (f"{value:.2f} in {split}" in warning) == (max(value, 1 - value) > 0.55)
    assert "too few" not in warning
    assert sum(data.manifest["negatives wanting"]["degree"]["causes"].values()) > 0


@pytest.mark.parametrize(("counted", "low", "high"), [(1.0, 0.99, 1.0), (0.9, 0.91, 0.98), (0.7, 0.8, 0.89)])
def test_facts_that_the_counts_already_hold_are_warned_of(
    counted: float, low: float, high: float, tmp_path: Path
) -> None:
    """A share of the facts was read off the text that was counted: PPMI alone has AUROC (1 + share) / 2."""
    rng = np.random.default_rng(0)
    pairs = sorted({(int(h), int(60 + t)) for h, t in rng.integers(0, 60, (700, 2))})
    names = tuple(f"n{i}" for i in range(120))
    edges = [pair for pair in pairs if rng.random() < counted]
    source, target = (np.array(end, np.int32) for end in zip(*edges, strict=True))
    vocabulary = Vocabulary(names, names, names, ("",) * 120, np.full(120, 10, np.int64))
    graph = Graph(vocabulary, source, target, np.full(len(edges), 5, np.int64))
    data = build_dataset(graph, facts_of({(names[h], "causes", names[t]) for h, t in pairs}), tmp_path / "data")
    value = data.leakage[FLOORS]["degree"]["causes"]["ppmi"]
    assert low <= value <= high
    warnings = [line for line in data.leakage["warnings"] if line.startswith("causes, degree negatives: simple scores")]
    assert len(warnings) == (value > 0.9)
    assert all(f"ppmi {value:.2f}" in line for line in warnings)


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 8), st.integers(0, 8)).filter(lambda pair: pair[0] < pair[1]), st.integers(1, 50)
    ),
    st.sets(st.integers(0, 8)),
    st.sets(st.integers(0, 8)),
)
def test_the_look_up_of_edges_equals_the_matrices(
    counted: dict[tuple[int, int], int], ends: set[int], others: set[int]
) -> None:
    keys = sorted(counted)
    source, target = (np.array([key[end] for key in keys], np.int32) for end in (0, 1))
    count = np.array([counted[key] for key in keys], np.int64)
    vocabulary = Vocabulary.from_terms([f"n{i}" for i in range(9)])
    one, other = (grid.ravel() for grid in np.meshgrid(np.arange(9), np.arange(9)))
    for made_with in ({}, {"values": "ppmi", "scale": 1000}):
        graph = Graph(vocabulary, source, target, count, made_with)
        edges = EdgeLookup(graph)
        np.testing.assert_array_equal(edges.counts(one, other), graph.matrix.toarray()[one, other])
        assert edges.ppmi(one, other) == pytest.approx(graph.ppmi().toarray()[one, other])
    pairs = edges.between(np.array(sorted(ends), int), np.array(sorted(others), int))
    matrix = graph.matrix.toarray()
    assert list(zip(*(end.tolist() for end in pairs), strict=True)) == [
        (a, b) for a in sorted(ends) for b in sorted(others) if matrix[a, b]
    ]
