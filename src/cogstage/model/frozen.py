"""What stage 3 is told of pairs when recognition is taken as it is: one pass over the pairs, without gradient.

The values are those of ``with_known``, ``probabilities`` and ``margins`` in recognition.py, which remain the way where
gradients flow or a GPU computes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from cogstage.model.kernels import PARTS, spread
from cogstage.model.known_facts import KnownFacts, UsualTypes

_jit = numba.njit(cache=True, nogil=True)


@dataclass(frozen=True)
class Told:
    """Which columns are told of a pair with K relations: p, then margins and known relations where wanted."""

    margins: bool
    known: bool
    clip: float


@_jit
def _read(
    m: int, i: int, j: int, scores: Any, banned: Any, facts: Any, hidden: int, types: Any, told: Any, layout: Any
) -> None:
    """Row ``m`` of what is told, of the pair (i, j); ``banned`` (K,) are the relations that are masked."""
    start, other, table, folds = facts
    kind, usual = types
    margins_at, known_at, clip = layout
    count = scores.shape[1] - 1
    zero, na = scores.dtype.type(0), scores[m, count]
    fact = -1
    if known_at >= 0:
        low, high = start[i], start[i + 1]
        while low < high:
            middle = (low + high) // 2
            if other[middle] < j:
                low = middle + 1
            else:
                high = middle
        if low < start[i + 1] and other[low] == j and folds[low] != hidden:
            fact = low
    best, beating = -math.inf, 0
    for k in range(count):
        known = fact >= 0 and table[fact, k] and not banned[k]
        score = scores[m, k]
        if known:
            score = max(score, na + clip)
        allowed = not banned[k] and (known or kind.shape[0] == 0 or usual[kind[i], kind[j], k])
        if margins_at >= 0:
            told[m, margins_at + k] = min(max(score - na, zero), clip) if allowed else zero
        if known_at >= 0:
            told[m, known_at + k] = 1 if known else 0
        told[m, k] = zero
        if allowed and score > na:
            told[m, k] = score - na
            best = max(best, score - na)
            beating += 1
    if beating == 0:
        return
    total = zero
    for k in range(count):
        if told[m, k] > 0:
            told[m, k] = math.exp(told[m, k] - best) if beating > 1 else 1
            total += told[m, k]
    for k in range(count):
        told[m, k] /= total


@_jit
def _read_all(
    part: int,
    head: Any,
    tail: Any,
    scores: Any,
    none: Any,
    facts: Any,
    hidden: int,
    types: Any,
    told: Any,
    layout: Any,
) -> None:
    pairs = head.shape[0]
    for m in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        _read(m, head[m], tail[m], scores, none, facts, hidden, types, told, layout)


def read(
    scores: Tensor,
    head: Tensor,
    tail: Tensor,
    masked: Tensor,
    known: KnownFacts | None,
    types: UsualTypes | None,
    fold: int | None,
    wanted: Told,
) -> Tensor:
    """What is told of pairs of nodes with scores (U, K+1): (U, K), or more columns; ``masked`` (x, 2) are targets."""
    count = scores.shape[1] - 1
    margins_at = count if wanted.margins else -1
    known_at = count * (1 + wanted.margins) if wanted.known and known is not None else -1
    told = np.empty((len(scores), count * (1 + wanted.margins + (known_at >= 0))), scores.numpy().dtype)
    facts = (known.start, known.other, known.table, known.folds) if known is not None else _NO_FACTS
    kinds = (types.kind, types.usual) if types is not None else _NO_TYPES
    hidden = -2 if fold is None else fold  # no fact is of fold -2
    none, layout = np.zeros(count, bool), (margins_at, known_at, told.dtype.type(wanted.clip))
    rest = (facts, hidden, kinds, told, layout)
    spread(_read_all, len(told), head.numpy(), tail.numpy(), scores.numpy(), none, *rest)
    by_row: dict[int, np.ndarray] = {}
    for row, relation in masked.tolist():
        by_row.setdefault(row, none.copy())[relation] = True
    for row, banned in by_row.items():
        _read(row, int(head[row]), int(tail[row]), scores.numpy(), banned, *rest)
    return torch.from_numpy(told)


_NO_FACTS = (np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros((0, 1), bool), np.zeros(0, np.int64))
_NO_TYPES = (np.zeros(0, np.int64), np.zeros((0, 0, 0), bool))
