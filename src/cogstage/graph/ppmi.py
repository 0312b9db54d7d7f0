"""PPMI(i,j) = max(0, log( n_ij·N / (n_i·n_j) )), n_i = Σ_j n_ij, N = Σ_i n_i; shift and smoothing default to off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from cogstage.graph import ppmi_kernels
from cogstage.scratch import FileRows, drop

compiled: Any = ppmi_kernels
CHUNK = 1 << 20  # edges whose logarithms are held at a time
BLOCK = 1 << 22  # entries of rows that are made together, at least
PASSES = 16  # over the edges to make all rows, at most


@dataclass(frozen=True)
class Ppmi:
    """PPMI as a matrix whose values are computed from one half of the counts whenever they are needed.

    It uses no memory of the size of the graph besides the given edges. Entry (i, j) is
    max(0, level_ij - row_i - context_j - shift), where level_ij is log n_ij, or n_ij / ``scale`` if that is not 0.
    """

    source: np.ndarray  # int32 (E,), sorted
    target: np.ndarray  # int32 (E,), above source
    count: np.ndarray  # int32 or int64 (E,)
    row: np.ndarray  # float64 (V,)
    context: np.ndarray  # float64 (V,)
    shift: float = 0.0
    scale: float = 0.0

    @classmethod
    def from_counts(
        cls,
        source: np.ndarray,
        target: np.ndarray,
        count: np.ndarray,
        n_nodes: int,
        shift: float = 0.0,
        smoothing: float = 1.0,
    ) -> Ppmi:
        """PPMI from the sorted upper half of the counts.

        ``shift`` is subtracted before the cut at zero (log k for k negative samples). ``smoothing`` < 1 flattens the
        context distribution: n_j^smoothing / Σ_j n_j^smoothing replaces n_j / N, and the result is asymmetric.
        """
        marginal = marginals(source, target, count, n_nodes).astype(np.float64)
        context = marginal**smoothing
        context /= max(context.sum(), 1e-300)
        with np.errstate(divide="ignore"):
            return cls(source, target, count, np.log(marginal), np.log(context), float(shift))

    @classmethod
    def from_values(
        cls, source: np.ndarray, target: np.ndarray, value: np.ndarray, n_nodes: int, scale: float, shift: float = 0.0
    ) -> Ppmi:
        """PPMI given as whole numbers, ``scale`` times the values."""
        nothing = np.zeros(n_nodes)
        return cls(source, target, value, nothing, nothing, float(shift), float(scale))

    @property
    def shape(self) -> tuple[int, int]:
        """(V, V)."""
        return len(self.row), len(self.row)

    @property
    def T(self) -> _Transposed:
        """The transposed matrix, to be multiplied; it differs where counts are smoothed."""
        return _Transposed(self)

    def __matmul__(self, dense: np.ndarray) -> np.ndarray:
        """The product with a dense matrix (V, m), float64: the same sums in the same order as those of a CSR matrix."""
        return self.times(dense)

    def times(self, dense: np.ndarray, transposed: bool = False, out: np.ndarray | None = None) -> np.ndarray:
        """The product of the matrix, or of its transpose, with a dense one, written to ``out`` if given."""
        dense = np.ascontiguousarray(dense, np.float64)
        out = np.empty(dense.shape) if out is None else out
        out[:] = 0.0
        for piece in self._pieces():
            compiled.add_product(*piece, transposed, dense, out)
        return out

    def csr(self) -> sp.csr_matrix:
        """All positive values, (V, V) CSR float64; they are computed twice, first to count them."""
        lower, upper, _ = self._rows()
        pointer = np.concatenate([[0], np.cumsum(lower + upper)])
        parts = self._filled(pointer, lower, np.ones(len(self.row)), 0, len(self.row), np.dtype(np.float64))
        return _csr(pointer, *parts, len(self.row))

    def shares(self) -> tuple[np.ndarray, FileRows, FileRows]:
        """The rows divided by their sums, as CSR arrays: pointer int64 (V+1,), columns int32, float32 values.

        A block of rows is made at a time and written to files.
        """
        lower, upper, total = self._rows()
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        pointer = np.concatenate([[0], np.cumsum(lower + upper)])
        columns, values = (FileRows((int(pointer[-1]),), kind) for kind in (np.int32, np.float32))
        block, first = max(BLOCK, int(pointer[-1]) // PASSES), 0
        while first < len(self.row):
            last = max(first + 1, int(np.searchsorted(pointer, pointer[first] + block, "right")) - 1)
            place = slice(int(pointer[first]), int(pointer[last]))
            columns[place], values[place] = self._filled(pointer, lower, scale, first, last, np.dtype(np.float32))
            first = last
        return pointer, columns, values

    def lengths(self) -> np.ndarray:
        """The Euclidean length of each row, (V,)."""
        squares = np.zeros(len(self.row))
        for piece in self._pieces():
            compiled.add_squares(*piece, squares)
        return np.sqrt(squares)

    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """How many positive values each row has below and above the diagonal, and their sum."""
        lower, upper, total = (np.zeros(len(self.row), kind) for kind in (np.int64, np.int64, np.float64))
        for piece in self._pieces():
            compiled.add_rows(*piece, lower, upper, total)
        return lower, upper, total

    def _filled(
        self, pointer: np.ndarray, lower: np.ndarray, scale: np.ndarray, first: int, last: int, kind: np.dtype[Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Columns and values of the rows ``first`` to ``last``; ``pointer`` (V+1,) says where each row begins."""
        size = int(pointer[last] - pointer[first])
        indices, data = np.empty(size, _index_type(int(pointer[-1]))), np.empty(size, kind)
        below = pointer[first:last] - pointer[first]
        above = below + lower[first:last]
        until = int(np.searchsorted(self.source, np.array(last, self.source.dtype)))  # edges after it join later rows
        for piece in self._pieces(until):
            compiled.fill_rows(*piece, scale, first, last, below, above, indices, data)
        return indices, data

    def _pieces(self, until: int | None = None) -> Iterator[tuple[Any, ...]]:
        """The edges before ``until`` and their levels, some at a time."""
        until = len(self.source) if until is None else until
        for at in range(0, until, CHUNK):
            part = slice(at, min(at + CHUNK, until))
            level = self.count[part].astype(np.float64)
            level = level / self.scale if self.scale else np.log(level)
            yield self.source[part], self.target[part], level, self.row, self.context, self.shift
            drop(self.source, self.target, self.count)


