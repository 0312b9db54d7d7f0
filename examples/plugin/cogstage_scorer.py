"""A scorer of its own module, since it loads torch."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from cogstage.baselines.classifier import PairClassifier


class CosineLogit(nn.Module):
    """a·cos(h, t) + b."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))

    def forward(self, head: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        """(M, d), (M, d) -> (M,)."""
        return self.scale * nn.functional.cosine_similarity(head, tail) + self.bias


@dataclass
class CosineScorer(PairClassifier):
    """Logistic regression on the cosine of the two vectors."""

    name = "cosine"
    title = "Cosine"

    def module(self, dimension: int) -> nn.Module:
        """A fresh module."""
        return CosineLogit()
