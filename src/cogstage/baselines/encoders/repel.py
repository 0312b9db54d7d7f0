"""REPEL-D (the distributional module of Qu et al., 2018): the graph and the training facts shape the same vectors.

The co-occurrence part is LINE's second-order objective; the facts add a margin on -||v_h + y_r - v_t||² between each
training fact and the same fact with its head or tail replaced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cogstage.baselines.edge_weights import EdgeWeight, edge_matrix
from cogstage.baselines.encoders.line import EdgeTraining, falling, rounds
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress
from cogstage.triples import Triples


@dataclass(frozen=True)
class RepelEncoder:
    """Alternates small rounds of LINE and of training on the facts."""

    dimension: int = 128
    """d."""
    negatives: int = 5
    """Noise terms for each edge."""
    epochs: float = 5.0
    """Drawn edges for each edge of the graph."""
    rate: float = 0.1
    """First step size on edges; it falls to nothing along a line."""
    fact_epochs: float = 20.0
    """Drawn facts for each training fact, spread evenly between the edges."""
    fact_rate: float = 0.02
    """First step size on facts."""
    margin: float = 1.0
    """By how much a fact should stand above a corrupted one."""
    weight: EdgeWeight = "ppmi"
    """What makes an edge likely: ``ppmi`` or the plain ``count``."""
    workers: int = 1
    """Threads on the edges; with more than one the result depends on their timing."""

    name: ClassVar = "repel"
    title: ClassVar = "REPEL-D"
    quick: ClassVar = {"dimension": 16, "epochs": 60, "fact_epochs": 10}
    needs_facts: ClassVar = True

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32; the same for the same seed with one worker."""
        from cogstage.baselines.kernels import fact_steps

        training = EdgeTraining.start(edge_matrix(graph, self.weight), self.dimension, self.negatives, seed)
        facts = view.train_facts()
        translations = np.zeros((len(view.relations), self.dimension), np.float32)
        heads, tails = _replacements(facts, len(view.relations))
        total = max(int(self.epochs * len(training.source)), 1)
        fact_total = int(self.fact_epochs * len(facts))
        progress.start("REPEL-D", total)
        for number, (begin, end) in enumerate(rounds(total, max(total // 200, 1))):
            rate_from, rate_to = falling(self.rate, begin / total), falling(self.rate, end / total)
            training.run(end - begin, rate_from, rate_to, self.workers)
            steps = fact_total * end // total - fact_total * begin // total
            loss = 0.0
            if len(facts):
                loss = fact_steps(
                    training.vectors, translations, facts.head, facts.relation, facts.tail, heads, tails,
                    self.margin, steps, falling(self.fact_rate, begin / total), seed * 1_000_003 + number,
                )  # fmt: skip
            progress.advance(end - begin, f"fact loss {loss:.3f}")
        progress.done()
        return training.vectors


def _replacements(facts: Triples, n_relations: int) -> tuple[np.ndarray, np.ndarray]:
    """For each relation the heads and the tails of its facts, as rows of equal length (repeated where shorter)."""
    longest = max(int(np.bincount(facts.relation, minlength=1).max()), 1) if len(facts) else 1
    heads = np.zeros((n_relations, longest), np.int32)
    tails = np.zeros((n_relations, longest), np.int32)
    for relation in range(n_relations):
        chosen = np.flatnonzero(facts.relation == relation)
        if len(chosen):
            heads[relation] = np.resize(facts.head[chosen], longest)
            tails[relation] = np.resize(facts.tail[chosen], longest)
    return heads, tails
