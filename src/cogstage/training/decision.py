"""Stage 3 while it learns: the weights of :mod:`cogstage.model.decision` for one target relation."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.model.config import Config
from cogstage.model.decision import DecisionWeights


class DecisionModule(nn.Module):
    """The parameters of :class:`DecisionWeights`, which names their equations."""

    def __init__(self, config: Config, target: int, opposite: np.ndarray) -> None:
        """``opposite`` (2R,) is True where a recognised triple must not count for the target."""
        super().__init__()
        own = np.arange(len(opposite)) == target
        self.reasons, self.closed = config.reasons, config.world == "closed"
        self._own, self._opposite = torch.from_numpy(own), torch.from_numpy(opposite)
        self.sharpness = nn.Parameter(torch.full((2,), 2.0))
        self.scale = nn.Parameter(torch.full((2,), 2.0))
        self.value = nn.Parameter(self._own * 0.5)
        self.fact = nn.Parameter(self._own * 0.5)
        self.pair = nn.Parameter(torch.zeros(2))
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, similarity: Tensor, lifted: Tensor, known: Tensor, pair: Tensor) -> Tensor:
        """Logits (B,) from ℓ (B, 2, N), r̂ and known (B, 2, N, 2R), PPMI and cosine (B, 2)."""
        weight = (similarity * self.sharpness.exp()[:, None]).softmax(2)
        assumed = torch.zeros_like(self.value) if self.closed else self.value
        value = F.leaky_relu(lifted, 0.25) * torch.where(known, self.fact, assumed)
        contribution = ((self.scale.exp()[:, None] * weight)[..., None] * value).flatten(1)
        n = min(self.reasons, contribution.shape[1])
        best, worst = contribution.topk(n, dim=1).values, contribution.topk(n, dim=1, largest=False).values
        return self.bias + (pair * self.pair).sum(1) + best.clamp(min=0).sum(1) + worst.clamp(max=0).sum(1)

    @torch.no_grad()
    def keep_signs(self) -> None:
        """Put η, ε, w and u back where their sign is the one a reader expects; called after each step."""
        self.pair.clamp_(min=0)
        for part in (self.value, self.fact):
            part.copy_(torch.where(self._own, part.clamp(min=0), torch.where(self._opposite, part.clamp(max=0), part)))

    def weights(self) -> DecisionWeights:
        """The parameters as arrays, copied; in the closed world recognised triples have no value."""
        arrays = {entry.name: getattr(self, entry.name).detach().numpy().copy() for entry in fields(DecisionWeights)}
        if self.closed:
            arrays["value"] = np.zeros_like(arrays["value"])
        return DecisionWeights(**arrays)
