"""Degree-matched negatives: in every split, each head and tail occurs as often as among the positives.

A popular head of a dense relation may have facts with so many tails that too few are left for its negatives. What
remains would then be rarer than the positives, and popularity would answer the question. So where matching fails,
*fewer* negatives are drawn, with heads and tails in the positives' proportions, rather than as many of another kind.
"""

from __future__ import annotations

import numpy as np

from cogstage.knowledge.negative_slots import Slots
from cogstage.statistics import auroc

LEAST = 0.2  # negatives for each positive that are drawn at least
STEPS = 4  # of bisection between the least and one for each positive
ALIKE = 0.04  # how far from 0.5 the AUROC of the degrees may be before fewer negatives are tried
FEW = 100  # number of positives below which the AUROC is too uncertain to reduce negatives
CANDIDATES = 500  # candidate slots for swapping a tail
TRIES = 30  # swaps that are tried among the candidates
PASSES = 2


def draw_matched(slots: Slots, rng: np.random.Generator) -> None:
    """Fill the slots, or the largest share of them that leaves the degrees of positives and negatives alike."""
    _shuffle(slots, _template(slots, 1.0), rng)
    distance = _degree_distance(slots)
    if distance <= ALIKE or len(slots.pair) < FEW:
        return
    best, low, high = (distance, list(slots.pair)), LEAST, 1.0
    share = LEAST
    for _ in range(STEPS + 1):
        for row in np.flatnonzero(slots.filled).tolist():
            slots.clear(row)
        _shuffle(slots, _template(slots, share), rng)
        distance = _degree_distance(slots)
        if distance <= ALIKE:
            best, low = (distance, list(slots.pair)), share
        else:
            high = share
            if distance < best[0]:
                best = (distance, list(slots.pair))
        if high <= LEAST:
            break
        share = (low + high) / 2
    for row in np.flatnonzero(slots.filled).tolist():
        slots.clear(row)
    for row, pair in enumerate(best[1]):
        if pair is not None:
            slots.put(row, *pair)


def _template(slots: Slots, share: float) -> np.ndarray:
    """The same share of each split's rows; they occur in random order."""
    rows = [np.flatnonzero(slots.side == split) for split in range(3)]
    return np.sort(np.concatenate([own[: int(np.ceil(share * len(own)))] for own in rows]))


def _shuffle(slots: Slots, rows: np.ndarray, rng: np.random.Generator) -> None:
    """Shuffle the pairs of heads and tails within each split, and swap tails until all pairs are allowed."""
    tail = slots.tail.copy()
    members = {}
    for split in range(3):
        members[split] = rows[slots.side[rows] == split]
        tail[members[split]] = rng.permutation(tail[members[split]])
    for row, head, other in zip(rows.tolist(), slots.head[rows].tolist(), tail[rows].tolist(), strict=True):
        slots.put(row, head, other)
    for _ in range(PASSES):
        before = rows[~slots.filled[rows]]
        for row in before.tolist():
            if not slots.filled[row]:
                _swap(slots, row, members[int(slots.side[row])], tail, rng)
        if np.all(slots.filled[rows]) or not np.any(slots.filled[before]):
            return


def _swap(slots: Slots, row: int, members: np.ndarray, tail: np.ndarray, rng: np.random.Generator) -> None:
    """Exchange the tail of an empty row with that of another row of its split, so that one more row has a pair."""
    others = members if len(members) <= CANDIDATES else members[rng.integers(len(members), size=CANDIDATES)]
    mine = slots.rules.unknown(np.full(len(others), slots.head[row]), tail[others])
    theirs = slots.rules.unknown(slots.head[others], np.full(len(others), tail[row]))
    theirs |= ~slots.filled[others]
    for other in rng.permutation(others[mine & theirs & (others != row)])[:TRIES].tolist():
        held = slots.pair[other]
        if held is not None:
            slots.clear(other)
        if slots.put(row, int(slots.head[row]), int(tail[other])):
            kept = slots.put(other, int(slots.head[other]), int(tail[row]))
            if kept or held is None:
                tail[row], tail[other] = tail[other], tail[row]
                return
            slots.clear(row)
        if held is not None:
            slots.put(other, *held)


def _degree_distance(slots: Slots) -> float:
    """How far from 0.5 the AUROC of the training degrees is, over all splits; infinite if there are no negatives."""
    pairs = np.array([pair for pair in slots.pair if pair is not None], np.int64).reshape(-1, 2)
    nodes = int(max(slots.head.max(initial=0), slots.tail.max(initial=0))) + 1
    train = slots.side == 0
    of_head, of_tail = (np.log1p(np.bincount(end[train], minlength=nodes)) for end in (slots.head, slots.tail))
    score = np.concatenate([of_head[slots.head] + of_tail[slots.tail], of_head[pairs[:, 0]] + of_tail[pairs[:, 1]]])
    value = auroc(np.repeat([1, 0], [len(slots.head), len(pairs)]), score)
    return np.inf if value is None else abs(value - 0.5)
