"""Stage 3, decision: the assumptions are weighed and the target relation is decided.

    g_ij   = vᵀ·tanh(W_a·e_ij + b_a)
    p_ij   = softmax of g over all N_h·N_t pairs
    r      = Σ p_ij·e_ij,   p(r|h,t) = σ(W_r·r + b_r)

W_r·r = Σ p_ij·(W_r·e_ij): the logit is a weighted sum over assumptions, each with a signed value W_r·e_ij.
One head (W_a, b_a, v, W_r, b_r) for each target relation.
"""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from cogstage.model.config import Config

NEVER = -1e30


class Decision(nn.Module):
    """Holds a head for each target relation."""

    def __init__(self, config: Config, heads: int) -> None:
        super().__init__()
        self.attention = config.attention
        self.bf16 = config.precision == "bf16" and has_bf16()
        dimension = config.pair_dimension or config.dimension
        scale = dimension**-0.5
        layer = config.attention_layer
        self.w_attention = nn.Parameter(torch.randn(heads, dimension, dimension) * scale) if layer else None  # W_a
        self.b_attention = nn.Parameter(torch.zeros(heads, dimension)) if layer else None  # b_a (Q, e); W_a (Q, e, e)
        # Without its layer attention begins uniform (v = 0), so that values are learned before it: from a random start
        # some seeds settle on poor assumptions.
        random = torch.randn(heads, dimension) * scale
        self.v = nn.Parameter(random if config.attention_layer else torch.zeros_like(random))  # v (Q, d)
        self.w_relation = nn.Parameter(torch.randn(heads, dimension) * scale)  # W_r (Q, d)
        self.bias = nn.Parameter(torch.zeros(heads))  # b_r (Q,)
        start = torch.full((heads,), config.temperature)
        self.sharpness = nn.Parameter(start.log()) if config.temperature else None  # log of the factor on g (Q,)

    def weigh(self, vectors: Tensor, head: int) -> tuple[Tensor, Tensor]:
        """g and the value W_r·e of assumption vectors e (M, d): (M,), (M,)."""
        hidden = vectors
        if self.w_attention is not None and self.b_attention is not None:
            with torch.autocast(vectors.device.type, torch.bfloat16, enabled=self.bf16):
                hidden = torch.addmm(self.b_attention[head], vectors, self.w_attention[head])
            hidden = hidden.to(vectors.dtype).tanh()
        gate = hidden @ self.v[head]
        if self.sharpness is not None:
            gate = gate * self.sharpness[head].exp()
        return gate, vectors @ self.w_relation[head]

    def weights(self, gate: Tensor, keep: Tensor | None = None) -> Tensor:
        """p_ij from g (B, P) over the assumptions that are kept; all 0 where none is."""
        if keep is not None:
            gate = gate.masked_fill(~keep, NEVER)
        p = {"softmax": _softmax, "sparsemax": sparsemax, "entmax": entmax}[self.attention](gate)
        return p if keep is None else p * keep

    def logit(self, attention: Tensor, value: Tensor, head: int) -> Tensor:
        """Σ p_ij·value_ij + b_r: (B, P), (B, P) -> (B,)."""
        return (attention * value).sum(1) + self.bias[head]


def has_bf16() -> bool:
    """Whether this machine multiplies bfloat16 in hardware."""
    if torch.cuda.is_available():
        return bool(torch.cuda.is_bf16_supported())
    flags = Path("/proc/cpuinfo")
    return flags.exists() and "bf16" in flags.read_text(encoding="utf-8", errors="ignore")


def effective_number(weight: Tensor) -> Tensor:
    """How many assumptions a decision rests on: exp of the entropy of weights (B, P) made to sum to 1. (B,)."""
    weight = weight / weight.sum(1, keepdim=True).clamp(min=1e-30)
    return (-(weight * weight.clamp(min=1e-30).log()).sum(1)).exp()


def _softmax(gate: Tensor) -> Tensor:
    return gate.softmax(1)


def _lowered(gate: Tensor) -> Tensor:
    """g with its maximum at 0, cut far below where any weight is left, so that squares stay finite."""
    return (gate - gate.detach().max(dim=1, keepdim=True).values).clamp(min=-8.0)


def sparsemax(gate: Tensor) -> Tensor:
    """The nearest point of the simplex: max(g - τ, 0), most entries exactly 0."""
    gate = _lowered(gate)
    ordered = gate.detach().sort(dim=1, descending=True).values
    rank = torch.arange(1, gate.shape[1] + 1, device=gate.device, dtype=gate.dtype)
    total = ordered.cumsum(1)
    support = (1 + rank * ordered > total).sum(1, keepdim=True)
    chosen = gate.detach() >= ordered.gather(1, support - 1)
    # τ as a function of the support's entries, so that the gradient is that of the projection
    threshold = ((gate * chosen).sum(1, keepdim=True) - 1) / chosen.sum(1, keepdim=True)
    return (gate - threshold).clamp(min=0.0) * chosen


def entmax(gate: Tensor) -> Tensor:
    """1.5-entmax, between softmax and sparsemax: max(g/2 - τ, 0)²."""
    half = _lowered(gate) / 2
    fixed = half.detach()
    ordered = fixed.sort(dim=1, descending=True).values
    rank = torch.arange(1, gate.shape[1] + 1, device=gate.device, dtype=gate.dtype)
    mean = ordered.cumsum(1) / rank
    spread = (ordered**2).cumsum(1) / rank - mean**2
    tau = mean - ((1 - rank * spread) / rank).clamp(min=0.0).sqrt()
    support = (tau <= ordered).sum(1, keepdim=True)
    chosen = fixed >= ordered.gather(1, support - 1)
    count = chosen.sum(1, keepdim=True)
    mean = (half * chosen).sum(1, keepdim=True) / count
    spread = ((half - mean) ** 2 * chosen).sum(1, keepdim=True)
    threshold = mean - ((1 - spread).clamp(min=1e-12) / count).sqrt()
    return (half - threshold).clamp(min=0.0) ** 2 * chosen
