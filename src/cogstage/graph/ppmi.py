"""PPMI(i,j) = max(0, log( n_ij·N / (n_i·n_j) )), n_i = Σ_j n_ij, N = Σ_i n_i; shift and smoothing default to off."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from cogstage.graph import matrix_kernels

compiled: Any = matrix_kernels
CHUNK = 1 << 20  # edges whose logarithms are held at a time


def ppmi(
    source: np.ndarray, target: np.ndarray, count: np.ndarray, n_nodes: int, shift: float = 0.0, smoothing: float = 1.0
) -> sp.csr_matrix:
    """PPMI from the sorted upper half of the counts, (V, V) CSR float64, zeros left out.

    ``shift`` is subtracted before the cut at zero (log k for k negative samples). ``smoothing`` < 1 flattens the
    context distribution: n_j^smoothing / Σ_j n_j^smoothing takes the place of n_j / N, and the result is asymmetric.
    Besides the result little is held: the values are computed twice, first to count the positive ones.
    """
    marginal = marginals(source, target, count, n_nodes).astype(np.float64)
    if not marginal.any():
        return sp.csr_matrix((n_nodes, n_nodes), dtype=np.float64)
    context = marginal**smoothing
    context /= context.sum()
    with np.errstate(divide="ignore"):
        logs = np.log(marginal), np.log(context), float(shift)

    def chunks() -> Any:
        for at in range(0, len(source), CHUNK):
            part = slice(at, at + CHUNK)
            yield source[part], target[part], np.log(count[part].astype(np.float64))

    lower, upper = np.zeros(n_nodes, np.int64), np.zeros(n_nodes, np.int64)
    for chunk in chunks():
        compiled.positive_entries(*chunk, *logs, lower, upper)
    pointer = np.concatenate([[0], np.cumsum(lower + upper)])
    indices, data = np.empty(pointer[-1], _index_type(pointer[-1])), np.empty(pointer[-1], np.float64)
    upper = pointer[:-1] + lower
    lower = pointer[:-1].copy()
    for chunk in chunks():
        compiled.fill_positive(*chunk, *logs, lower, upper, indices, data)
    return _csr(pointer, indices, data, n_nodes)


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
    return total


def _index_type(entries: int) -> Any:
    return np.int32 if entries < 2**31 else np.int64


def _csr(pointer: np.ndarray, indices: np.ndarray, data: np.ndarray, n_nodes: int) -> sp.csr_matrix:
    """A CSR matrix of arrays that are in order already, without a copy."""
    matrix = sp.csr_matrix((n_nodes, n_nodes), dtype=data.dtype)
    matrix.data, matrix.indices, matrix.indptr = data, indices, pointer.astype(indices.dtype)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
