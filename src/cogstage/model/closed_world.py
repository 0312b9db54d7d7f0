"""The closed world: assumptions are existing training facts (a, k, b), ranked by p(a|h)·p(b|t), the best 100 kept.

The target and its inverse are left out. Facts stand in both directions, as (a, k, b) and (b, k⁻¹, a).
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from cogstage.knowledge.dataset import Triples
from cogstage.model.cogstage import Recalled, Side
from cogstage.model.recall import Recall

AT_ONCE = 1 << 22  # (targets × facts) ranked together


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

    @torch.no_grad()
    def recalled(self, head: Tensor, tail: Tensor, target: int) -> Recalled:
        """The best facts for each target (head, relation ``target``, tail), best first."""
        batch, facts = len(head), len(self._head)
        count = min(self._count, facts)
        rows = max(1, AT_ONCE // max(1, facts))
        chosen = torch.empty(batch, count, dtype=torch.long, device=head.device)
        valid = torch.empty(batch, count, dtype=torch.bool, device=head.device)
        for begin in range(0, batch, rows):
            h, t = head[begin : begin + rows, None], tail[begin : begin + rows, None]
            score = self._log_recall(h[:, 0])[:, self._head_place] + self._log_recall(t[:, 0])[:, self._tail_place]
            inverse = (target + self._relations) % (2 * self._relations)
            same = (self._head == h) & (self._tail == t) & (self._relation == target)
            same |= (self._head == t) & (self._tail == h) & (self._relation == inverse)
            best = score.masked_fill_(same, -torch.inf).topk(count, dim=1)
            chosen[begin : begin + rows], valid[begin : begin + rows] = best.indices, best.values > -torch.inf
        heads, tails = (
            Side(target, self._terms[place[chosen]], *self._recall_of(target, place[chosen]))
            for target, place in ((head, self._head_place), (tail, self._tail_place))
        )
        each = torch.arange(count, device=head.device)
        return Recalled(heads, tails, each, each, self._relation[chosen], valid)

    def refresh(self, nodes: Tensor | None = None) -> None:
        """Nothing to do: recall does not move in the closed world."""

    def _log_recall(self, nodes: Tensor) -> Tensor:
        distinct, which = torch.unique(nodes, return_inverse=True)
        return self._recall.log_probabilities(distinct, self._terms)[which]

    def _recall_of(self, nodes: Tensor, places: Tensor) -> tuple[Tensor, Tensor]:
        """p of the terms at ``places`` (B, P) and their rank among all terms of facts."""
        distinct, which = torch.unique(nodes, return_inverse=True)
        log_p = self._recall.log_probabilities(distinct, self._terms)
        rank = log_p.argsort(dim=1, descending=True, stable=True).argsort(dim=1) + 1
        return log_p[which].gather(1, places).exp(), rank[which].gather(1, places)
