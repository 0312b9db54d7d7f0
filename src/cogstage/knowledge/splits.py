"""Train, dev and test: pairs of concepts, or whole heads or tails, assigned so that nothing is in two splits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cogstage.choices import SplitKind
from cogstage.knowledge.located import Concepts, Located

SHARES = (0.70, 0.15, 0.15)
LEFT_OUT = -1  # the side of a fact that fits into no split


def split_facts(
    facts: Located,
    concepts: Concepts,
    kind: SplitKind,
    rng: np.random.Generator,
    shares: Sequence[float] = SHARES,
    before: int = 0,
) -> np.ndarray:
    """The side of each fact: 0 train, 1 dev, 2 test, or ``LEFT_OUT``.

    ``random`` deals pairs of concepts; ``cold-head`` and ``cold-tail`` deal heads or tails, so that those of dev and
    test are never the head (or tail) of a training fact. In all of them an unordered pair of concepts has one side,
    whatever relations it holds and in whichever direction; under the cold splits, a pair whose two directions fall on
    different sides is left out. ``time`` deals what was stated before the year ``before`` to train and dev by pairs;
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


def _by_pair(facts: Located, rng: np.random.Generator, shares: Sequence[float]) -> np.ndarray:
    """Deal pairs, apart for each combination of relations, so that every relation gets its shares."""
    pairs, row_pair = np.unique(facts.pair, return_inverse=True)
    holds = np.zeros((len(pairs), len(facts.relations)), bool)
    holds[row_pair, facts.relation] = True
    _, combination = np.unique(holds, axis=0, return_inverse=True)
    side = np.empty(len(pairs), np.int8)
    cuts = np.cumsum(shares)[:-1]
    for which in range(int(combination.max(initial=-1)) + 1):
        members = rng.permutation(np.flatnonzero(combination.ravel() == which))
        # A random offset rounds the shares of small combinations without favouring a side.
        place = (np.arange(len(members)) + rng.random()) / len(members)
        side[members] = np.searchsorted(cuts, place, side="right")
    return side[row_pair.ravel()]


def _by_end(
    facts: Located, concepts: Concepts, ends: np.ndarray, rng: np.random.Generator, shares: Sequence[float]
) -> np.ndarray:
    """Deal the concepts at one end: each goes to a side at random, by what that side still lacks."""
    concept = concepts.of_node[ends]
    members, row_member = np.unique(concept, return_inverse=True)
    row_member = row_member.ravel()
    weight = np.zeros((len(members), len(facts.relations)))
    np.add.at(weight, (row_member, facts.relation), 1)
    main = weight.argmax(axis=1)  # the relation by whose shares a concept is dealt
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


def _one_side_per_pair(facts: Located, side: np.ndarray) -> np.ndarray:
    """Leave out the pairs that two directions put on different sides."""
    pairs, row_pair = np.unique(facts.pair, return_inverse=True)
    row_pair = row_pair.ravel()
    lowest = np.full(len(pairs), 127, np.int8)
    highest = np.full(len(pairs), -1, np.int8)
    np.minimum.at(lowest, row_pair, side)
    np.maximum.at(highest, row_pair, side)
    return np.where((lowest != highest)[row_pair], np.int8(LEFT_OUT), side)
