"""Split facts into train, dev and test by pairs of concepts, or by whole heads or tails."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cogstage.choices import SplitKind
from cogstage.knowledge.located import Concepts, LocatedFacts

SHARES = (0.70, 0.15, 0.15)
LEFT_OUT = -1  # the side of a fact that is in no split


def split_facts(
    facts: LocatedFacts,
    concepts: Concepts,
    kind: SplitKind,
    rng: np.random.Generator,
    shares: Sequence[float] = SHARES,
    before: int = 0,
) -> np.ndarray:
    """The side of each fact: 0 train, 1 dev, 2 test, or ``LEFT_OUT``.

    ``random`` splits pairs of concepts; ``cold-head`` and ``cold-tail`` split heads or tails, so that those of dev and
    test are never the head (or tail) of a training fact. In all of them an unordered pair of concepts has one side,
    whatever its relations and direction; under the cold splits, a pair whose two directions fall on
    different sides is left out. ``time`` splits facts stated before the year ``before`` into train and dev by pairs;
    the rest is test.
    """
    if kind == "time":
        side = np.full(len(facts), 2, np.int8)
        earlier = facts.year < before
        side[earlier] = _by_pair(facts.take(earlier), rng, [share / sum(shares[:2]) for share in shares[:2]])
        return side
    if kind == "random":
        return _by_pair(facts, rng, shares)
    return _by_end(facts, concepts, facts.head if kind == "cold-head" else facts.tail, rng, shares)


def _by_pair(facts: LocatedFacts, rng: np.random.Generator, shares: Sequence[float]) -> np.ndarray:
    """Split pairs separately for each combination of relations, so that every relation gets its shares."""
    pairs, row_pair = np.unique(facts.pair, return_inverse=True)
    holds = np.zeros((len(pairs), len(facts.relations)), bool)
    holds[row_pair, facts.relation] = True
    _, combination = np.unique(holds, axis=0, return_inverse=True)
    side = np.empty(len(pairs), np.int8)
    cuts = np.cumsum(shares)[:-1]
    for which in range(int(combination.max(initial=-1)) + 1):
        members = rng.permutation(np.flatnonzero(combination.ravel() == which))
        # A random offset rounds the shares of small combinations without favouring a side.
        quantile = (np.arange(len(members)) + rng.random()) / len(members)
        side[members] = np.searchsorted(cuts, quantile, side="right")
    return side[row_pair.ravel()]


def _by_end(
    facts: LocatedFacts, concepts: Concepts, ends: np.ndarray, rng: np.random.Generator, shares: Sequence[float]
) -> np.ndarray:
    """Split the concepts at one end: each goes to a random side, weighted by what that side still needs."""
    concept = concepts.of_node[ends]
    members, row_member = np.unique(concept, return_inverse=True)
    row_member = row_member.ravel()
    weight = np.zeros((len(members), len(facts.relations)))
    np.add.at(weight, (row_member, facts.relation), 1)
    main = weight.argmax(axis=1)  # the relation whose shares decide the side of a concept
    lacking = np.outer(weight.sum(axis=0), shares)
    side = np.empty(len(members), np.int8)
    for member in rng.permutation(len(members)):
        need, own = lacking[main[member]], weight[member, main[member]]
        roomy = np.where(need >= own, need, 0.0)
        if roomy.sum() > 0:
            chosen = int(rng.choice(len(shares), p=roomy / roomy.sum()))
        else:
            chosen = int(need.argmax())
        side[member] = chosen
        lacking[:, chosen] -= weight[member]
    sides: np.ndarray = side[row_member]
    return _one_side_per_pair(facts, sides)


def _one_side_per_pair(facts: LocatedFacts, side: np.ndarray) -> np.ndarray:
    """Leave out the pairs that two directions put on different sides."""
    pairs, row_pair = np.unique(facts.pair, return_inverse=True)
    row_pair = row_pair.ravel()
    lowest = np.full(len(pairs), 127, np.int8)
    highest = np.full(len(pairs), -1, np.int8)
    np.minimum.at(lowest, row_pair, side)
    np.maximum.at(highest, row_pair, side)
    return np.where((lowest != highest)[row_pair], np.int8(LEFT_OUT), side)
