"""Stage 2 with a bilinear score: recognition learned as a logistic decision for each relation.

    x_i       = υ_i·√d / ‖υ_i‖ + δ_i
    s_k(i,j)  = c·tanh(x_i·W_h + b_h)ᵀ · M_k · tanh(x_j·W_t + b_t) + b_k,     s_NA = 0
    s_k⁻¹(i,j) = s_k(j,i)
    L_r       = logistic loss of s_k on facts (1), training negatives, typed and random negatives (0)

NA is the threshold 0. Only L_r moves it: stage 3 takes its scores as they are.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.config import Config
from cogstage.model.kernels import bilinear_scores


class Bilinear(nn.Module):
    """Holds the two towers, M, b and δ; and ξ, with which stage 3 reads the relations."""

    def __init__(self, config: Config, terms: int, relations: int) -> None:
        super().__init__()
        self.n_relations, self.config = relations, config
        d, w = config.dimension, config.tower
        self.relation = nn.Parameter(torch.randn(2 * relations + 1, d) * d**-0.5)  # ξ (K+1, d)
        self.w_head = nn.Parameter(torch.randn(d, w) * d**-0.5 * 0.6)  # W_h (d, w)
        self.w_tail = nn.Parameter(torch.randn(d, w) * d**-0.5 * 0.6)  # W_t (d, w)
        self.b_head = nn.Parameter(torch.zeros(w))  # b_h
        self.b_tail = nn.Parameter(torch.zeros(w))  # b_t
        self.matrix = nn.Parameter(torch.randn(relations, w, w) * 0.02)  # M (R, w, w)
        self.bias = nn.Parameter(torch.zeros(relations))  # b (R,)
        self.offset = nn.Parameter(torch.zeros(terms, d))  # δ (V, d)
        self.scale = 0.25 * (128 / w) ** 0.5  # c

    @property
    def na(self) -> int:
        """How many relations there are with their inverses."""
        return 2 * self.n_relations

    def terms(self, recalled: Tensor, nodes: Tensor) -> Tensor:
        """x of terms: (V, d), (T,) -> (T, d)."""
        vectors = recalled.detach()[nodes]
        scaled: Tensor = F.normalize(vectors, dim=1) * vectors.shape[1] ** 0.5
        return scaled + F.embedding(nodes, self.offset, sparse=self.config.optimizer == "lazy_adam")

    def towers(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """The head's and the tail's view of terms: (T, w), (T, w)."""
        head, tail = (terms @ self.w_head + self.b_head).tanh(), (terms @ self.w_tail + self.b_tail).tanh()
        drop = self.config.recognition_dropout
        return F.dropout(head, drop, self.training), F.dropout(tail, drop, self.training)

    @torch.no_grad()
    def views(self, terms: Tensor) -> tuple[Tensor, Tensor]:
        """c·head·M_k (T, R, w) and tail (T, w) of terms: what is taken once for each term. No gradient, no dropout."""
        head = (terms @ self.w_head + self.b_head).tanh()
        tail = (terms @ self.w_tail + self.b_tail).tanh()
        wide = self.matrix.transpose(0, 1).reshape(head.shape[1], -1) * self.scale  # (w, R·w)
        return (head @ wide).reshape(len(terms), self.n_relations, -1), tail

    @torch.no_grad()
    def scores(self, views: tuple[Tensor, Tensor], left: Tensor, right: Tensor) -> Tensor:
        """s_k for pairs (left[m], right[m]) of the terms behind ``views``: (M, K+1), NA last."""
        return bilinear_scores(*views, self.bias, left, right)

    def logistic_loss(self, terms: Tensor, triples: Tensor, label: Tensor, weight: Tensor) -> Tensor:
        """Weighted logistic loss, summed over triples (b, 3) of rows of ``terms`` with relations below R."""
        head, tail = self.towers(terms)
        total = terms.new_zeros(())
        for relation in range(self.n_relations):
            chosen = (triples[:, 1] == relation).nonzero()[:, 0]
            left, right = triples[chosen, 0], triples[chosen, 2]
            score = ((head[left] @ self.matrix[relation]) * tail[right]).sum(1) * self.scale + self.bias[relation]
            loss = F.binary_cross_entropy_with_logits(score, label[chosen], weight[chosen], reduction="sum")
            total = total + loss
        return total
