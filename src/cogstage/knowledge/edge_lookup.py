"""Counts and PPMI of selected pairs, read from sorted edges without building a matrix."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from cogstage.graph.cooccurrence import Graph

BLOCK = 1 << 22  # edges looked at together


class EdgeLookup:
    """Lookup of pairs of nodes in the edges of a graph."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def counts(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """How often each pair was counted together, 0 for never: (M,), (M,) -> (M,) int64."""
        edge = self._graph.edge(one, other)
        if not self._graph.n_edges:
            return np.zeros(len(edge), np.int64)
        return np.where(edge >= 0, self._graph.count[np.maximum(edge, 0)], 0)

    @cached_property
    def _marginal(self) -> np.ndarray:
        """n_i, (V,)."""
        total = np.zeros(self._graph.n_nodes)
        for begin in range(0, self._graph.n_edges, BLOCK):
            part = slice(begin, begin + BLOCK)
            for end in (self._graph.source[part], self._graph.target[part]):
                total += np.bincount(end, self._graph.count[part], minlength=self._graph.n_nodes)
        return total

    def ppmi(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """PPMI of each pair, as :meth:`Graph.ppmi` has it."""
        together = self.counts(one, other)
        if self._graph.made_with.get("values") == "ppmi":  # imported with PPMI values instead of counts
            return np.asarray(together / float(self._graph.made_with["scale"]))
        expected = self._marginal[one] * self._marginal[other] / max(self._marginal.sum(), 1.0)
        ratio = np.divide(together, expected, out=np.ones(len(together)), where=together > 0)
        result: np.ndarray = np.maximum(0.0, np.log(ratio))
        return result

    def between(self, ends: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """All pairs (end, other) that co-occur, sorted by end and other."""
        is_end, is_other = (np.zeros(self._graph.n_nodes, bool) for _ in range(2))
        is_end[ends], is_other[others] = True, True
        found: list[tuple[np.ndarray, np.ndarray]] = []
        for begin in range(0, self._graph.n_edges, BLOCK):
            part = slice(begin, begin + BLOCK)
            source, target = self._graph.source[part], self._graph.target[part]
            for end, other in ((source, target), (target, source)):
                chosen = is_end[end] & is_other[other]
                found.append((end[chosen], other[chosen]))
        empty = np.empty(0, np.int32)
        end = np.concatenate([empty, *(ends for ends, _ in found)])
        other = np.concatenate([empty, *(others for _, others in found)])
        order = np.lexsort((other, end))
        return end[order], other[order]
