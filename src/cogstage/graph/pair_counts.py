"""Fast lookup of counts and PPMI for many pairs of nodes.

Flat arrays that can be stored with a model and mapped from one file by several processes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.ppmi import marginals
from cogstage.graph.vocabulary import Vocabulary


@dataclass(frozen=True)
class PairCounts:
    """One half of the symmetric counts as CSR rows with sorted columns above the diagonal, and each node's total.

    PPMI is max(0, log(n_ij·N / (n_i·n_j))). A graph imported with PPMI values instead of counts has ``scale`` > 0:
    there PPMI is n_ij / scale.
    """

    start: np.ndarray  # int64 (V+1,)
    other: np.ndarray  # int32 (E,), above the row's own number
    count: np.ndarray  # int32 or int64 (E,)
    log_total: np.ndarray  # float64 (V,), log n_i - log(N)/2
    scale: np.ndarray  # float64 (1,), 0 for counts

    @classmethod
    def from_graph(cls, graph: Graph) -> PairCounts:
        """The counts of a graph; its arrays are shared, not copied, where counts have 32 bits already."""
        total = marginals(graph.source, graph.target, graph.count, graph.n_nodes).astype(np.float64)
        with np.errstate(divide="ignore"):
            log_total = np.log(total) - 0.5 * math.log(max(total.sum(), 1.0))
        scale = float(graph.made_with["scale"]) if graph.made_with.get("values") == "ppmi" else 0.0
        small = int(graph.count.max(initial=0)) < 2**31
        count = graph.count.astype(np.int32 if small else np.int64, copy=False)
        return cls(graph.starts, graph.target, count, log_total, np.array([scale]))

    def graph(self, vocabulary: Vocabulary) -> Graph:
        """The graph that has these counts."""
        source = np.repeat(np.arange(len(vocabulary), dtype=np.int32), np.diff(self.start))
        made = {"values": "ppmi", "scale": float(self.scale[0])} if self.scale[0] > 0 else {}
        return Graph(vocabulary, source, self.other, self.count, made)

    def arrays(self) -> dict[str, np.ndarray]:
        """What is stored with a model."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PairCounts:
        """What :meth:`arrays` gave, without a copy."""
        return cls(**arrays)

    def counts(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """How often pairs of nodes were counted together, 0 for never: (M,), (M,) -> (M,) int64."""
        return self.look_up(one, other)[0]

    def ppmi(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """PPMI of pairs of nodes, 0 if they were never counted together: (M,), (M,) -> (M,) float32."""
        return self.look_up(one, other)[1]

    def look_up(self, one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Counts and PPMI of pairs of nodes."""
        one, other = np.asarray(one, np.int64).ravel(), np.asarray(other, np.int64).ravel()
        counts, ppmi = np.zeros(len(one), np.int64), np.zeros(len(one), np.float32)
        arrays: tuple[Any, ...] = (*self.kernel, one, other, counts, ppmi)
        _look_up(*arrays)
        return counts, ppmi

    @property
    def kernel(self) -> tuple[np.ndarray, ...]:
        """The arrays in the order that kernels take them."""
        return self.start, self.other, self.count, self.log_total, self.scale

    def neighbours(self, node: int) -> tuple[np.ndarray, np.ndarray]:
        """The nodes counted together with one, in order, and how often: int64 (n,), int64 (n,)."""
        begin, end = self.start[node : node + 2]
        below = np.flatnonzero(self.other[:begin] == node)  # edges of nodes before it
        others = np.concatenate([np.searchsorted(self.start, below, "right") - 1, self.other[begin:end]])
        return others.astype(np.int64), np.concatenate([self.count[below], self.count[begin:end]]).astype(np.int64)

    def strongest(self, node: int, most: int) -> list[tuple[int, int, float]]:
        """The nodes counted together with one, highest count · PPMI first: (node, count, PPMI).

        PPMI alone would put pairs first that were counted once by chance.
        """
        others, counts = self.neighbours(node)
        ppmi = self.ppmi(np.full(len(others), node), others)
        best = np.lexsort((others, -ppmi * (1.0 if self.scale[0] > 0 else counts)))[:most]
        return [(int(others[i]), int(counts[i]), float(ppmi[i])) for i in best]


@numba.njit(cache=True, nogil=True)
def position(start: Any, other: Any, row: int, wanted: int) -> int:
    """The position of (row, wanted) in CSR arrays with sorted columns; -1 if there is none."""
    low, high = start[row], start[row + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if other[middle] < wanted:
            low = middle + 1
        else:
            high = middle
    return low if low < end and other[low] == wanted else -1


@numba.njit(cache=True, nogil=True)
def edge(start: Any, other: Any, one: int, two: int) -> int:
    """Where the count of two nodes stands, whichever comes first; -1 if they were never counted together."""
    return position(start, other, min(one, two), max(one, two))


@numba.njit(cache=True, nogil=True)
def ppmi_at(count: Any, log_total: Any, scale: Any, at: int, one: int, other: int) -> Any:
    """PPMI of the pair (one, other) whose count stands at ``at``."""
    if scale[0] > 0:
        return count[at] / scale[0]
    return max(0.0, math.log(count[at]) - log_total[one] - log_total[other])


@numba.njit(cache=True, nogil=True)
def _look_up(
    start: Any, other: Any, count: Any, log_total: Any, scale: Any, rows: Any, columns: Any, counts: Any, ppmi: Any
) -> None:
    for m in range(len(rows)):
        at = edge(start, other, rows[m], columns[m])
        if at >= 0:
            counts[m] = count[at]
            ppmi[m] = ppmi_at(count, log_total, scale, at, rows[m], columns[m])
