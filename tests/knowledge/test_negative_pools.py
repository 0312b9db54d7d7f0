"""From which heads and tails negatives are drawn: a cold split's own at its unseen end, a period's own under time."""

from __future__ import annotations

import numpy as np
import pytest
from knowledge_files import graph_of

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
