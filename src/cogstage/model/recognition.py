"""Stage 2, recognition: which relations hold between two terms.

    x_i        = [υ_i·√d / ‖υ_i‖ ; ρ_i·√d / ‖ρ_i‖] + δ_i
    head tower   a_i = tanh(x_i·W_h + b_h),      tail tower   z_j = tanh(x_j·W_t + b_t)
    s_k(i,j)   = c·a_iᵀ·M_k·z_j + γ_k·PPMI(i,j) + b_k + 50·ω_k·o(i,j),      s_NA = 0
    s_k⁻¹(i,j) = s_k(j,i)
    p(k|i,j)   = σ(s_k(i,j))
    μ_k(i)     = mean of φ(s_k(i,j)) over tails j of k, without PPMI and o;      φ(s) = s above NA, s/4 below it
    m_k(i)     = μ_k(i) - ½·mean of μ_k over heads of k
    L_r        = weighted logistic loss of s_k: 1 for facts, 0 for training, typed and random negatives and for facts
                 of other relations

o(i,j) = -o(j,i) in [-1, 1] says whether patients have i before j; a graph without order in time has no ω.
In a decision s_k is cut to ±6; a known fact has s_k = 6, and a relation between types that it never joins has s_k = 0.
m_k(i) says how strongly i is usually recognised, whatever the other term. Heads and tails are those of the known facts;
the tails are a sample, spread evenly over their order by mean score.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.model.config import Config
from cogstage.model.fast.memory import late_zeros, let_go
from cogstage.model.fast.recognition import recognise
from cogstage.triples import TripleIndex, UsualTypes

CUT = 6.0  # |s_k| in a decision at most
SAMPLE = 128  # tails behind m_k
ROWS = 1 << 13  # terms whose towers are computed together
ORDER_SCALE = 50.0  # of ω: o is small and the steps of training are few, so ω must move fast


@dataclass(frozen=True)
class Knowledge:
    """What is known of pairs of terms besides their vectors."""

    counts: PairCounts  # of the graph
    facts: TripleIndex  # the training facts
    types: UsualTypes | None  # which types a relation joins; None for a graph without types
    wrong: TripleIndex | None = None  # triples that a reader called wrong: not recognised, whatever the score
    order: PairOrder | None = None  # None for a graph without order in time


@dataclass(frozen=True)
class Views:
    """What decisions need of every term: c·a·M_k (V, R, w), z (V, w) and m (V, 2R)."""

    mixed: Tensor
    tail: Tensor
    usual: Tensor

    def usual_of(self, left: Tensor, right: Tensor) -> Tensor:
        """m_k(i) + m_k⁻¹(j): (...), (...) -> (..., 2R)."""
        return self.usual[left] + self.usual.roll(self.mixed.shape[1], 1)[right]


def phi(score: Tensor, inplace: bool = False) -> Tensor:
    """φ(s): what speaks against a relation weighs a quarter."""
    return F.leaky_relu(score, 0.25, inplace)


def features(knowledge: Knowledge, left: np.ndarray, right: np.ndarray) -> tuple[Tensor, Tensor | None]:
    """PPMI(i,j) and, where it is known, o(i,j) of pairs of nodes: (M,), (M,) -> (M,), (M,)."""
    ppmi = torch.from_numpy(knowledge.counts.ppmi(left, right))
    return ppmi, None if knowledge.order is None else torch.from_numpy(knowledge.order.lean(left, right))


class Recognition(nn.Module):
    """Holds ρ as stage 1 made it, δ, the two towers, M, γ, b and, where order in time is known, ω."""

    def __init__(self, config: Config, terms: int, relations: int, ordered: bool = False) -> None:
        super().__init__()
        d, w = config.dimension, config.tower
        self.dropout, self.relations = config.recognition_dropout, relations
        self.w_head = nn.Parameter(torch.randn(2 * d, w) * (2 * d) ** -0.5 * 0.6)  # W_h (2d, w)
        self.w_tail = nn.Parameter(torch.randn(2 * d, w) * (2 * d) ** -0.5 * 0.6)  # W_t (2d, w)
        self.b_head = nn.Parameter(torch.zeros(w))  # b_h (w,)
        self.b_tail = nn.Parameter(torch.zeros(w))  # b_t (w,)
        self.matrix = nn.Parameter(torch.randn(relations, w, w) * 0.02)  # M (R, w, w)
        self.ppmi = nn.Parameter(torch.zeros(relations))  # γ (R,)
        self.bias = nn.Parameter(torch.zeros(relations))  # b (R,)
        self.order = nn.Parameter(torch.zeros(relations)) if ordered else None  # ω (R,)
        self.offset = nn.Parameter(late_zeros(terms, 2 * d))  # δ (V, 2d)
        self.fact_vectors = nn.Parameter(late_zeros(terms, d), requires_grad=False)  # ρ (V, d)
        self.scale = 0.25 * (128 / w) ** 0.5  # c

    def inputs(self, recalled: Tensor, nodes: Tensor) -> Tensor:
        """x of some terms: υ (V, d), (T,) -> (T, 2d)."""
        known = (vectors.index_select(0, nodes) for vectors in (recalled.detach(), self.fact_vectors))
        directions = [F.normalize(vectors, dim=1) for vectors in known]
        x: Tensor = torch.cat(directions, 1) * recalled.shape[1] ** 0.5 + F.embedding(nodes, self.offset, sparse=True)
        return x

    def towers(self, recalled: Tensor, heads: Tensor, tails: Tensor) -> tuple[Tensor, Tensor]:
        """a of some terms and z of others: υ (V, d), (H,), (T,) -> (H, w), (T, w)."""
        head = (self.inputs(recalled, heads) @ self.w_head + self.b_head).tanh()
        tail = (self.inputs(recalled, tails) @ self.w_tail + self.b_tail).tanh()
        return self._drop(head), self._drop(tail)

    def _drop(self, tower: Tensor) -> Tensor:
        """Dropout; ``F.dropout`` draws its mask half as fast on a processor."""
        if not self.training or not self.dropout:
            return tower
        return tower * ((torch.rand_like(tower) >= self.dropout) / (1.0 - self.dropout))

    def loss(
        self,
        towers: tuple[Tensor, Tensor],
        triples: Tensor,
        ppmi: Tensor,
        label: Tensor,
        weight: Tensor,
        order: Tensor | None = None,
    ) -> Tensor:
        """L_r summed over triples (b, 3): row of the head tower, relation below R, row of the tail tower."""
        head, tail = towers
        total = head.new_zeros(())
        for k in range(self.relations):
            (chosen,) = (triples[:, 1] == k).nonzero(as_tuple=True)
            left, right = head.index_select(0, triples[chosen, 0]), tail.index_select(0, triples[chosen, 2])
            product = ((left @ self.matrix[k]) * right).sum(1)
            score = self.scale * product + self.ppmi[k] * ppmi[chosen] + self.bias[k]
            if self.order is not None and order is not None:
                score = score + ORDER_SCALE * self.order[k] * order[chosen]
            total = total + F.binary_cross_entropy_with_logits(score, label[chosen], weight[chosen], reduction="sum")
        return total

    @torch.no_grad()
    def all_towers(self, recalled: Tensor) -> tuple[Tensor, Tensor]:
        """a and z of every term, without dropout: υ (V, d) -> (V, w), (V, w)."""
        training = self.training
        self.eval()
        head, tail = (recalled.new_empty(len(recalled), len(bias)) for bias in (self.b_head, self.b_tail))
        for nodes in torch.arange(len(recalled)).tensor_split(-(-len(recalled) // ROWS)):
            head[nodes], tail[nodes] = self.towers(recalled, nodes, nodes)
            let_go(recalled, self.offset, self.fact_vectors)
        self.train(training)
        return head, tail

    @torch.no_grad()
    def mix(self, head: Tensor) -> Tensor:
        """c·a·M_k: (V, w) -> (V, R, w)."""
        wide = self.matrix.transpose(0, 1).reshape(head.shape[1], -1) * self.scale  # (w, R·w)
        mixed: Tensor = (head @ wide).reshape(len(head), self.relations, -1)
        return mixed

    @torch.no_grad()
    def views(self, mixed: Tensor, tail: Tensor, facts: TripleIndex, hidden: int | None = None) -> Views:
        """What decisions need, from c·a·M_k and z of every term; facts of the fold ``hidden`` are not known."""
        return Views(mixed, tail, self._usual(mixed, tail, facts, hidden))

    def _usual(self, mixed: Tensor, tail: Tensor, facts: TripleIndex, hidden: int | None) -> Tensor:
        """m_k of every term (V, 2R)."""
        usual, score = tail.new_zeros(len(tail), 2 * self.relations), tail.new_empty(len(tail), 32)
        for k in range(2 * self.relations):
            r, inverse = k % self.relations, (k + self.relations) % (2 * self.relations)
            one, other = (mixed[:, r], tail) if k < self.relations else (tail, mixed[:, r])
            heads, tails = facts.tails(inverse, hidden), facts.tails(k, hidden)
            if len(tails):
                order = torch.argsort(other[tails] @ one[heads].mean(0), stable=True).numpy()
                sample = tails[order[(2 * np.arange(SAMPLE) + 1) * len(tails) // (2 * SAMPLE)]]
                mean = tail.new_zeros(len(tail))  # μ_k
                for part in sample.reshape(-1, 32):  # (V, 32) scores at a time, always in the same memory
                    torch.mm(one, other[part].T, out=score).add_(self.bias[r]).clamp_(-CUT, CUT)
                    score[facts.holders(k, part, hidden)] = CUT
                    mean += phi(score, inplace=True).sum(1) / SAMPLE
                usual[:, k] = mean - mean[heads].mean() / 2
        return usual

    @torch.no_grad()
    def scores(self, views: Views, left: Tensor, right: Tensor, ppmi: Tensor, order: Tensor | None = None) -> Tensor:
        """s_k of pairs of nodes, as trained: (M,), (M,), (M,) -> (M, 2R), inverses second."""
        there, back = (
            torch.einsum("mrw,mw->mr", views.mixed[i], views.tail[j]) + self.bias + ppmi[:, None] * self.ppmi
            for i, j in ((left, right), (right, left))
        )
        score = torch.cat([there, back], 1)
        if self.order is None or order is None:
            return score
        lean = ORDER_SCALE * order[:, None] * self.order
        return score + torch.cat([lean, -lean], 1)

    @torch.no_grad()
    def recognise(
        self, views: Views, left: Tensor, right: Tensor, knowledge: Knowledge, hidden: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """s_k as a decision sees it, and which triples are known facts: (M,), (M,) -> (M, 2R), (M, 2R) bool.

        Facts of the fold ``hidden`` are not known. ``fast.recognition.recognise`` gives the same in one pass.
        """
        score, known = recognise(self, views, left, right, knowledge, hidden)
        if knowledge.wrong is not None:
            wrong = torch.from_numpy(knowledge.wrong.relations_of(left.numpy(), right.numpy()))
            score, known = score.masked_fill(wrong, 0.0), known & ~wrong
        return score, known

    @torch.no_grad()
    def recognise_plainly(
        self, views: Views, left: Tensor, right: Tensor, knowledge: Knowledge, hidden: int | None = None
    ) -> tuple[Tensor, Tensor]:
        """The literal form of :meth:`recognise`."""
        ends = left.numpy(), right.numpy()
        score = self.scores(views, left, right, *features(knowledge, *ends))
        known = torch.from_numpy(knowledge.facts.relations_of(*ends, hidden=hidden))
        if knowledge.types is not None:
            score = score * torch.from_numpy(knowledge.types.allowed(*ends))
        score = torch.where(known, torch.tensor(CUT, dtype=score.dtype), score.clamp(-CUT, CUT))
        wrong = (left == right)[:, None].expand_as(known)  # a term is in no relation to itself
        return score.masked_fill(wrong, 0.0), known & ~wrong
