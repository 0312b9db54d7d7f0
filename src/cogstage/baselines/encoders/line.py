"""LINE, second order (Tang et al., 2015): a term predicts the terms it is joined to, edges drawn by their weight."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy.sparse as sp

from cogstage.baselines.edge_weights import EdgeWeight, edge_matrix
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress

ROUND = 1_000_000  # sampled edges between two progress reports
LOWEST_RATE = 1e-4  # of the first rate


@dataclass(frozen=True)
class LineEncoder:
    """Edge sampling with alias tables, stochastic gradient steps in compiled code."""

    dimension: int = 128
    """d."""
    negatives: int = 5
    """Noise terms for each edge, drawn by degree^0.75."""
    epochs: float = 5.0
    """Drawn edges for each edge of the graph; more fit it better and tell relations worse."""
    rate: float = 0.1
    """First step size; it falls to nothing along a line."""
    weight: EdgeWeight = "ppmi"
    """What makes an edge likely: ``ppmi`` or the plain ``count``."""
    workers: int = 1
    """Threads without locks on the same vectors; with more than one the result depends on their timing."""

    name: ClassVar = "line"
    title: ClassVar = "LINE"
    quick: ClassVar = {"dimension": 16, "epochs": 60}
    needs_facts: ClassVar = False

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32; the same for the same seed with one worker."""
        training = EdgeTraining.start(edge_matrix(graph, self.weight), self.dimension, self.negatives, seed)
        total = int(self.epochs * len(training.source))
        progress.start("LINE", total)
        for begin, end in rounds(total):
            training.run(end - begin, falling(self.rate, begin / total), falling(self.rate, end / total), self.workers)
            progress.advance(end - begin)
        progress.done()
        return training.vectors


def falling(rate: float, share: float) -> float:
    """The step size after a share of the work."""
    return rate * max(1.0 - share, LOWEST_RATE)


def rounds(total: int, size: int = ROUND) -> Iterator[tuple[int, int]]:
    """``total`` steps cut into rounds."""
    for begin in range(0, total, size):
        yield begin, min(begin + size, total)


@dataclass
class EdgeTraining:
    """Vectors under training on drawn edges."""

    vectors: np.ndarray  # float32 (V, d)
    contexts: np.ndarray  # float32 (V, d)
    source: np.ndarray
    target: np.ndarray
    edges: tuple[np.ndarray, np.ndarray]  # alias table over edges
    noise: tuple[np.ndarray, np.ndarray]  # alias table over terms
    negatives: int
    seed: int
    _calls: int = 0

    @classmethod
    def start(cls, weights: sp.csr_matrix, dimension: int, negatives: int, seed: int) -> EdgeTraining:
        """Small random vectors, zero contexts, and the tables to draw from."""
        from cogstage.baselines.kernels import alias_rows

        upper = sp.triu(weights, k=1).tocoo()
        degree = np.asarray(weights.sum(axis=1)).ravel()
        n_nodes = len(degree)
        rng = np.random.default_rng(seed)
        vectors = ((rng.random((n_nodes, dimension)) - 0.5) / dimension).astype(np.float32)
        vectors[degree == 0] = 0.0
        noise = np.maximum(degree, 1e-12) ** 0.75
        return cls(
            vectors,
            np.zeros_like(vectors),
            upper.row.astype(np.int32),
            upper.col.astype(np.int32),
            alias_rows(np.array([0, upper.nnz]), upper.data.astype(np.float64)),
            alias_rows(np.array([0, n_nodes]), noise),
            negatives,
            seed,
        )

    def run(self, steps: int, rate_from: float, rate_to: float, workers: int = 1) -> None:
        """Draw ``steps`` edges, in threads that share the vectors without locks."""
        from cogstage.baselines.kernels import line_steps

        if not len(self.source):
            return

        def part(number: int, size: int) -> None:
            line_steps(
                self.vectors, self.contexts, self.source, self.target, *self.edges, *self.noise,
                self.negatives, size, rate_from, rate_to, self._stream(number),
            )  # fmt: skip

        shares = [steps // workers + (number < steps % workers) for number in range(workers)]
        if workers == 1:
            part(0, steps)
        else:
            with ThreadPoolExecutor(workers) as pool:
                list(pool.map(part, range(workers), shares))
        self._calls += 1

    def _stream(self, worker: int) -> int:
        """A seed for this call and worker, apart from all others."""
        return int(np.random.SeedSequence((self.seed, self._calls, worker)).generate_state(1, np.uint32)[0])
