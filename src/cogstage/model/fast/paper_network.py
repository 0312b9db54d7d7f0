"""The published model computed faster: the same functions as :class:`PaperNetwork`, on any device.

What is recognised of a pair of terms depends on the two alone, so each distinct pair of a batch is computed once.
W_p falls into three blocks: υ_i·W_head and υ_j·W_tail are taken once for each term, and a_ij·W_relation =
p·(ξ·W_relation).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from cogstage.model.fast.paper_kernels import distinct_pairs, l1_scores, l1_triples, pair_sum
from cogstage.model.fast.recall import CHUNK, cross_entropy
from cogstage.model.paper import NEVER, Assumptions, PaperNetwork

PAIRS_AT_ONCE = 8192  # pairs whose vectors are computed together: they stay in the processor's cache


@dataclass(frozen=True)
class _Distinct:
    """The distinct pairs of terms among the assumptions of a batch."""

    nodes: Tensor  # (T,) the terms of the batch
    left: Tensor  # (U,) distinct pairs, as positions in nodes
    right: Tensor  # (U,)
    which: Tensor  # (B, P) the distinct pair of each assumption
    own: Tensor  # (x,) rows of U that are a target itself or turned round; they are shared with no other assumption
    own_mask: Tensor  # (x, K) their masked relations


class FastPaperNetwork(PaperNetwork):
    """Computes what :class:`PaperNetwork` does, faster; parameters have the same names and shapes."""

    def recall_loss(self, nodes: Tensor, targets: Tensor) -> Tensor:
        """L_n of nodes (n,) against sparse rows p̂ (n, V)."""
        position, column = targets.indices()
        return cross_entropy(
            F.embedding(nodes, self.term), self.context, position.contiguous(), column, targets.values()
        )

    @torch.no_grad()
    def recalled(self, nodes: Tensor) -> Tensor:
        """p(j|i) of candidates j, once for each distinct node: (n,) -> (n, C)."""
        distinct, which = torch.unique(nodes, return_inverse=True)
        rows = max(1, CHUNK // max(1, len(self.context)))
        parts = []
        for part in distinct.split(rows):
            logits = self.term[part] @ self.context.T
            norm = logits.logsumexp(1, keepdim=True)
            parts.append(logits[:, self.candidates].sub_(norm).exp_())
        return torch.cat(parts)[which] if parts else self.term.new_empty(0, len(self.candidates))

    @torch.no_grad()
    def associations(self, nodes: Tensor) -> Tensor:
        """The best candidates, chosen once for each distinct node: (n,) -> (n, N)."""
        distinct, which = torch.unique(nodes, return_inverse=True)
        return super().associations(distinct)[which]

    def scores(self, i: Tensor, j: Tensor) -> Tensor:
        """s_k of pairs of nodes: (m,), (m,) -> (m, K+1)."""
        nodes, row = torch.unique(torch.cat([i, j]), return_inverse=True)
        return l1_scores(self.vectors(nodes), self.relation, row[: len(i)], row[len(i) :])

    def recognition_loss(self, triples: Tensor, heads: Tensor, tails: Tensor, allowed: Tensor) -> Tensor:
        """L_r summed, all scores of a batch in one call."""
        batch, count = heads.shape
        parts = (triples[:, :1], triples[:, 2:], heads, tails)
        nodes, row = torch.unique(torch.cat([part.reshape(-1) for part in parts]), return_inverse=True)
        head, tail, heads, tails = (
            x.reshape(batch, -1) for x in row.split([batch, batch, batch * count, batch * count])
        )
        left = torch.cat([head, head.expand(-1, count), heads], 1)  # the triple, its corrupted tails and heads
        right = torch.cat([tail, tails, tail.expand(-1, count)], 1)
        name = triples[:, 1:2].expand(left.shape)
        flat = (x.reshape(-1).contiguous() for x in (left, name, right))
        scores = l1_triples(self.vectors(nodes), self.relation, *flat).reshape(batch, 1 + 2 * count)
        true, false = scores[:, :1], scores[:, 1:].reshape(batch, 2, count).transpose(0, 1)
        total = torch.cat([true.expand(2, batch, 1), false.masked_fill(~allowed, NEVER)], 2).logsumexp(2)  # (2, b)
        return (total - true[:, 0]).sum()

    def forward(self, head: Tensor, tail: Tensor) -> Assumptions:
        """Recall, recognise and decide for pairs (B,), (B,)."""
        if self.config.world == "closed":
            return self.closed_world(head, tail)
        heads, tails = self.associations(head), self.associations(tail)
        i, j = heads.repeat_interleave(tails.shape[1], dim=1), tails.repeat(1, heads.shape[1])
        pairs = self._distinct(i, j, head, tail)
        terms, d = self.vectors(pairs.nodes), self.config.dimension
        blocks = terms @ self.pair.weight[:, :d].T, F.linear(terms, self.pair.weight[:, d : 2 * d], self.pair.bias)
        named = self.relation[:-1] @ self.pair.weight[:, 2 * d :].T  # ξ·W_relation (K, d)
        masked = torch.zeros(len(pairs.left), self.na, dtype=torch.bool, device=head.device)
        masked[pairs.own] = pairs.own_mask
        gates, values, recognised = [], [], []
        for begin in range(0, len(pairs.left), PAIRS_AT_ONCE):
            part = slice(begin, begin + PAIRS_AT_ONCE)
            left, right = pairs.left[part], pairs.right[part]
            s = l1_scores(terms, self.relation, left, right)
            beats = (s[:, :-1].detach() > s[:, -1:].detach()) & ~masked[part]
            p = F.softmax(s[:, :-1].masked_fill(~beats, NEVER), dim=1) * beats
            e = pair_sum(*blocks, left, right, p, named).tanh()
            gates.append(self.attention(e).tanh() @ self.v.weight[0])
            values.append(e @ self.decision.weight[0])
            recognised.append(p.detach())
        gate, value = torch.cat(gates)[pairs.which], torch.cat(values)[pairs.which]
        p_ij = self.weights(gate, None)
        logit = (p_ij * value).sum(1) + self.decision.bias
        return Assumptions(i, j, torch.cat(recognised)[pairs.which], p_ij, value, logit)

    def _distinct(self, i: Tensor, j: Tensor, head: Tensor, tail: Tensor) -> _Distinct:
        device = i.device
        row = torch.zeros(len(self.term), dtype=torch.long, device=device)
        row[i.reshape(-1)] = 1
        row[j.reshape(-1)] = 1
        nodes = row.nonzero()[:, 0]
        row[nodes] = torch.arange(len(nodes), device=device)
        left, right = row[i].reshape(-1), row[j].reshape(-1)
        h, t = head[:, None], tail[:, None]
        own = (((i == h) & (j == t)) | ((i == t) & (j == h))).reshape(-1).nonzero()[:, 0]
        key = right
        if len(own):  # each is a pair apart
            key = right.clone()
            key[own] = len(nodes) + torch.arange(len(own), device=device)
        first, which = distinct_pairs(left, key)
        row, column = own // i.shape[1], own % i.shape[1]
        mask = self.masked(i[row, column][:, None], j[row, column][:, None], head[row], tail[row])[:, 0]
        return _Distinct(nodes, left[first], right[first], which.reshape(i.shape), which[own], mask)
