"""What a baseline is made of: an encoder gives terms vectors, a scorer reads pairs of vectors, a method does both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView, Pairs
from cogstage.progress import SILENT, Progress

ALL = "all"
"""The relation that a joint method is fitted on: one fit serves every relation of the data set."""


class Component(Protocol):
    """What encoders and scorers say of themselves."""

    @property
    def name(self) -> str:
        """The name it is resolved by: that of its file."""

    @property
    def title(self) -> str:
        """How it is called in tables."""

    @property
    def quick(self) -> Mapping[str, Any]:
        """Options with which a test is quick and still learns."""


class Encoder(Component, Protocol):
    """Gives every term of a graph a vector."""

    @property
    def needs_facts(self) -> bool:
        """Whether it looks at training facts besides the graph."""

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32: row i is term i; the same for the same seed."""


class Scorer(Component, Protocol):
    """A binary classifier on pairs of vectors."""

    def fit(self, vectors: np.ndarray, train: Pairs, dev: Pairs, seed: int, progress: Progress = SILENT) -> Scorer:
        """Learn from the training pairs, choose by the dev pairs."""

    def scores(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Probabilities (M,) that the relation holds for the pairs of term ids."""


class Method(Protocol):
    """Anything the comparison can put in a row of its table."""

    @property
    def name(self) -> str:
        """The row's name."""

    @property
    def joint(self) -> bool:
        """Whether one fit, with ``relation="all"``, serves every relation."""

    @property
    def settings(self) -> str:
        """All that it was set up with: where this is the same, so is what comes out."""

    def fit(self, graph: Graph, view: FittingView, relation: str, seed: int = 0, progress: Progress = SILENT) -> Method:
        """Learn one relation (a joint method: all of them) from what may be fitted on."""

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        """Probabilities (M,) for pairs of term ids; a joint method needs the relation."""
