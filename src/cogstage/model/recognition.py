"""Stage 2, recognition: which relation, if any, holds between two recalled terms.

    s_k(i,j) = -‖υ_i + ξ_k - υ_j‖₁            for the relations, their inverses, and NA
    p(k|i,j) = softmax over the k with s_k > s_NA, 0 for the others
    a_ij     = Σ_k p(k|i,j)·ξ_k               the zero vector where no relation beats NA
    e_ij     = tanh([υ_i; υ_j; a_ij]·W_p + b_p)

W_p falls into three blocks: υ_i·W_head and υ_j·W_tail are taken once for each term, and
a_ij·W_relation = p·(ξ·W_relation). Relations are numbered k = 0..n-1, their inverses n..2n-1, NA = 2n; K = 2n.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.kernels import l1_scores, l1_triples, pair_sum

NEVER = -1e30  # a finite stand-in for -∞: an empty softmax stays finite and is then set to 0


class Recognition(nn.Module):
    """Holds ξ, W_p and b_p."""

    def __init__(self, relations: int, dimension: int, margins: bool, margin_clip: float) -> None:
        super().__init__()
        self.n_relations, self.margin_clip = relations, margin_clip
        scale = dimension**-0.5
        self.relation = nn.Parameter(torch.randn(2 * relations + 1, dimension) * scale)  # ξ (K+1, d), NA last
        self.w_head = nn.Parameter(torch.randn(dimension, dimension) * scale)  # W_p, upper block (d, d)
        self.w_tail = nn.Parameter(torch.randn(dimension, dimension) * scale)  # W_p, middle block (d, d)
        self.w_relation = nn.Parameter(torch.randn(dimension, dimension) * scale)  # W_p, lower block (d, d)
        self.bias = nn.Parameter(torch.zeros(dimension))  # b_p (d,)
        self.w_margin = nn.Parameter(torch.zeros(2 * relations, dimension)) if margins else None  # (K, d)

    @property
    def na(self) -> int:
        """Number of the relation NA."""
        return 2 * self.n_relations

    def inverse(self, relation: Tensor) -> Tensor:
        """Number of r⁻¹ for each r."""
        return (relation + self.n_relations) % self.na

    def scores(self, terms: Tensor, left: Tensor, right: Tensor) -> Tensor:
        """s_k for pairs (left[m], right[m]) of rows of ``terms`` (T, d): (M, K+1), NA last."""
        return l1_scores(terms, self.relation, left, right)

    def probabilities(self, scores: Tensor, masked: Tensor | None = None) -> Tensor:
        """p(k|i,j), (M, K+1) -> (M, K); where ``masked`` (M, K) says so the relation is not considered at all."""
        relations = scores[:, : self.na]
        beats = relations.detach() > scores[:, self.na :].detach()
        if masked is not None:
            beats = beats & ~masked
        return F.softmax(relations.masked_fill(~beats, NEVER), dim=1) * beats

    def margins(self, scores: Tensor, masked: Tensor | None = None) -> Tensor:
        """s_k - s_NA cut to ±clip, (M, K+1) -> (M, K); 0 for a masked relation."""
        margins = (scores[:, : self.na] - scores[:, self.na :]).clamp(-self.margin_clip, self.margin_clip)
        return margins if masked is None else margins.masked_fill(masked, 0.0)

    def blocks(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """υ·W_head and υ·W_tail + b_p for each term: (T, d), (T, d)."""
        return terms @ self.w_head, terms @ self.w_tail + self.bias

    def vectors(
        self, blocks: tuple[Tensor, Tensor], left: Tensor, right: Tensor, p: Tensor, margins: Tensor | None
    ) -> Tensor:
        """e_ij of pairs: (M, d)."""
        weights = self.relation[: self.na] @ self.w_relation  # (K, d)
        if margins is not None and self.w_margin is not None:
            p, weights = torch.cat([p, margins], 1), torch.cat([weights, self.w_margin])
        return pair_sum(*blocks, left, right, p, weights).tanh()

    def triple_loss(self, terms: Tensor, triples: Tensor, heads: Tensor, tails: Tensor, allowed: Tensor) -> Tensor:
        """L_r summed over triples (b, 3): -log p(t|h,r) - log p(h|t,r), each against n corrupted ones.

        All are rows of ``terms`` (T, d); corrupted ``heads`` and ``tails`` are (b, n), and ``allowed`` (2, b, n) is
        False where one of them is a known fact after all.
        """
        batch, count = heads.shape
        head, relation, tail = triples.T
        same = [x[:, None].expand(batch, count) for x in (head, relation, tail)]
        left = torch.cat([head[:, None], same[0], heads], 1)  # the triple, its corrupted tails, its corrupted heads
        name = relation[:, None].expand(left.shape)
        right = torch.cat([tail[:, None], tails, same[2]], 1)
        flat = (x.reshape(-1).contiguous() for x in (left, name, right))
        scores = l1_triples(terms, self.relation, *flat).reshape(batch, 1 + 2 * count)
        true, false = scores[:, :1], scores[:, 1:].reshape(batch, 2, count).transpose(0, 1)
        false = false.masked_fill(~allowed, NEVER)
        total = torch.cat([true.expand(2, batch, 1), false], 2).logsumexp(2)  # (2, b)
        return (total - true[:, 0]).sum()

    def relation_loss(self, terms: Tensor, left: Tensor, right: Tensor, relation: Tensor) -> Tensor:
        """-log softmax over all relations and NA of s, summed over pairs: what teaches NA its place."""
        return F.cross_entropy(self.scores(terms, left, right), relation, reduction="sum")
