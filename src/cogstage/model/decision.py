"""Stage 3, decision: reasons that keep one end of the question, and their sum.

    weight     a(i|h) = softmax_i( σ_h·ℓ(h,i) ),   a(j|t) = softmax_j( σ_t·ℓ(t,j) )
    lift       r̂_k(i,j) = r_k(i,j) - m_k(i) - m_k⁻¹(j), or 0 where the sign would change
    value      v(i,k,j) = w_k·φ(r̂_k(i,j)), with u_k in place of w_k for a known fact
    reasons    c(h,k,j) = α·a(j|t)·v(h,k,j)      "h k j, and j is similar to t"
               c(i,k,t) = β·a(i|h)·v(i,k,t)      "i k t, and i is similar to h"
    pair       e(h,t) = η·PPMI(h,t) + ε·max(0, cos(υ_h, υ_t))      the counts of the pair itself
    decision   logit = b + e(h,t) + Σ of the n largest c > 0 + Σ of the n smallest c < 0          (n = 4)

Each target relation has its own σ_h, σ_t, α, β, w, u, η, ε and b. η and ε are never negative. A triple of the target
relation that is recognised or known never counts against it, and one of an opposite relation never counts for it: w and
u have that sign.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogstage.model.fast.strongest import strongest
from cogstage.model.recognition import phi


@dataclass(frozen=True)
class PairView:
    """What is seen of a batch of pairs, the same for every relation asked."""

    head: np.ndarray  # (B,)
    tail: np.ndarray  # (B,)
    association: np.ndarray  # (B, 2, N) terms similar to the tail, terms similar to the head
    similarity: np.ndarray  # (B, 2, N) ℓ
    score: np.ndarray  # (B, 2, N, 2R) r_k of (h, j) and of (i, t)
    lifted: np.ndarray  # (B, 2, N, 2R) r̂_k
    known: np.ndarray  # (B, 2, N, 2R)
    pair: np.ndarray  # (B, 2) PPMI and cosine of head and tail


@dataclass(frozen=True)
class DecisionWeights:
    """What stage 3 learns for one target relation."""

    sharpness: np.ndarray  # log σ_t, log σ_h (2,)
    scale: np.ndarray  # log α, log β (2,)
    value: np.ndarray  # w (2R,)
    fact: np.ndarray  # u (2R,)
    pair: np.ndarray  # η, ε (2,)
    bias: np.ndarray  # b ()


@dataclass(frozen=True)
class Decision:
    """Every possible reason of a batch of questions and the decision that the strongest make."""

    weight: np.ndarray  # (B, 2, N) a
    contribution: np.ndarray  # (B, 2·N·2R) c, by kind, (h, k, j) or (i, k, t), association and relation
    strongest_for: np.ndarray  # (B, n+1) positions of the largest c, largest first; the last would take their place
    strongest_against: np.ndarray  # (B, n+1) positions of the smallest c, smallest first
    baseline: float  # b
    pair: np.ndarray  # (B, 2) the two summands of e
    logit: np.ndarray  # (B,)


def decide(weights: DecisionWeights, view: PairView, reasons: int) -> Decision:
    """Weigh all reasons of one target relation; ``reasons`` is n."""
    weight = _softmax(view.similarity * np.exp(weights.sharpness)[:, None])
    value = phi(view.lifted) * np.where(view.known, weights.fact, weights.value)  # v (B, 2, N, 2R)
    contribution = (np.exp(weights.scale)[:, None] * weight)[..., None] * value
    contribution = contribution.reshape(len(contribution), -1).astype(np.float64)
    count = min(reasons + 1, contribution.shape[1])
    largest, smallest = strongest(contribution, count), strongest(-contribution, count)
    pair = view.pair.astype(np.float64) * weights.pair
    baseline = float(weights.bias)
    logit = baseline + pair.sum(1)
    for positions, sign in ((largest, 1.0), (smallest, -1.0)):
        strength = sign * np.take_along_axis(contribution, positions[:, :reasons], 1)
        logit = logit + sign * strength.clip(min=0).sum(1)
    return Decision(weight, contribution, largest, smallest, baseline, pair, logit)


def _softmax(values: np.ndarray) -> np.ndarray:
    """Over the last axis."""
    powers = np.exp(values - values.max(axis=-1, keepdims=True, initial=-np.inf))
    result: np.ndarray = powers / powers.sum(axis=-1, keepdims=True)
    return result
