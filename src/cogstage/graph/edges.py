"""Counted pairs as arrays, used by counting, privacy and the graph folder."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Edges:
    """Counted pairs, sorted by source and target; ``groups`` and ``order`` only where asked for."""

    source: np.ndarray  # int32 (E,)
    target: np.ndarray  # int32 (E,)
    count: np.ndarray  # int64 (E,)
    groups: np.ndarray | None = None  # int64 (E,): how many groups have the pair
    order: np.ndarray | None = None  # int32 (E, 3): groups in which source, target, or neither came first

    def __len__(self) -> int:
        return len(self.count)

    def upward(self) -> Edges:
        """The same edges with source < target; their order in time turns with them."""
        turned, order = self.source > self.target, self.order
        if order is not None:
            order = np.where(turned[:, None], order[:, [1, 0, 2]], order)
        source, target = np.minimum(self.source, self.target), np.maximum(self.source, self.target)
        return Edges(source, target, self.count, self.groups, order)

    def where(self, kept: np.ndarray) -> Edges:
        """The edges that ``kept`` (a mask) keeps."""
        groups = None if self.groups is None else self.groups[kept]
        order = None if self.order is None else self.order[kept]
        return Edges(self.source[kept], self.target[kept], self.count[kept], groups, order)
