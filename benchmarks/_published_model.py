"""The model as the paper writes it, in plain vectorised torch: every tensor of the equations is materialised.

Dense PPMI targets, pairs × relations × dimension for the scores, [υ_i; υ_j; a_ij] concatenated for every pair, dense
gradients for the whole embedding tables. The reference that the fast path is measured against.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class PublishedModel(nn.Module):
    """The three stages, one target relation."""

    def __init__(self, terms: int, relations: int, dimension: int) -> None:
        super().__init__()
        scale = dimension**-0.5
        self.na = 2 * relations
        self.term = nn.Embedding(terms, dimension)
        self.context = nn.Parameter(torch.randn(terms, dimension) * scale)
        self.relation = nn.Parameter(torch.randn(2 * relations + 1, dimension) * scale)
        nn.init.normal_(self.term.weight, std=scale)
        self.pair = nn.Linear(3 * dimension, dimension)
        self.attention = nn.Linear(dimension, dimension)
        self.v = nn.Linear(dimension, 1, bias=False)
        self.out = nn.Linear(dimension, 1)

    def recall_loss(self, nodes: Tensor, targets: Tensor) -> Tensor:
        """L_n against dense rows of p̂ (n, V)."""
        return -(targets * F.log_softmax(self.term(nodes) @ self.context.T, dim=1)).sum(1).mean()

    def associations(self, nodes: Tensor, candidates: Tensor, count: int) -> Tensor:
        """Recalled for every pair of every batch."""
        with torch.no_grad():
            p = F.softmax(self.term(nodes) @ self.context.T, dim=1)
            return candidates[p[:, candidates].topk(count, dim=1).indices]

    def triple_loss(self, triples: Tensor, heads: Tensor, tails: Tensor) -> Tensor:
        """L_r with corrupted heads and tails (b, n)."""
        h, r, t = self.term(triples[:, 0]), self.relation[triples[:, 1]], self.term(triples[:, 2])
        true = -(h + r - t).abs().sum(-1, keepdim=True)
        for_tail = -((h + r)[:, None] - self.term(tails)).abs().sum(-1)
        for_head = -(self.term(heads) + (r - t)[:, None]).abs().sum(-1)
        target = torch.zeros(len(triples), dtype=torch.long)
        return F.cross_entropy(torch.cat([true, for_tail], 1), target) + F.cross_entropy(
            torch.cat([true, for_head], 1), target
        )

    def relation_loss(self, left: Tensor, right: Tensor, relation: Tensor) -> Tensor:
        """What teaches NA its place."""
        s = -(self.term(left)[:, None] + self.relation - self.term(right)[:, None]).abs().sum(-1)
        return F.cross_entropy(s, relation)

    def logits(self, head: Tensor, tail: Tensor, heads: Tensor, tails: Tensor, target: int) -> Tensor:
        """Stages 2 and 3 for targets (B,) with associations (B, N)."""
        batch, count = heads.shape
        a, b = self.term(heads), self.term(tails)  # (B, N, d)
        left = a[:, :, None].expand(-1, -1, count, -1)  # (B, N, N, d)
        right = b[:, None].expand(-1, count, -1, -1)
        s = -(left[:, :, :, None] + self.relation - right[:, :, :, None]).abs().sum(-1)  # (B, N, N, K+1)
        beats = s[..., : self.na] > s[..., self.na :]
        there = (heads == head[:, None])[:, :, None] & (tails == tail[:, None])[:, None]
        back = (heads == tail[:, None])[:, :, None] & (tails == head[:, None])[:, None]
        names = torch.arange(self.na)
        beats = beats & ~(there[..., None] & (names == target)) & ~(back[..., None] & (names == target + self.na // 2))
        p = F.softmax(s[..., : self.na].masked_fill(~beats, -1e30), dim=-1) * beats
        assumption = p @ self.relation[: self.na]  # (B, N, N, d)
        e = torch.tanh(self.pair(torch.cat([left, right, assumption], -1)))
        g = self.v(torch.tanh(self.attention(e)))[..., 0].reshape(batch, -1)
        weight = F.softmax(g, dim=1)
        r = (weight[..., None] * e.reshape(batch, -1, e.shape[-1])).sum(1)
        return self.out(r)[:, 0]
