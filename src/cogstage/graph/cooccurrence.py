"""The co-occurrence graph: nodes, edges with counts, and the folder it lives in."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse as sp

from cogstage.artefact import new_folder, read_meta
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.edges import Edges
from cogstage.graph.folder import write_edges
from cogstage.graph.ppmi import ppmi
from cogstage.graph.vocabulary import Vocabulary

FILES = ("terms.parquet", "edges.parquet")


@dataclass(frozen=True)
class Graph:
    """Undirected: edge ``e`` joins ``source[e] < target[e]`` and was counted ``count[e]`` times; sorted, no doubles."""

    vocabulary: Vocabulary
    source: np.ndarray  # int32 (E,)
    target: np.ndarray  # int32 (E,)
    count: np.ndarray  # int64 (E,)
    made_with: Mapping[str, Any] = field(default_factory=dict)

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.vocabulary)

    @property
    def n_edges(self) -> int:
        """Number of undirected edges."""
        return len(self.count)

    @cached_property
    def matrix(self) -> sp.csr_matrix:
        """Symmetric counts, (V, V) CSR int64."""
        rows = np.concatenate([self.source, self.target])
        columns = np.concatenate([self.target, self.source])
        values = np.concatenate([self.count, self.count])
        return sp.csr_matrix((values, (rows, columns)), shape=(self.n_nodes, self.n_nodes))

    def ppmi(self, shift: float = 0.0, smoothing: float = 1.0) -> sp.csr_matrix:
        """Positive pointwise mutual information, (V, V) CSR float64; see :func:`cogstage.graph.ppmi.ppmi`.

        A graph that was imported with PPMI values in place of counts gives those back.
        """
        if self.made_with.get("values") == "ppmi":
            if smoothing != 1.0:
                raise UsageError(
                    "this graph was imported with PPMI values and without counts, so it cannot be smoothed"
                )
            values = self.matrix.astype(np.float64) / float(self.made_with["scale"])
            values.data = np.maximum(values.data - shift, 0.0)
            values.eliminate_zeros()
            return values
        return ppmi(self.matrix, shift=shift, smoothing=smoothing)

    @cached_property
    def hash(self) -> str:
        """Identity of the graph's content: nodes, edges and counts."""
        digest = hashlib.sha256(self.vocabulary.hash.encode())
        for array in (self.source.astype("<i4"), self.target.astype("<i4"), self.count.astype("<i8")):
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    def save(self, path: Path | str, made_with: Mapping[str, Any] | None = None) -> None:
        """Write the graph folder: it appears whole or not at all."""
        made_with = dict(self.made_with if made_with is None else made_with)
        with new_folder(path, "graph", {**made_with, "nodes": self.n_nodes, "edges": self.n_edges}) as folder:
            self.vocabulary.write(folder)
            write_edges(folder / "edges.parquet", [Edges(self.source, self.target, self.count)])

    @classmethod
    def load(cls, path: Path | str) -> Graph:
        """Read a graph folder; what is wrong with it is said in one line."""
        path = Path(path)
        meta = read_meta(path, "graph", FILES)
        try:
            vocabulary = Vocabulary.read(path)
            edges = pq.read_table(path / "edges.parquet", columns=["source", "target", "count"])
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            raise CogstageError(f"{path} is damaged ({error}); build the graph again") from error
        source, target, count = (edges.column(name).to_numpy() for name in ("source", "target", "count"))
        graph = cls(
            vocabulary, source.astype(np.int32), target.astype(np.int32), count.astype(np.int64), meta["made_with"]
        )
        graph.check(str(path))
        return graph

    def check(self, where: str = "graph") -> None:
        """Raise unless the edges are sorted, unique, within the vocabulary, and counted at least once."""
        key = self.source.astype(np.int64) * max(self.n_nodes, 1) + self.target
        if self.n_edges and not (
            np.all(np.diff(key) > 0)
            and np.all(self.source < self.target)
            and self.source.min() >= 0
            and self.target.max() < self.n_nodes
            and self.count.min() > 0
        ):
            raise CogstageError(
                f"{where}: edges must be sorted, unique, source < target, counted; build the graph again"
            )
