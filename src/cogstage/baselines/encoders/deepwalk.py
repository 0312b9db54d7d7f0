"""DeepWalk (Perozzi et al., 2014): weighted random walks read as sentences by skip-gram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cogstage.baselines.edge_weights import EdgeWeight, edge_matrix
from cogstage.errors import CogstageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress


@dataclass(frozen=True)
class DeepWalkEncoder:
    """Random walks of this package with gensim's skip-gram (needs the extra ``baselines``)."""

    dimension: int = 128
    """d."""
    walks: int = 10
    """Walks from each term."""
    length: int = 40
    """Terms in a walk."""
    window: int = 5
    """How far apart two terms of a walk may be to count as neighbours."""
    negatives: int = 5
    """Noise terms for each neighbour."""
    epochs: int = 1
    """Passes over the walks."""
    rate: float = 0.05
    """First step size of skip-gram; it falls along a line."""
    weight: EdgeWeight = "ppmi"
    """What makes a step likely: ``ppmi`` or the plain ``count``."""
    workers: int = 1
    """gensim's threads; with more than one the result depends on their timing."""

    name: ClassVar = "deepwalk"
    title: ClassVar = "DeepWalk"
    quick: ClassVar = {"dimension": 16, "walks": 5, "length": 20, "epochs": 3}
    needs_facts: ClassVar = False

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32; the same for the same seed with one worker."""
        try:
            from gensim.models import Word2Vec
        except ImportError:
            raise CogstageError("DeepWalk needs gensim: pip install 'cogstage[baselines]'") from None

        progress.start("Random walks")
        walks = self.walk(graph, seed)
        progress.done(f"{walks.shape[0]:,} walks of {walks.shape[1]} terms")
        progress.start("Skip-gram over the walks")
        model = Word2Vec(
            Sentences(walks, graph.n_nodes),
            vector_size=self.dimension,
            window=self.window,
            negative=self.negatives,
            epochs=self.epochs,
            alpha=self.rate,
            sg=1,
            min_count=1,
            sample=0,
            workers=self.workers,
            seed=seed,
        )
        vectors = np.zeros((graph.n_nodes, self.dimension), np.float32)
        known = np.array([int(key) for key in model.wv.index_to_key], np.int64)
        vectors[known] = model.wv.vectors
        progress.done()
        return vectors

    def walk(self, graph: Graph, seed: int) -> np.ndarray:
        """The walks, (V·walks, length) int32, in random order; -1 where a walk could not go on."""
        from cogstage.baselines.kernels import alias_rows, walk

        matrix = edge_matrix(graph, self.weight)
        stay, other = alias_rows(matrix.indptr, matrix.data)
        rng = np.random.default_rng(seed)
        starts = np.concatenate([rng.permutation(graph.n_nodes) for _ in range(self.walks)]).astype(np.int32)
        result: np.ndarray = walk(matrix.indptr, matrix.indices, stay, other, starts, self.length, seed)
        return result


class Sentences:
    """The walks as lists of words, which gensim can read several times."""

    def __init__(self, walks: np.ndarray, n_nodes: int) -> None:
        self._walks = walks
        self._words = np.array([str(node) for node in range(n_nodes)], dtype=object)

    def __iter__(self) -> Iterator[list[str]]:
        for walk in self._walks:
            yield self._words[walk[walk >= 0]].tolist()

    def __len__(self) -> int:
        return len(self._walks)
