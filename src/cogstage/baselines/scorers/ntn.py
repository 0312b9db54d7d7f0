"""NTN (Socher et al., 2013): uᵀ·tanh(hᵀ·W_{1..k}·t + V_h·h + V_t·t + b)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from cogstage.baselines.classifier import PairClassifier


class NtnLogit(nn.Module):
    """k bilinear slices and a linear layer under one tanh."""

    def __init__(self, dimension: int, slices: int) -> None:
        super().__init__()
        self.bilinear = nn.Parameter(torch.randn(slices, dimension, dimension) / dimension)
        self.head = nn.Parameter(torch.randn(slices, dimension) / dimension)
        self.tail = nn.Parameter(torch.randn(slices, dimension) / dimension)
        self.shift = nn.Parameter(torch.zeros(slices))
        self.out = nn.Parameter(torch.randn(slices) / slices**0.5)

    def forward(self, head: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        """(M, d), (M, d) -> (M,)."""
        slices, dimension, _ = self.bilinear.shape
        flat = self.bilinear.permute(1, 0, 2).reshape(dimension, slices * dimension)
        met = ((head @ flat).view(-1, slices, dimension) * tail[:, None, :]).sum(dim=2)  # (M, k)
        return torch.tanh(met + head @ self.head.T + tail @ self.tail.T + self.shift) @ self.out


@dataclass
class NtnScorer(PairClassifier):
    """Neural tensor network: a bilinear tensor layer and a linear layer with tanh."""

    slices: int = 4
    """k."""

    name = "ntn"
    title = "NTN"

    def module(self, dimension: int) -> nn.Module:
        """Untrained weights; forward(heads (M, d), tails (M, d)) gives logits (M,)."""
        return NtnLogit(dimension, self.slices)
