"""The co-occurrence graph: nodes, edges with counts, and its folder."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from cogstage.artefact import new_folder, read_folder
from cogstage.artefact_checks import version_of
from cogstage.choices import FrameLibrary
from cogstage.errors import CogstageError, UsageError
from cogstage.frames import to_frame
from cogstage.graph.edges import Edges
from cogstage.graph.folder import EDGES, EXAMPLES, ORDER, ORDER_COLUMNS, read_columns, write_edges
from cogstage.graph.kept_examples import Examples
from cogstage.graph.ppmi import ppmi_from_counts, ppmi_from_values, symmetric
from cogstage.graph.vocabulary import Vocabulary
from cogstage.provenance import counts_text, privacy_text
from cogstage.reporting.release import release_markdown
from cogstage.reporting.table import Table

FILES = ("terms.parquet", EDGES)

CHUNK = 1 << 20  # edges that are hashed or checked together


@dataclass(frozen=True)
class Graph:
    """An undirected co-occurrence graph: edge ``e`` joins ``source[e] < target[e]`` and has the count ``count[e]``.

    Edges are sorted and unique.

    Parameters
    ----------
    vocabulary
        The nodes.
    source, target, count
        Nodes and counts of the edges, each (E,).
    made_with
        How the graph was made, for ``meta.json``.
    in_order
        (E, 3): number of patients with the source first, with the target first, and with both on one day; None if
        order was not counted.
    examples_file, version
        File with the examples of pairs, None if there are none, and the version of the folder when it was read.

    Examples
    --------
    >>> graph = cs.Graph.load("graph")
    >>> graph.n_nodes, len(graph.source) == graph.n_edges
    (200, True)
    >>> bool(graph.matrix[0, 1] == graph.matrix[1, 0])
    True
    """

    vocabulary: Vocabulary
    source: np.ndarray  # int32 (E,)
    target: np.ndarray  # int32 (E,)
    count: np.ndarray  # int32 or int64 (E,)
    made_with: Mapping[str, Any] = field(default_factory=dict)
    in_order: np.ndarray | None = None  # int32 (E, 3)
    examples_file: Path | None = field(default=None, compare=False)  # of a graph that was read
    version: tuple[int, ...] | None = field(default=None, compare=False)  # of the folder that was read

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
        """Symmetric matrix of counts, (V, V) CSR int32 (int64 if a count needs it)."""
        return symmetric(self.source, self.target, self.count, self.n_nodes)

    @cached_property
    def examples(self) -> Examples | None:
        """Example documents and sentences of each pair; None if there are none. Dropped when graphs are merged."""
        file = self._same_examples()
        return None if file is None else Examples.read(file, self.n_nodes)

    def _same_examples(self) -> Path | None:
        """The file with the examples; raise if its folder was replaced since the graph was loaded."""
        if self.examples_file is not None and version_of(self.examples_file.parent) != self.version:
            raise CogstageError(f"{self.examples_file.parent} was replaced since the graph was loaded; load it again")
        return self.examples_file

    def ppmi(self, shift: float = 0.0, smoothing: float = 1.0) -> sp.csr_matrix:
        """Return positive pointwise mutual information: max(0, log(n_ij·N / (n_i·n_j)) - shift).

        A graph that was imported with PPMI values instead of counts returns those values.

        Parameters
        ----------
        shift
            Subtracted before negative values are set to 0.
        smoothing
            Exponent of the context counts n_j; 1 for no smoothing.

        Returns
        -------
        scipy.sparse.csr_matrix
            (V, V) float64.
        """
        if self.made_with.get("values") != "ppmi":
            return ppmi_from_counts(self.matrix, shift, smoothing)
        if smoothing != 1.0:
            raise UsageError("this graph was imported with PPMI values and without counts, so it cannot be smoothed")
        return ppmi_from_values(self.matrix, float(self.made_with["scale"]), shift)

    def edge(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Return the index of the edge between two nodes, for each pair.

        Parameters
        ----------
        one, other
            Node ids, arrays of one shape; their order does not matter.

        Returns
        -------
        numpy.ndarray
            int64: index into ``source``, ``target`` and ``count``; -1 if there is no edge.
        """
        one, other = np.asarray(one, np.int64), np.asarray(other, np.int64)
        low, high = np.minimum(one, other), np.maximum(one, other)
        begin, end = self.starts[low], self.starts[low + 1]
        while np.any(begin < end):  # one bisection step for all pairs at a time
            middle = (begin + end) // 2
            below = (begin < end) & (self.target[np.minimum(middle, self.n_edges - 1)] < high)
            end = np.where((begin < end) & ~below, middle, end)
            begin = np.where(below, middle + 1, begin)
        position = np.minimum(begin, max(self.n_edges - 1, 0))
        if self.n_edges == 0:
            return np.full(one.shape, -1, np.int64)
        there = (begin < self.starts[low + 1]) & (self.target[position] == high)
        return np.where(there, position, -1)

    def order(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Count patients with ``one`` first, with ``other`` first, and with both on the same day.

        Parameters
        ----------
        one, other
            Node ids, (n,) each.

        Returns
        -------
        numpy.ndarray
            int64 (n, 3); zeros if the pair has no edge, or if order was not counted or is suppressed.
        """
        one, other = np.atleast_1d(np.asarray(one, np.int64)), np.atleast_1d(np.asarray(other, np.int64))
        if self.in_order is None:
            return np.zeros((len(one), 3), np.int64)
        edge = self.edge(one, other)
        order = np.where((edge >= 0)[:, None], self.in_order[np.maximum(edge, 0)], 0).astype(np.int64)
        turned = one > other
        order[turned] = order[turned][:, [1, 0, 2]]
        return order

    @cached_property
    def starts(self) -> np.ndarray:
        """Index of the first edge of each source, int64 (V + 1,)."""
        nodes = np.arange(self.n_nodes + 1, dtype=self.source.dtype)  # of another type, it would copy all edges
        return np.searchsorted(self.source, nodes).astype(np.int64)

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the nodes, edges, counts and order in time."""
        digest = hashlib.sha256(self.vocabulary.hash.encode())
        columns = [(self.source, "<i4"), (self.target, "<i4"), (self.count, "<i8")]
        if self.in_order is not None:
            columns.append((self.in_order, "<i4"))
        for array, kind in columns:
            for at in range(0, len(array), CHUNK):
                digest.update(np.ascontiguousarray(array[at : at + CHUNK].astype(kind)).tobytes())
        return digest.hexdigest()

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:
        """Return the edges as a table.

        Parameters
        ----------
        library
            "pandas", "polars" or "pyarrow".

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Keys of source and target, and the count, as :func:`import_edges` reads them.
        """
        terms = pa.array(self.vocabulary.term, pa.string())
        ends = [terms.take(pa.array(end)) for end in (self.source, self.target)]
        return to_frame(pa.table([*ends, pa.array(self.count)], ["source", "target", "count"]), library)

    def to_networkx(self) -> Any:
        """Return the graph for NetworkX.

        Returns
        -------
        networkx.Graph
            Nodes are keys with ``name``, ``type`` and ``count``; edges have ``count`` and, as ``weight``, their PPMI.
        """
        import networkx

        words, ppmi = self.vocabulary, self.ppmi()
        weights = np.asarray(ppmi[self.source, self.target]).ravel().tolist()
        graph = networkx.Graph()
        about = zip(words.term, words.name, words.type, words.count.tolist(), strict=True)
        graph.add_nodes_from((term, {"name": name, "type": kind, "count": n}) for term, name, kind, n in about)
        ends = ([words.term[node] for node in end.tolist()] for end in (self.source, self.target))
        edges = zip(*ends, self.count.tolist(), weights, strict=True)
        graph.add_edges_from((one, other, {"count": n, "weight": weight}) for one, other, n, weight in edges)
        return graph

    def to_edge_index(self) -> tuple[Any, Any]:
        """Return the graph for PyTorch Geometric.

        Returns
        -------
        tuple of torch.Tensor
            Edge index, int64 (2, 2E) with both directions of each edge, and its counts, float32 (2E,).
        """
        import torch

        ends = np.stack([np.concatenate([self.source, self.target]), np.concatenate([self.target, self.source])])
        weight = np.tile(self.count.astype(np.float32), 2)
        return torch.from_numpy(ends.astype(np.int64)), torch.from_numpy(weight)

    def save(self, path: Path | str, made_with: Mapping[str, Any] | None = None) -> None:
        """Write the graph folder with a release report.

        Parameters
        ----------
        path
            Folder to write. An existing graph is replaced; any other folder is refused.
        made_with
            How the graph was made, for ``meta.json``; by default ``self.made_with``.
        """
        made_with = dict(self.made_with if made_with is None else made_with)
        if self.examples_file is None:
            made_with.pop("examples", None)
        about = {**made_with, "nodes": self.n_nodes, "edges": self.n_edges}
        with new_folder(path, "graph", about, release_markdown) as folder:
            self.vocabulary.write(folder)
            edges = Edges(self.source, self.target, self.count, None, self.in_order)
            write_edges(folder, [edges], self.in_order is not None)
            if (examples := self._same_examples()) is not None:
                shutil.copyfile(examples, folder / EXAMPLES)

    @classmethod
    def load(cls, path: Path | str, verify: bool = True) -> Graph:
        """Read a graph folder.

        Parameters
        ----------
        path
            Folder written by :func:`build_graph`, :meth:`save` or an importer.
        verify
            Whether to check the files against their hashes.

        Returns
        -------
        Graph
            The graph. Examples are read on first use.

        Raises
        ------
        UsageError
            If ``path`` is not a graph folder.
        CogstageError
            If it is damaged.
        """
        return read_folder(path, "graph", FILES, cls._read, verify)

    @classmethod
    def _read(cls, path: Path, meta: Mapping[str, Any]) -> Graph:
        """Read the files of a folder whose ``meta.json`` was checked."""
        try:
            vocabulary = Vocabulary.read(path)
            source, target, count = read_columns(path / EDGES, ("source", "target", "count"))
            source, target = source.astype(np.int32, copy=False), target.astype(np.int32, copy=False)
            order = None
            if (path / ORDER).exists():
                *ends, first, second, same = read_columns(path / ORDER, ("source", "target", *ORDER_COLUMNS))
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            raise CogstageError(f"{path} is damaged ({error}); build the graph again") from error
        examples = path / EXAMPLES if (path / EXAMPLES).exists() else None
        graph = cls(vocabulary, source, target, count, meta["made_with"], None, examples, version_of(path))
        graph.check(str(path))
        if (path / ORDER).exists():
            edge = graph.edge(*ends)
            if (edge < 0).any():
                raise CogstageError(f"{path / ORDER} contains pairs that are not edges; build the graph again")
            order = np.zeros((len(count), 3), np.int32)
            order[edge] = np.stack([first, second, same], axis=1)
            graph = replace(graph, in_order=order)
        return graph

    def __repr__(self) -> str:
        return f"Graph({self.n_nodes:,} nodes, {self.n_edges:,} edges)"

    def _repr_html_(self) -> str:
        """Sizes, origin and largest counts, for notebooks."""
        from cogstage.graph.info import describe

        about = describe(self, top=5)
        rows = [
            ("terms", f"{self.n_nodes:,}"),
            ("edges", f"{self.n_edges:,}"),
            ("counted", counts_text(self.made_with)),
            ("privacy of the counts", privacy_text(self.made_with)),
        ]
        rows += [(f"{edge['source']} – {edge['target']}", f"{edge['count']:,}") for edge in about["largest_edges"]]
        return Table("Co-occurrence graph and its largest counts", ("", ""), tuple(rows)).html()

    def check(self, where: str = "graph") -> None:
        """Raise a :class:`CogstageError` unless edges are sorted, unique, within the vocabulary, and counted.

        Parameters
        ----------
        where
            Name of the graph in the message.
        """
        sound = True
        for at in range(0, self.n_edges, CHUNK):
            part = slice(max(at - 1, 0), at + CHUNK)
            source, target = self.source[part], self.target[part]
            key = source.astype(np.int64) * max(self.n_nodes, 1) + target
            sound &= bool(np.all(np.diff(key) > 0) and np.all(source < target) and source.min() >= 0)
            sound &= bool(target.max() < self.n_nodes and self.count[part].min() > 0)
        if not sound:
            raise CogstageError(
                f"{where}: edges must be sorted, unique, source < target, counted; build the graph again"
            )
