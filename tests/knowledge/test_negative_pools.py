"""From which heads and tails negatives are drawn: a cold split's own at its unseen end, a period's own under time."""

from __future__ import annotations

import numpy as np
import pytest
from knowledge_files import graph_of

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import SPLITS
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.knowledge.located import Concepts, LocatedFacts
from cogstage.knowledge.negatives import draw_negatives

ENDS = 60  # heads 0 … 59, tails 60 … 119


@pytest.mark.parametrize("mode", ["uniform", "hard"])
@pytest.mark.parametrize("kind", ["cold-head", "cold-tail", "time", "random"])
def test_ends_of_negatives_are_those_of_the_split_where_it_keeps_them_apart(mode: str, kind: str) -> None:
    rng = np.random.default_rng(0)
    cells = rng.choice(ENDS * ENDS, 500, replace=False)
    head, tail = (cells // ENDS).astype(np.int32), (ENDS + cells % ENDS).astype(np.int32)
    thirds = {"cold-head": head % 3, "cold-tail": tail % 3, "random": rng.integers(3, size=500)}
    later = (head % 3 == 0) & (tail % 3 == 0)
    side = np.where(later, 2, rng.integers(2, size=500)) if kind == "time" else thirds[kind]
    if kind == "time":  # earlier facts have other ends than later ones, so that mixing them would show
        kept = later | ((head % 3 > 0) & (tail % 3 > 0))
        head, tail, side = head[kept], tail[kept], side[kept]
    names = [f"n{i}" for i in range(2 * ENDS)]
    concepts = Concepts.from_vocabulary(Vocabulary.from_terms(names))
    facts = LocatedFacts(("causes",), head, np.zeros(len(head), np.int16), tail, concepts.pair(head, tail))
    edges = EdgeLookup(graph_of(names, density=0.5))
    drawn = draw_negatives(mode, facts, side, np.unique(facts.pair), concepts, edges, 0, kind)  # type: ignore[arg-type]
    for number, split in enumerate(SPLITS):
        own = (side == 2) == (number == 2) if kind == "time" else side == number
        negatives = dict(zip(("head", "tail"), drawn.ends["causes", split], strict=True))
        assert len(negatives["head"]) > 0.6 * np.sum(side == number)
        for end, positive in (("head", head), ("tail", tail)):
            if kind in (f"cold-{end}", "time"):
                assert np.isin(negatives[end], positive[own]).all(), (split, end)
        if mode == "hard":
            assert (edges.counts(negatives["head"], negatives["tail"]) > 0).mean() > 0.9


def drawn_pairs(
    mode: str, facts: list[tuple[str, str]], vocabulary: Vocabulary, edges: list[tuple[str, str]]
) -> tuple[set[tuple[str, str]], int]:
    """The negatives of facts that are all in train, and how many of them should co-occur but do not."""
    node = {name: number for number, name in enumerate(vocabulary.term)}
    head, tail = (np.array([node[fact[end]] for fact in facts], np.int32) for end in (0, 1))
    concepts = Concepts.from_vocabulary(vocabulary)
    located = LocatedFacts(("causes",), head, np.zeros(len(head), np.int16), tail, concepts.pair(head, tail))
    ends = sorted((min(node[a], node[b]), max(node[a], node[b])) for a, b in edges)
    source, target = np.array(ends, np.int32).reshape(-1, 2).T
    graph = Graph(vocabulary, source, target, np.full(len(ends), 3, np.int64))
    drawn = draw_negatives(
        mode, located, np.zeros(len(head), int), np.unique(located.pair), concepts, EdgeLookup(graph), 0
    )  # type: ignore[arg-type]
    pairs = zip(*drawn.ends["causes", "train"], strict=True)
    return {(vocabulary.term[a], vocabulary.term[b]) for a, b in pairs}, drawn.not_hard["causes", "train"]


def test_a_positive_without_co_occurring_partners_gets_another_co_occurring_pair() -> None:
    facts = [("h1", "t1"), ("h7", "t1"), ("h5", "t5"), ("h6", "t6"), ("h8", "t8"), ("h0", "t0")]
    edges = [*facts, *((head, tail) for head in ("h1", "h7") for tail in ("t5", "t6", "t8"))]
    names = sorted({end for fact in facts for end in fact})
    pairs, not_hard = drawn_pairs("hard", facts, Vocabulary.from_terms(names), edges)
    assert not_hard == 0
    assert pairs == set(edges) - set(facts)


def test_two_terms_of_one_concept_are_never_a_negative() -> None:
    """Three concepts of two terms each, of which two facts hold: one unordered pair of concepts is left."""
    terms = ("a1", "a2", "b1", "b2", "c1", "c2")
    vocabulary = Vocabulary(terms, tuple(term[0] for term in terms), terms, ("",) * 6, np.ones(6, np.int64))
    facts = [("a1", "b1"), ("a2", "b2"), ("b1", "c1"), ("b2", "c2"), ("b1", "a2"), ("c1", "b2")]
    pairs, _ = drawn_pairs("uniform", facts, vocabulary, [])
    assert len(pairs) >= 4
    assert {frozenset((a[0], b[0])) for a, b in pairs} == {frozenset("ac")}
