"""The triples behind a decision of the published model, each with its share of the logit."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from cogstage.model.paper import PaperNetwork


@dataclass(frozen=True)
class Reasons:
    """The T triples behind one decision, highest rationale score first: logit = baseline + Σ share + rest."""

    triples: Tensor  # (T, 3) i, k, j
    share: Tensor  # (T,) p_ij·p(k|i,j)·(W_r·e_ij)
    score: Tensor  # (T,) p_ij·p(k|i,j), the paper's rationale score
    relation_probability: Tensor  # (T,) p(k|i,j)
    recall_probability: Tensor  # (T, 2) p(i|h), p(j|t)
    recall_rank: Tensor  # (T, 2) rank of i among the candidates by p(·|h), and of j by p(·|t); 1 is the likeliest
    baseline: float  # b_r
    rest: float  # what pairs contribute in which no relation beats NA
    logit: float


@torch.no_grad()
def reasons(network: PaperNetwork, head: Tensor, tail: Tensor) -> list[Reasons]:
    """The reasons of each pair (B,), (B,); sums are taken in double precision."""
    made, baseline = network(head, tail), float(network.decision.bias.double())
    contribution = made.attention.double() * made.value.double()  # (B, P)
    unformed = (made.relation_probability == 0).all(-1)
    recalled = [network.recalled(ends) for ends in (head, tail)]  # (B, C)
    found = []
    for row in range(len(head)):
        at, k = made.relation_probability[row].nonzero().T
        p = made.relation_probability[row, at, k].double()
        score = made.attention[row, at].double() * p
        order = score.argsort(descending=True, stable=True)
        at, k, p, score = at[order], k[order], p[order], score[order]
        ends = made.left[row, at], made.right[row, at]
        share, rest = contribution[row, at] * p, float(contribution[row][unformed[row]].sum())
        place = [torch.searchsorted(network.candidates, x.contiguous()) for x in ends]
        recall = torch.stack([side[row, x] for side, x in zip(recalled, place, strict=True)], 1)
        rank = torch.stack([_ranks(side[row])[x] for side, x in zip(recalled, place, strict=True)], 1)
        triples, logit = torch.stack([ends[0], k, ends[1]], 1), baseline + float(share.sum()) + rest
        found.append(Reasons(triples, share, score, p, recall, rank, baseline, rest, logit))
    return found


def _ranks(value: Tensor) -> Tensor:
    """The rank of each entry (C,), 1 for the highest; equal ones in their order."""
    order = value.argsort(descending=True, stable=True)
    return torch.empty_like(order).scatter_(0, order, torch.arange(1, len(value) + 1, device=value.device))
