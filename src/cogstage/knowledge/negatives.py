"""Negatives: pairs of heads and tails of a relation that are not known facts, one per positive.

``uniform`` samples heads and tails uniformly, as in the paper. ``degree`` gives every head and every tail as many
negatives as it has positives in the same split, so that popularity says nothing. ``hard`` draws pairs that co-occur in
the graph.

The negatives of all splits are drawn together, in random order, so that no split gets what another has left over.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from cogstage.choices import NegativeKind, SplitKind
from cogstage.knowledge.dataset import SPLITS
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.knowledge.located import Concepts, LocatedFacts
from cogstage.knowledge.matched_negatives import draw_matched
from cogstage.knowledge.negative_slots import Ends, Rules, Slots

TRIES = 200  # rounds of random draws before all candidates are looked through
SCAN = 20_000_000  # candidate pairs that are looked through at most


@dataclass
class DrawnNegatives:
    """The negatives of one mode by relation and split, and how many are missing."""

    ends: dict[tuple[str, str], Ends] = field(default_factory=dict)
    short: dict[tuple[str, str], int] = field(default_factory=dict)  # positives without a negative
    not_hard: dict[tuple[str, str], int] = field(default_factory=dict)  # sampled by degree for lack of hard ones


def draw_negatives(
    mode: NegativeKind,
    facts: LocatedFacts,
    side: np.ndarray,
    known: np.ndarray,
    concepts: Concepts,
    edges: EdgeLookup,
    seed: int,
    split_kind: SplitKind = "random",
) -> DrawnNegatives:
    """Sample one negative per positive for every relation and split, as far as possible.

    ``known`` are the numbers of all unordered pairs of concepts that any relation holds, sorted. A pair of concepts is
    a negative in one split only.
    """
    rules = Rules(concepts, known)
    drawn = DrawnNegatives()
    for index, relation in enumerate(facts.relations):
        rows = np.flatnonzero((facts.relation == index) & (side >= 0))
        head, tail, split = facts.head[rows], facts.tail[rows], side[rows]
        rng = np.random.default_rng([seed, zlib.crc32(f"{mode}/{relation}".encode())])
        slots = Slots(head, tail, split, rules, rng)
        pools = _pools(head, tail, split, split_kind)
        by_degree = np.zeros(3, int)
        if mode == "degree":
            draw_matched(slots, rng)
        elif mode == "hard":
            by_degree = _co_occurring(slots, pools, edges, rng)
        else:
            _fill(slots, pools, pools, rng)
        for number, name in enumerate(SPLITS):
            drawn.ends[relation, name] = slots.ends(number)
            drawn.short[relation, name] = int(np.sum(split == number)) - len(drawn.ends[relation, name][0])
            drawn.not_hard[relation, name] = int(by_degree[number])
    return drawn


def _pools(head: np.ndarray, tail: np.ndarray, split: np.ndarray, kind: SplitKind) -> list[Ends]:
    """For each split the heads and tails to draw from: the relation's, or a cold split's own at its unseen end.

    Under a split by time, earlier and later facts keep to their own ends.
    """
    pools = []
    for number in range(3):
        own = split == number
        period = (split == 2) == (number == 2) if kind == "time" else np.ones(len(split), bool)
        heads = head[own if kind == "cold-head" else period]
        tails = tail[own if kind == "cold-tail" else period]
        pools.append((np.unique(heads), np.unique(tails)))
    return pools


def _fill(slots: Slots, draw: Sequence[Ends], pools: Sequence[Ends], rng: np.random.Generator) -> None:
    """Sample heads and tails from ``draw`` until every slot has a pair; if that rarely succeeds, try all pairs."""
    for _ in range(TRIES):
        rows = slots.empty()
        if not len(rows):
            return
        heads, tails = np.empty(len(rows), np.int64), np.empty(len(rows), np.int64)
        for number, (some_heads, some_tails) in enumerate(draw):
            here = slots.side[rows] == number
            if here.any():
                heads[here], tails[here] = rng.choice(some_heads, here.sum()), rng.choice(some_tails, here.sum())
        for row, head, tail in zip(rows.tolist(), heads.tolist(), tails.tolist(), strict=True):
            slots.put(row, head, tail)
    for members in _sharing(pools):
        heads, tails = pools[members[0]]
        if len(heads) * len(tails) > SCAN or not len(slots.empty(members)):
            continue
        cells = rng.permutation(len(heads) * len(tails))
        _offer(slots, members, heads[cells // len(tails)], tails[cells % len(tails)])


def _sharing(pools: Sequence[Ends]) -> Iterator[list[int]]:
    """Groups of splits that draw from the same pools."""
    left = list(range(len(pools)))
    while left:
        first = left[0]
        group = [n for n in left if all(map(np.array_equal, pools[first], pools[n]))]
        left = [n for n in left if n not in group]
        yield group


def _offer(slots: Slots, members: Sequence[int], heads: np.ndarray, tails: np.ndarray) -> None:
    """Give these pairs to empty slots, each to the split that lacks the largest share of its negatives."""
    free = slots.rules.unknown(heads, tails)
    waiting = {split: slots.empty([split]).tolist() for split in members}
    total = {split: max(1, int(np.sum(slots.side == split))) for split in members}
    for head, tail in zip(heads[free].tolist(), tails[free].tolist(), strict=True):
        lacking = sorted((s for s in members if waiting[s]), key=lambda s: -len(waiting[s]) / total[s])
        if not lacking:
            return
        for split in lacking:  # a pair that another split uses is refused
            if slots.put(waiting[split][-1], head, tail):
                waiting[split].pop()
                break


def _co_occurring(slots: Slots, pools: Sequence[Ends], edges: EdgeLookup, rng: np.random.Generator) -> np.ndarray:
    """For each positive a co-occurring pair with its head, or else its tail; how many of each split had to be others.

    The free end is drawn by how often it occurs in the relation's facts of the split, so that rare ends stay rare.
    """
    for members in _sharing(pools):
        heads, tails = pools[members[0]]
        pairs = edges.between(heads, tails)
        turned = np.lexsort(pairs)  # by tail, then head
        by_head, by_tail = _Partners(*pairs), _Partners(pairs[1][turned], pairs[0][turned])
        nodes = int(max(heads.max(initial=0), tails.max(initial=0))) + 1
        weights = {}
        for split in members:
            own = slots.side == split
            of_ends = (np.bincount(end[own], minlength=nodes) + 0.5 for end in (slots.tail, slots.head))
            weights[split] = tuple(of_ends)  # ends of other splits stay possible
        for row in slots.empty(members).tolist():
            head, tail, split = int(slots.head[row]), int(slots.tail[row]), int(slots.side[row])
            of_tails, of_heads = weights[split]
            if not any(slots.put(row, head, other) for other in by_head.draw(head, of_tails, rng)):
                any(slots.put(row, other, tail) for other in by_tail.draw(tail, of_heads, rng))
        order = rng.permutation(len(pairs[0]))  # any other co-occurring pair of the relation's ends
        _offer(slots, members, pairs[0][order], pairs[1][order])
    rest = slots.empty()
    own = [slots.side == split for split in range(3)]
    _fill(slots, [(slots.head[here], slots.tail[here]) for here in own], pools, rng)
    return np.bincount(slots.side[rest[slots.filled[rest]]], minlength=3)


class _Partners:
    """The co-occurring partners of each node of one pool in the other."""

    def __init__(self, end: np.ndarray, other: np.ndarray) -> None:
        self._end, self._other = end, other  # sorted by end

    def draw(self, node: int, weight: np.ndarray, rng: np.random.Generator) -> list[int]:
        """All partners of a node in a random order that favours the heavy ones (Efraimidis and Spirakis)."""
        first, last = np.searchsorted(self._end, [node, node + 1])
        others = self._other[first:last]
        key = np.log(rng.random(last - first)) / weight[others]
        drawn: list[int] = others[np.argsort(-key, kind="stable")].tolist()
        return drawn
