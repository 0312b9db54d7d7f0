"""The closed world: assumptions are existing training facts (a, k, b), ranked by p(a|h)·p(b|t), the best 100 kept.

The target and its inverse are left out. Facts stand in both directions, as (a, k, b) and (b, k⁻¹, a).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cogstage.model.cogstage import Recalled, Side
from cogstage.model.recall import Recall
from cogstage.triples import Triples

AT_ONCE = 1 << 22  # (targets × facts) ranked together
REMEMBERED = 100_000  # targets whose facts are kept: 2 kB each


class ClosedWorld:
    """The training facts, ready to be ranked for targets; recall is the pre-trained stage 1 and does not move."""

    def __init__(self, recall: Recall, facts: Triples, relations: int, count: int) -> None:
        head, tail = facts.head.astype(np.int64), facts.tail.astype(np.int64)
        relation = facts.relation.astype(np.int64)
        both = np.stack(
            [
                np.concatenate([head, tail]),
                np.concatenate([relation, relation + relations]),
                np.concatenate([tail, head]),
            ],
            1,
        )
        both = np.unique(both, axis=0)  # (F, 3), sorted: ties go to the lower numbers
        device = recall.term.device
        self._recall, self._relations, self._count = recall, relations, count
        self._head, self._relation, self._tail = (torch.from_numpy(column).to(device) for column in both.T.copy())
        self._terms = torch.unique(torch.cat([self._head, self._tail]))
        place = torch.zeros(len(recall.term), dtype=torch.long, device=device)
        place[self._terms] = torch.arange(len(self._terms), device=device)
        self._head_place, self._tail_place = place[self._head], place[self._tail]
        # By target: recall does not move, so what was chosen once holds.
        self._chosen: dict[tuple[int, int, int], tuple[np.ndarray, np.ndarray]] = {}

    @torch.no_grad()
    def recalled(self, head: Tensor, tail: Tensor, target: int) -> Recalled:
        """The best facts for each target (head, relation ``target``, tail), best first."""
        keys = [(h, target, t) for h, t in zip(head.tolist(), tail.tolist(), strict=True)]
        new = [row for row, key in enumerate(keys) if key not in self._chosen]
        if len(self._chosen) + len(new) > REMEMBERED:
            self._chosen.clear()
            new = list(range(len(keys)))
        rows = max(1, AT_ONCE // max(1, len(self._head)))
        for begin in range(0, len(new), rows):
            part = new[begin : begin + rows]
            for row, *one in zip(part, *self._choose(head[part], tail[part], target), strict=True):
                self._chosen[keys[row]] = (one[0].copy(), one[1].copy())
        kept = [self._chosen[key] for key in keys]
        parts = [np.stack(part) for part in zip(*kept, strict=True)] or self._choose(head, tail, target)
        whole, p = (torch.from_numpy(part).to(head.device) for part in parts)
        chosen, valid, rank_head, rank_tail = whole.long().unbind(1)
        heads = Side(head, self._head[chosen], p[:, 0], rank_head)
        tails = Side(tail, self._tail[chosen], p[:, 1], rank_tail)
        each = torch.arange(chosen.shape[1], device=head.device)
        return Recalled(heads, tails, each, each, self._relation[chosen], valid.bool())

    def _choose(self, head: Tensor, tail: Tensor, target: int) -> tuple[np.ndarray, np.ndarray]:
        """For each target (B, 4, P) the best facts, whether they are any, ranks of heads and tails; and p (B, 2, P)."""
        log_head, log_tail = self._log_recall(head), self._log_recall(tail)
        score = log_head[:, self._head_place] + log_tail[:, self._tail_place]
        h, t, inverse = head[:, None], tail[:, None], (target + self._relations) % (2 * self._relations)
        same = (self._head == h) & (self._tail == t) & (self._relation == target)
        same |= (self._head == t) & (self._tail == h) & (self._relation == inverse)
        best = score.masked_fill_(same, -torch.inf).topk(min(self._count, len(self._head)), dim=1)
        sides = ((log_head, self._head_place[best.indices]), (log_tail, self._tail_place[best.indices]))
        ranks = [_ranks(log_p).gather(1, place) for log_p, place in sides]
        whole = torch.stack([best.indices, (best.values > -torch.inf).long(), *ranks], 1)
        p = torch.stack([log_p.gather(1, place).exp() for log_p, place in sides], 1)
        return whole.int().cpu().numpy(), p.cpu().numpy()

    def _log_recall(self, nodes: Tensor) -> Tensor:
        """log p of the terms of facts, the same whatever else is in the batch: sums in doubles differ too little."""
        logits = self._recall.term[nodes].double() @ self._recall.context.double().T
        log_p = logits[:, self._terms] - logits.logsumexp(1, keepdim=True)
        return log_p.to(self._recall.term.dtype)

    def refresh(self, nodes: Tensor | None = None) -> None:
        """Choose anew: stage 1 has been pre-trained since."""
        self._chosen.clear()


def _ranks(value: Tensor) -> Tensor:
    """The place of each entry in its row (n, C), 1 for the highest; equal ones in their order."""
    order = value.argsort(dim=1, descending=True, stable=True)
    places = torch.arange(1, value.shape[1] + 1, device=value.device).expand_as(order)
    return torch.empty_like(order).scatter_(1, order, places)
