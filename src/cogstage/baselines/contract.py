"""Protocols: an encoder computes vectors of terms, a scorer classifies pairs of vectors, a method does both."""

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
        """The name, which is also the file name."""

    @property
    def title(self) -> str:
        """The name shown in tables."""

    @property
    def quick(self) -> Mapping[str, Any]:
        """Options for fast tests that still learn."""


class Encoder(Component, Protocol):
    """Gives every term of a graph a vector."""

    @property
    def needs_facts(self) -> bool:
        """Whether the encoder uses training facts in addition to the graph."""

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32: row i is term i; the same for the same seed."""


class Scorer(Component, Protocol):
    """A binary classifier on pairs of vectors."""

    def fit(self, vectors: np.ndarray, train: Pairs, dev: Pairs, seed: int, progress: Progress = SILENT) -> Scorer:
        """Fit on the training pairs; select on the dev pairs."""

    def scores(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Probabilities (M,) that the relation holds for the pairs of term ids."""


class Method(Protocol):
    """A method that can be compared: one row of the table."""

    @property
    def name(self) -> str:
        """Name of the method, as used on the command line and in tables."""

    @property
    def joint(self) -> bool:
        """Whether one fit, with ``relation="all"``, serves every relation."""

    @property
    def settings(self) -> str:
        """All settings; equal settings give equal results."""

    def fit(self, graph: Graph, view: FittingView, relation: str, seed: int = 0, progress: Progress = SILENT) -> Method:
        """Fit one relation, or all relations for a joint method, on the fitting view."""

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        """Probabilities (M,) for pairs of term ids; a joint method needs the relation."""
