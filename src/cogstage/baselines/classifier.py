"""Shared training of the scorers: scaled vectors, cross entropy, early stopping and weight decay by dev pairs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from cogstage.baselines.early_stopping import EarlyStopping
from cogstage.errors import CogstageError
from cogstage.knowledge.dataset import Pairs
from cogstage.progress import SILENT, Progress

SCORE_BATCH = 8192


@dataclass(frozen=True)
class Training:
    """Training options of a scorer. Every weight decay is tried, and the best on dev is kept."""

    rate: float = 1e-3
    """Adam's step size."""
    batch: int = 256
    """Pairs in a step."""
    epochs: int = 200
    """Most passes over the training pairs."""
    patience: int = 10
    """Passes without a lower dev loss before it stops."""
    weight_decays: tuple[float, ...] = (0.003, 0.03)
    """Weights of the squared parameters in the loss to choose from."""


@dataclass
class PairClassifier(ABC):
    """A binary classifier: from the vectors of a head and a tail to the logit of a relation."""

    training: Training = field(default_factory=Training)

    name: ClassVar[str]
    title: ClassVar[str]
    quick: ClassVar[dict[str, Any]] = {"training": Training(weight_decays=(0.3,), epochs=40, patience=4)}

    def __post_init__(self) -> None:
        self._vectors: torch.Tensor | None = None
        self._module: nn.Module | None = None

    @abstractmethod
    def module(self, dimension: int) -> nn.Module:
        """A fresh module: forward(heads (M, d), tails (M, d)) -> logits (M,)."""

    def fit(
        self, vectors: np.ndarray, train: Pairs, dev: Pairs, seed: int, progress: Progress = SILENT
    ) -> PairClassifier:
        """Train with each weight decay and keep the one with the lowest dev loss; early stopping by the same."""
        if not len(train):
            raise CogstageError("there are no training pairs to fit a scorer on")
        self._vectors = torch.from_numpy(scaled(vectors))
        best_loss = float("inf")
        progress.start(f"{self.name}", len(self.training.weight_decays))
        for decay in self.training.weight_decays:
            torch.manual_seed(seed)
            module = self.module(vectors.shape[1])
            loss = self._train(module, decay, train, dev if len(dev) else train, seed)
            if loss < best_loss or self._module is None:
                best_loss, self._module = loss, module
            progress.advance(1, f"dev loss {best_loss:.4f}")
        progress.done(f"dev loss {best_loss:.4f}")
        return self

    def scores(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Probabilities (M,) for pairs of term ids."""
        if self._module is None or self._vectors is None:
            raise CogstageError(f"{self.name} is not fitted yet")
        self._module.eval()
        parts = []
        with torch.inference_mode():
            for start in range(0, len(head), SCORE_BATCH):
                h, t = (
                    torch.from_numpy(np.asarray(ids[start : start + SCORE_BATCH], np.int64)) for ids in (head, tail)
                )
                parts.append(torch.sigmoid(self._module(self._vectors[h], self._vectors[t]).double()).numpy())
        return np.concatenate(parts) if parts else np.empty(0)

    def _train(self, module: nn.Module, decay: float, train: Pairs, dev: Pairs, seed: int) -> float:
        """Train ``module`` in place to its lowest dev loss, which is returned."""
        assert self._vectors is not None
        vectors, options = self._vectors, self.training
        adam = torch.optim.Adam(module.parameters(), options.rate, weight_decay=decay)
        order = torch.Generator().manual_seed(seed)
        heads, tails, labels = tensors(train)
        dev_heads, dev_tails, dev_labels = tensors(dev)
        stopping = EarlyStopping(module, options.patience, least=1e-5)
        for _ in range(options.epochs):
            module.train()
            for chosen in torch.split(torch.randperm(len(labels), generator=order), options.batch):
                logits = module(vectors[heads[chosen]], vectors[tails[chosen]])
                loss = nn.functional.binary_cross_entropy_with_logits(logits, labels[chosen])
                adam.zero_grad()
                torch.autograd.backward(loss)
                adam.step()
            module.eval()
            with torch.inference_mode():
                logits = module(vectors[dev_heads], vectors[dev_tails])
                dev_loss = float(nn.functional.binary_cross_entropy_with_logits(logits, dev_labels))
            if stopping.should_stop(-dev_loss):
                break
        stopping.restore()
        return -stopping.best


def scaled(vectors: np.ndarray) -> np.ndarray:
    """Rows of length √d, so that a coordinate is of the order of 1; rows of zeros stay.

    The length of a row reflects the frequency of a term, which is not informative about pairs.
    """
    vectors = np.asarray(vectors, np.float32)
    length = np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    result: np.ndarray = vectors / length * np.float32(vectors.shape[1] ** 0.5)
    return result


def tensors(pairs: Pairs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Heads, tails and labels for torch."""
    return (
        torch.from_numpy(pairs.head.astype(np.int64)),
        torch.from_numpy(pairs.tail.astype(np.int64)),
        torch.from_numpy(pairs.label.astype(np.float32)),
    )
