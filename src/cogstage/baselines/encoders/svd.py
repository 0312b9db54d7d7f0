"""SVD of the shifted PPMI matrix: the closed form of skip-gram with negative sampling (Levy and Goldberg, 2014)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress


@dataclass(frozen=True)
class SvdEncoder:
    """vectors = U·Σ^power of the randomized SVD of max(0, PMI - log k)."""

    dimension: int = 128
    """d."""
    negatives: float = 1.0
    """k: the shift is log k, so 1 is plain PPMI."""
    power: float = 0.5
    """Weight of the singular values: 1 keeps them, 0 drops them, 0.5 is in between (best on dev)."""
    smoothing: float = 1.0
    """Exponent of the context distribution."""
    iterations: int = 5
    """Power iterations of the randomized SVD."""

    name: ClassVar = "svd"
    title: ClassVar = "SVD"
    quick: ClassVar = {"dimension": 16}
    needs_facts: ClassVar = False

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32; the seed only decides the random projection, the result differs by rounding alone."""
        from sklearn.utils.extmath import randomized_svd

        progress.start("SVD of the PPMI matrix")
        matrix = graph.ppmi(shift=math.log(self.negatives), smoothing=self.smoothing).astype(np.float32)
        vectors = np.zeros((graph.n_nodes, self.dimension), np.float32)
        rank = min(self.dimension, graph.n_nodes)
        if matrix.nnz:
            u, sigma, _ = randomized_svd(matrix, rank, n_iter=self.iterations, random_state=seed)
            vectors[:, :rank] = u * sigma**self.power
        progress.done()
        return vectors
