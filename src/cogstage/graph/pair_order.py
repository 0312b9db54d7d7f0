"""Fast lookup of which of two nodes came first, for many pairs.

Flat arrays that can be stored with a model and mapped from one file by several processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import edge

SHRINK = 4.0  # patients with neither order that are added to every pair


@dataclass(frozen=True)
class PairOrder:
    """In how many patients a node came first, the other came first, both came on one day: rows of the lower node."""

    start: np.ndarray  # int64 (V+1,)
    other: np.ndarray  # int32 (P,), larger than the row's node
    cells: np.ndarray  # int32 (P, 3)

    @classmethod
    def from_graph(cls, graph: Graph) -> PairOrder | None:
        """The order in time of a graph; None if it was not counted."""
        if graph.in_order is None:
            return None
        kept = graph.in_order.any(axis=1)
        nodes = np.arange(graph.n_nodes + 1, dtype=graph.source.dtype)
        start = np.searchsorted(graph.source[kept], nodes).astype(np.int64)
        return cls(start, graph.target[kept].astype(np.int32), graph.in_order[kept].astype(np.int32))

    def arrays(self) -> dict[str, np.ndarray]:
        """What is stored with a model."""
        return {name: np.ascontiguousarray(getattr(self, name)) for name in self.__dataclass_fields__}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> PairOrder:
        """What :meth:`arrays` gave, without a copy."""
        return cls(**arrays)

    def look_up(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Patients with ``one`` first, ``other`` first, both on one day; zeros for none: (M,), (M,) -> (M, 3) int64."""
        one, other = np.asarray(one, np.int64).ravel(), np.asarray(other, np.int64).ravel()
        cells = np.zeros((len(one), 3), np.int64)
        arrays: tuple[Any, ...] = (*self.kernel, one, other, cells)
        _look_up(*arrays)
        return cells

    def lean(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """o(i,j) = (patients with i first - patients with j first) / (patients + 4), in [-1, 1]: (M,) float32.

        0 if nothing is known; o(j,i) = -o(i,j).
        """
        cells = self.look_up(one, other)
        lean: np.ndarray = (cells[:, 0] - cells[:, 1]) / (cells.sum(1) + SHRINK)
        return lean.astype(np.float32)

    @property
    def kernel(self) -> tuple[np.ndarray, ...]:
        """The arrays in the order that kernels take them."""
        return self.start, self.other, self.cells


@numba.njit(cache=True, nogil=True)
def lean_at(start: Any, other: Any, cells: Any, one: int, two: int) -> Any:
    """Return o(one, two): shrunken share of patients with one first minus that with two first."""
    at = edge(start, other, one, two)
    if at < 0:
        return 0.0
    lean = (cells[at, 0] - cells[at, 1]) / (cells[at, 0] + cells[at, 1] + cells[at, 2] + SHRINK)
    return lean if one < two else -lean


@numba.njit(cache=True, nogil=True)
def _look_up(start: Any, other: Any, cells: Any, rows: Any, columns: Any, order: Any) -> None:
    for m in range(len(rows)):
        turned = rows[m] > columns[m]
        at = edge(start, other, rows[m], columns[m])
        if at >= 0:
            order[m, 0] = cells[at, 1 if turned else 0]
            order[m, 1] = cells[at, 0 if turned else 1]
            order[m, 2] = cells[at, 2]
