"""RESCAL (Nickel et al., 2011): hᵀ·R·t + b."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import nn

from cogstage.baselines.classifier import PairClassifier, Training


class RescalLogit(nn.Module):
    """Every dimension of the head meets every dimension of the tail."""

    def __init__(self, dimension: int) -> None:
        super().__init__()
        self.relation = nn.Parameter(torch.zeros(dimension, dimension))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, head: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        """(M, d), (M, d) -> (M,)."""
        return ((head @ self.relation) * tail).sum(dim=1) + self.bias


@dataclass
class RescalScorer(PairClassifier):
    """A full matrix for the relation."""

    training: Training = field(default_factory=lambda: Training(rate=3e-4))

    name = "rescal"
    title = "RESCAL"

    def module(self, dimension: int) -> nn.Module:
        """Untrained weights; forward(heads (M, d), tails (M, d)) gives logits (M,)."""
        return RescalLogit(dimension)
