"""Stage 2, recognition: which relations hold between two terms.

    x_i        = [ υ_i·√d / ‖υ_i‖ ; ρ_i·√d / ‖ρ_i‖ ] + δ_i
    head tower   a_i = tanh(x_i·W_h + b_h),      tail tower   z_j = tanh(x_j·W_t + b_t)
    related      s_k(i,j) = c·a_iᵀ·M_k·z_j + b_k + γ_k·PPMI(i,j) + 50·ω_k·o(i,j)      k rather than no relation
    contrast     d_k(i,j) = c·a_iᵀ·D_k·z_j + b'_k                                      k rather than another relation
    joined       r_k(i,j) = -log( exp(-s_k) + exp(-(d_k + τ)) )
    inverse      r_k⁻¹(i,j) = r_k(j,i)
    p(k|i,j)   = σ(r_k(i,j))
    mean score   μ_k(i) = mean of φ(r_k(i,j)), without PPMI and o, known facts as 6, over the tails j of 128 facts of k
                 m_k(i) = μ_k(i) - ½·mean of μ_k over the heads of k
                 φ(r) = r above 0, r/4 below it

o(i,j) = -o(j,i) in [-1, 1] says whether patients have i before j; for a graph without order in time it is 0.
In a decision r_k is cut to ±6; a known fact has r_k = 6, and a relation between types that fewer than 1 % of its facts
join, or of a term with itself, has r_k = 0. Heads and tails of k are those of the known facts, as often as they occur;
those of k⁻¹ are its tails and heads. The 128 facts are evenly spaced among those of k, ordered by head and tail: of n
facts the numbers ⌊(2s + 1)·n / 256⌋. m_k(i) says how strongly i is recognised whatever the other term.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.model.recall import directions
from cogstage.triples import TripleIndex, UsualTypes

CUT = 6.0  # |r_k| in a decision at most
SAMPLE = 128  # facts behind a mean score
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
class RecognitionWeights:
    """What stage 2 learns, for R relations, vectors of length d and towers of width w."""

    offset: np.ndarray  # δ (V, 2d)
    w_head: np.ndarray  # W_h (2d, w)
    b_head: np.ndarray  # b_h (w,)
    w_tail: np.ndarray  # W_t (2d, w)
    b_tail: np.ndarray  # b_t (w,)
    related: np.ndarray  # M (R, w, w)
    contrast: np.ndarray  # D (R, w, w)
    related_bias: np.ndarray  # b (R,)
    contrast_bias: np.ndarray  # b' (R,)
    ppmi: np.ndarray  # γ (R,)
    order: np.ndarray  # ω (R,)


def inputs(term: np.ndarray, fact: np.ndarray) -> np.ndarray:
    """x of every term before δ is added, from υ (V, d) and ρ (V, d): (V, 2d)."""
    x: np.ndarray = np.concatenate([directions(term), directions(fact)], 1) * term.dtype.type(term.shape[1] ** 0.5)
    return x


def tower_scale(width: int) -> float:
    """c."""
    scale: float = 0.25 * (128 / width) ** 0.5
    return scale


def join(related: np.ndarray, contrast: np.ndarray) -> np.ndarray:
    """-log(exp(-s) + exp(-d)), a soft minimum."""
    joined: np.ndarray = np.minimum(related, contrast) - np.log1p(np.exp(-np.abs(related - contrast)))
    return joined


def phi(score: np.ndarray) -> np.ndarray:
    """φ(r): what speaks against a relation weighs a quarter."""
    return np.where(score > 0, score, score * score.dtype.type(0.25))


class Recognition:
    """Recognition of one set of weights, with the towers and mean scores of all terms; ``hidden`` facts are not known.

    Cross-fitting hides the facts of a fold.
    """

    def __init__(
        self, weights: RecognitionWeights, x: np.ndarray, margin: float, facts: TripleIndex, hidden: int | None = None
    ) -> None:
        """``x`` (V, 2d) are the inputs of all terms before δ is added, ``margin`` is τ."""
        x = x + weights.offset
        self.weights, self.margin, self.hidden = weights, margin, hidden
        self.relations, width = len(weights.related_bias), weights.w_head.shape[1]
        self.head = np.tanh(x @ weights.w_head + weights.b_head)  # a (V, w)
        self.tail = np.tanh(x @ weights.w_tail + weights.b_tail)  # z (V, w)
        both = np.concatenate([weights.related, weights.contrast]) * self.head.dtype.type(tower_scale(width))
        self._from_head = both.transpose(1, 0, 2).reshape(width, -1)  # a ↦ c·a·M_k and c·a·D_k (w, 2R·w)
        self._from_tail = both.transpose(2, 0, 1).reshape(width, -1)  # z ↦ c·M_k·z and c·D_k·z
        self.mean_score = self._mean_scores(facts)  # m_k(i) (V, 2R)
        self._inverse_mean = np.roll(self.mean_score, self.relations, 1)  # m_k⁻¹(j)

    def _mean_scores(self, facts: TripleIndex) -> np.ndarray:
        mean_score = np.zeros((len(self.head), 2 * self.relations), self.head.dtype)
        for k in range(2 * self.relations):
            r, inverse = k % self.relations, (k + self.relations) % (2 * self.relations)
            heads, tails = facts.tails(inverse, self.hidden), facts.tails(k, self.hidden)
            if not len(tails):
                continue
            sample = tails[(2 * np.arange(SAMPLE) + 1) * len(tails) // (2 * SAMPLE)]
            one, others, project = (self.head, self.tail, self._from_tail)
            if k >= self.relations:
                one, others, project = self.tail, self.head, self._from_head
            projected = (others[sample] @ project).reshape(SAMPLE, 2 * self.relations, -1)[:, [r, self.relations + r]]
            related, contrast = (one @ projected[:, part].T for part in (0, 1))  # (V, SAMPLE)
            score = self._joined(related, contrast, r).clip(-CUT, CUT)
            score[facts.heads_of(k, sample, self.hidden)] = CUT
            mu = phi(score).mean(1)
            mean_score[:, k] = mu - mu[heads].mean() / 2
        return mean_score

    def _joined(self, related: np.ndarray, contrast: np.ndarray, k: int | slice = slice(None)) -> np.ndarray:
        """r from the bilinear parts of s and d, without PPMI and order: (..., R) -> (..., R)."""
        own = self.weights
        return join(related + own.related_bias[k], contrast + own.contrast_bias[k] + related.dtype.type(self.margin))

    def scores(self, node: np.ndarray, other: np.ndarray, knowledge: Knowledge) -> np.ndarray:
        """r_k as trained, between each node and each of its others: (B,), (B, N) -> (B, N, 2R), inverses second."""
        own, r = self.weights, self.relations
        some, row = np.unique(node, return_inverse=True)
        left, right = np.repeat(node, other.shape[1]), other.ravel()
        ppmi = knowledge.counts.ppmi(left, right).reshape(*other.shape, 1)
        shift = ppmi * own.ppmi
        lean = np.zeros((), self.head.dtype)
        if knowledge.order is not None:
            lean = ORDER_SCALE * knowledge.order.lean(left, right).reshape(*other.shape, 1) * own.order
        parts = []
        for project, tower, sign in (
            ((self.head[some] @ self._from_head), self.tail, 1),
            ((self.tail[some] @ self._from_tail), self.head, -1),
        ):
            projected = project.reshape(len(some), 2 * r, -1)[row.ravel()]  # (B, 2R, w)
            score = tower[other] @ projected.transpose(0, 2, 1)  # (B, N, 2R)
            related = score[..., :r] + shift + sign * lean
            parts.append(self._joined(related.astype(score.dtype), score[..., r:]))
        return np.concatenate(parts, 2)

    def recognise(self, node: np.ndarray, other: np.ndarray, knowledge: Knowledge) -> tuple[np.ndarray, np.ndarray]:
        """r_k as a decision sees it, and which triples are known facts: (B,), (B, N) -> two of (B, N, 2R)."""
        left, right = np.broadcast_to(node[:, None], other.shape), other
        score = self.scores(node, other, knowledge).clip(-CUT, CUT)
        if knowledge.types is not None:
            score *= knowledge.types.allowed(left, right)
        known = knowledge.facts.relations_of(left, right, hidden=self.hidden)
        score[known] = CUT
        not_recognised = np.broadcast_to((left == right)[..., None], score.shape)
        if knowledge.wrong is not None:
            not_recognised = not_recognised | knowledge.wrong.relations_of(left, right)
        score[not_recognised] = 0.0
        return score, known & ~not_recognised

    def lift(self, node: np.ndarray, other: np.ndarray, score: np.ndarray) -> np.ndarray:
        """r̂: r_k(i,j) less m_k(i) + m_k⁻¹(j), or 0 where the sign would change."""
        less = score - self.mean_score[node][:, None] - self._inverse_mean[other]
        return np.where(score > 0, less.clip(min=0), np.where(score < 0, less.clip(max=0), 0))
