"""Stage 3, decision: reasons that keep one end of the question, and their sum.

    weight     a(i|h) = softmax_i( σ_h·ℓ(h,i) ),   a(j|t) = softmax_j( σ_t·ℓ(t,j) )
    lift       ŝ_k(i,j) = s_k(i,j) - m_k(i) - m_k⁻¹(j), or 0 where the sign would change: more than is usual for i and j
    value      v(i,k,j) = w_k·φ(ŝ_k(i,j)), with u_k in place of w_k for a known fact
    reasons    c(h,k,j) = α·a(j|t)·v(h,k,j)      "h k j, and j is similar to t"
               c(i,k,t) = β·a(i|h)·v(i,k,t)      "i k t, and i is similar to h"
    pair       e(h,t) = η·PPMI(h,t) + ε·max(0, cos(υ_h, υ_t))      the counts of the pair itself
    decision   logit = b + e(h,t) + Σ of the n largest c > 0 + Σ of the n smallest c < 0          (n = 4)

Each target relation r has its own σ_h, σ_t, α, β, w, u, η, ε and b. η and ε are never negative. A triple of r itself
that is recognised or known never counts against r, and one of an opposite relation never counts for it: w and u have
that sign.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.config import Config
from cogstage.model.recognition import phi


@dataclass(frozen=True)
class WeighedReasons:
    """Every possible reason of a batch of questions and the decision that the strongest make."""

    weight: Tensor  # (B, 2, N) a
    contribution: Tensor  # (B, 2·N·K) c, by kind, (h, k, j) or (i, k, t), association and relation
    strongest_for: Tensor  # (B, n+1) positions of the largest c, largest first; the last is the one that steps in
    strongest_against: Tensor  # (B, n+1) positions of the smallest c, smallest first
    baseline: Tensor  # () b
    pair: Tensor  # (B, 2) the two summands of e
    logit: Tensor  # (B,)


def lift(score: Tensor, usual: Tensor) -> Tensor:
    """ŝ from s and m_k(i) + m_k⁻¹(j)."""
    less = score - usual
    return torch.where(score > 0, less.clamp(min=0), less.clamp(max=0) * (score < 0))


class Decision(nn.Module):
    """Holds 7 + 4R numbers for each of Q target relations."""

    def __init__(self, config: Config, targets: Sequence[int], relations: int, opposite: Tensor | None = None) -> None:
        """``opposite`` (Q, 2R) is True where a recognised triple must not count for the target."""
        super().__init__()
        many = len(targets)
        self.reasons, self.targets, self.closed = config.reasons, tuple(targets), config.world == "closed"
        self.own: Tensor
        self.opposite: Tensor
        own = F.one_hot(torch.tensor(list(targets)), 2 * relations)
        self.register_buffer("own", own.bool(), persistent=False)
        blocked = torch.zeros_like(own) if opposite is None else opposite
        self.register_buffer("opposite", blocked.bool(), persistent=False)
        self.sharpness = nn.Parameter(torch.full((many, 2), 2.0))  # log σ_t, log σ_h (Q, 2)
        self.scale = nn.Parameter(torch.full((many, 2), 2.0))  # log α, log β (Q, 2)
        self.value = nn.Parameter(own * 0.5)  # w (Q, K)
        self.fact = nn.Parameter(own * 0.5)  # u (Q, K)
        self.pair = nn.Parameter(torch.zeros(many, 2))  # η, ε (Q, 2)
        self.bias = nn.Parameter(torch.zeros(many))  # b (Q,)

    def forward(self, likeness: Tensor, lifted: Tensor, known: Tensor, pair: Tensor, q: int) -> WeighedReasons:
        """Weigh the reasons of questions: ℓ (B, 2, N), ŝ and known (B, 2, N, K), PPMI and cosine (B, 2)."""
        weight = (likeness * self.sharpness[q].exp()[:, None]).softmax(2)  # a (B, 2, N)
        assumed = torch.zeros_like(self.value[q]) if self.closed else self.value[q]  # w (K,)
        value = phi(lifted) * torch.where(known, self.fact[q], assumed)  # v (B, 2, N, K)
        contribution = (self.scale[q].exp()[:, None] * weight)[..., None] * value
        return self.decide(weight, contribution.flatten(1), pair * self.pair[q], q)

    def decide(self, weight: Tensor, contribution: Tensor, pair: Tensor, q: int) -> WeighedReasons:
        """The sum of e (B, 2) and the strongest of c (B, P)."""
        count = min(self.reasons + 1, contribution.shape[1])
        best, worst = contribution.topk(count, dim=1), contribution.topk(count, dim=1, largest=False)
        n = self.reasons
        reasons = best.values[:, :n].clamp(min=0).sum(1) + worst.values[:, :n].clamp(max=0).sum(1)
        logit = self.bias[q] + pair.sum(1) + reasons
        return WeighedReasons(weight, contribution, best.indices, worst.indices, self.bias[q], pair, logit)

    @torch.no_grad()
    def keep_signs(self) -> None:
        """Put η, ε, w and u back where their sign is the one a reader expects; called after each step."""
        self.pair.clamp_(min=0)
        for part in (self.value, self.fact):
            part.copy_(torch.where(self.own, part.clamp(min=0), torch.where(self.opposite, part.clamp(max=0), part)))
