"""RESCAL (Nickel et al., 2011): hᵀ·R·t + b."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from cogstage.baselines.scorers.classifier import PairClassifier


class RescalLogit(nn.Module):
    """Every dimension of the head meets every dimension of the tail."""

    def __init__(self, dimension: int, dropout: float) -> None:
        super().__init__()
        self.relation = nn.Parameter(torch.zeros(dimension, dimension))
        self.bias = nn.Parameter(torch.zeros(()))
        self.dropout = nn.Dropout(dropout)

    def forward(self, head: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        """(M, d), (M, d) -> (M,)."""
        head, tail = self.dropout(head), self.dropout(tail)
        return ((head @ self.relation) * tail).sum(dim=1) + self.bias


@dataclass
class RescalScorer(PairClassifier):
    """A full matrix for the relation."""

    dropout: float = 0.3
    """Share of each input vector hidden in training."""

    name = "rescal"

    def module(self, dimension: int) -> nn.Module:
        """A fresh module."""
        return RescalLogit(dimension, self.dropout)