@dataclass(frozen=True)
class _Transposed:
    matrix: Ppmi

    def __matmul__(self, dense: np.ndarray) -> np.ndarray:
        return self.matrix.times(dense, transposed=True)


def symmetric(source: np.ndarray, target: np.ndarray, count: np.ndarray, n_nodes: int) -> sp.csr_matrix:
    """Both halves of the counts from the sorted upper one, (V, V) CSR; 32-bit counts where they fit."""
    degree = np.bincount(source, minlength=n_nodes) + np.bincount(target, minlength=n_nodes)
    pointer = np.concatenate([[0], np.cumsum(degree)])
    kind = np.int32 if int(count.max(initial=0)) < 2**31 else np.int64
    indices, data = np.empty(pointer[-1], _index_type(pointer[-1])), np.empty(pointer[-1], kind)
    compiled.symmetric_counts(source, target, count, pointer[:-1].copy(), indices, data)
    return _csr(pointer, indices, data, n_nodes)


def marginals(source: np.ndarray, target: np.ndarray, count: np.ndarray, n_nodes: int) -> np.ndarray:
    """n_i = Σ_j n_ij, int64 (V,)."""
    total = np.zeros(n_nodes, np.int64)
    for at in range(0, len(source), CHUNK):
        part = slice(at, at + CHUNK)
        weights = count[part].astype(np.float64)  # exact below 2^53
        for ends in (source[part], target[part]):
            total += np.bincount(ends, weights, n_nodes).astype(np.int64)
        drop(source, target, count)
    return total


def _index_type(entries: int) -> Any:
    return np.int32 if entries < 2**31 else np.int64


def _csr(pointer: np.ndarray, indices: np.ndarray, data: np.ndarray, n_nodes: int) -> sp.csr_matrix:
    """A CSR matrix of arrays that are in order already, without a copy."""
    matrix = sp.csr_matrix((n_nodes, n_nodes), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, pointer.astype(indices.dtype)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
