"""An encoder and a scorer together: one of the twelve baselines of the paper."""

from __future__ import annotations

import numpy as np

from cogstage.baselines.contract import Encoder, Scorer
from cogstage.baselines.vectors import VectorStore
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress


class EncodedMethod:
    """``encoder+scorer``: vectors from the graph, then a binary classifier for one relation."""

    joint = False

    def __init__(self, encoder: Encoder, scorer: Scorer, store: VectorStore | None = None) -> None:
        self.encoder, self.scorer, self.store = encoder, scorer, store

    @property
    def name(self) -> str:
        """Names of encoder and scorer, such as ``svd+distmult``."""
        return f"{self.encoder.name}+{self.scorer.name}"

    @property
    def settings(self) -> str:
        """The options of both parts."""
        return f"{self.encoder!r} {self.scorer!r}"

    def fit(
        self, graph: Graph, view: FittingView, relation: str, seed: int = 0, progress: Progress = SILENT
    ) -> EncodedMethod:
        """Encode the terms (or take the stored vectors), then fit the scorer on the relation's pairs."""
        source = self.store.get if self.store is not None else _encode
        vectors = source(self.encoder, graph, view, seed, progress)
        self.scorer.fit(vectors, view.pairs(relation, "train"), view.pairs(relation, "dev"), seed, progress)
        return self

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        """Return a probability for each pair, float64 (M,)."""
        return self.scorer.scores(head, tail)


def _encode(encoder: Encoder, graph: Graph, view: FittingView, seed: int, progress: Progress) -> np.ndarray:
    return encoder.encode(graph, view, seed, progress)
