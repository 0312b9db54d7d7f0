"""Recognition of many pairs in one pass: bilinear scores, PPMI, order, known facts and types, without gradient."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
import numpy as np
import torch
from torch import Tensor

from cogstage.graph.pair_counts import edge, position, ppmi_at
from cogstage.graph.pair_order import lean_at
from cogstage.model.fast.threads import FEW, PARTS, spread

if TYPE_CHECKING:
    from cogstage.model.recognition import Knowledge, Recognition, Views

_NO_TYPES = (np.zeros(0, np.int64), np.zeros((0, 0, 0), bool))
_NO_ORDER = (np.zeros(0, np.int64), np.zeros(0, np.int32), np.zeros((0, 3), np.int32))


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz", "arcp"})
def _dot(one: Any, other: Any) -> Any:
    total = one.dtype.type(0)
    for x in range(one.shape[0]):
        total += one[x] * other[x]
    return total


@numba.njit(cache=True, nogil=True)
def _recognise(
    part: int,
    left: Any,
    right: Any,
    views: Any,
    shared: Any,
    counts: Any,
    order: Any,
    facts: Any,
    types: Any,
    terms: int,
    score: Any,
    known: Any,
) -> None:
    mixed, tail = views
    bias, gamma, omega, cut, hidden = shared
    count_start, count_other, count_value, log_total, ppmi_scale = counts
    order_start, order_other, order_cells = order
    fact_start, fact_other, fact_table, fact_fold = facts
    kind, usual = types
    pairs, count = left.shape[0], bias.shape[0]
    zero = score.dtype.type(0)
    # A ranking asks about one head or tail: the pairs with it come again and again, so their rows are remembered.
    # Arrays are filled and copied number by number: numba compiles that in a third of the time of whole-array code.
    from_first, to_last = np.empty(terms, np.int64), np.empty(terms, np.int64)
    for x in range(terms):
        from_first[x] = to_last[x] = -1
    for m in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        i, j = left[m], right[m]
        if i == j:
            continue
        if terms > 0 and (i == left[0] or j == right[pairs - 1]):
            row = from_first[j] if i == left[0] else to_last[i]
            if row >= 0:
                for k in range(2 * count):
                    score[m, k], known[m, k] = score[row, k], known[row, k]
                continue
            if i == left[0]:
                from_first[j] = m
            else:
                to_last[i] = m
        at = edge(count_start, count_other, i, j)
        ppmi = score.dtype.type(ppmi_at(count_value, log_total, ppmi_scale, at, i, j)) if at >= 0 else zero
        lean = zero
        if order_start.shape[0] > 0:
            lean = score.dtype.type(lean_at(order_start, order_other, order_cells, i, j))
        fact = position(fact_start, fact_other, i, j)
        if fact >= 0 and fact_fold[fact] == hidden:
            fact = -1
        for k in range(2 * count):
            if fact >= 0 and fact_table[fact, k]:
                known[m, k] = True
                score[m, k] = cut
            elif kind.shape[0] == 0 or usual[kind[i], kind[j], k]:
                r = k if k < count else k - count
                dot = _dot(mixed[i, r], tail[j]) if k < count else _dot(mixed[j, r], tail[i])
                seen = dot + bias[r] + gamma[r] * ppmi
                if order_start.shape[0] > 0:
                    seen += omega[r] * (lean if k < count else -lean)
                score[m, k] = min(max(seen, -cut), cut)


def recognise(
    recognition: Recognition, views: Views, left: Tensor, right: Tensor, knowledge: Knowledge, hidden: int | None
) -> tuple[Tensor, Tensor]:
    """s_k as a decision sees it and which triples are known: (M,), (M,) -> (M, 2R), (M, 2R) bool."""
    from cogstage.model.recognition import CUT, ORDER_SCALE

    width = 2 * recognition.relations
    score = np.zeros((len(left), width), views.tail.numpy().dtype)
    known = np.zeros((len(left), width), bool)
    kind = score.dtype.type
    bias, gamma = (parameter.detach().numpy() for parameter in (recognition.bias, recognition.ppmi))
    facts, types, order = knowledge.facts, knowledge.types, knowledge.order
    ordered = order is not None and recognition.order is not None
    omega = np.zeros_like(bias) if recognition.order is None else ORDER_SCALE * recognition.order.detach().numpy()
    spread(
        _recognise,
        len(left),
        left.numpy(),
        right.numpy(),
        (views.mixed.numpy(), views.tail.numpy()),
        (bias, gamma, omega, kind(CUT), -2 if hidden is None else hidden),  # no fact is of fold -2
        knowledge.counts.kernel,
        order.kernel if order is not None and ordered else _NO_ORDER,
        (facts.start, facts.other, facts.table, facts.folds),
        (types.kind, types.usual) if types is not None else _NO_TYPES,
        len(views.tail) if len(left) >= FEW else 0,
        score,
        known,
    )
    return torch.from_numpy(score), torch.from_numpy(known)
