"""DistMult (Yang et al., 2015): Σ_d h_d·r_d·t_d + b."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from cogstage.baselines.classifier import PairClassifier, Training


class DistMultLogit(nn.Module):
    """Logistic regression on the products of the two vectors."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.relation = nn.Parameter(torch.zeros(dimension))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, head: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        """(M, d), (M, d) -> (M,)."""
        return (head * tail) @ self.relation + self.bias


@dataclass
class DistMultScorer(PairClassifier):
    """One weight for each dimension."""

    training: Training = field(default_factory=lambda: Training(rate=3e-3))

    name = "distmult"
    title = "DistMult"

    def module(self, dimension: int) -> nn.Module:
        """Untrained weights; forward(heads (M, d), tails (M, d)) gives logits (M,)."""
        return DistMultLogit(dimension)
