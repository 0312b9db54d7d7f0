"""Early stopping by a dev score."""

from __future__ import annotations

import copy

from torch import nn


class EarlyStopping:
    """Keeps the weights with the highest score, and stops after ``patience`` scores without a better one.

    A score is better if it exceeds the best by more than ``least``.
    """

    def __init__(self, module: nn.Module, patience: int, least: float) -> None:
        self.best = float("-inf")
        self._module, self._patience, self._least = module, patience, least
        self._state, self._waited = copy.deepcopy(module.state_dict()), 0

    def should_stop(self, score: float) -> bool:
        """Take the score of the current weights."""
        if score > self.best + self._least:
            self.best, self._waited, self._state = score, 0, copy.deepcopy(self._module.state_dict())
            return False
        self._waited += 1
        return self._waited >= self._patience

    def restore(self) -> None:
        """Give the module its best weights back."""
        self._module.load_state_dict(self._state)
