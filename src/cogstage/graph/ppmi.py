"""PPMI(i,j) = max(0, log( n_ij·N / (n_i·n_j) )), n_i = Σ_j n_ij, N = Σ_i n_i; shift and smoothing default to off."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def symmetric(source: np.ndarray, target: np.ndarray, count: np.ndarray, n_nodes: int) -> sp.csr_matrix:
    """Both halves of the counts from the sorted upper one, (V, V) CSR; 32-bit counts where they fit."""
    kind = np.int32 if int(count.max(initial=0)) < 2**31 else np.int64
    upper = sp.csr_matrix((count.astype(kind, copy=False), (source, target)), (n_nodes, n_nodes))
    matrix = sp.csr_matrix(upper + upper.T)
    matrix.sort_indices()
    return matrix


def marginals(source: np.ndarray, target: np.ndarray, count: np.ndarray, n_nodes: int) -> np.ndarray:
    """n_i = Σ_j n_ij, int64 (V,)."""
    weights = count.astype(np.float64)  # exact below 2^53
    total: np.ndarray = np.bincount(source, weights, n_nodes) + np.bincount(target, weights, n_nodes)
    return total.astype(np.int64)


def ppmi_from_counts(counts: sp.csr_matrix, shift: float = 0.0, smoothing: float = 1.0) -> sp.csr_matrix:
    """PPMI from the symmetric counts, (V, V) CSR float64.

    ``shift`` is subtracted before the cut at zero (log k for k negative samples). ``smoothing`` < 1 flattens the
    context distribution: n_j^smoothing / Σ_j n_j^smoothing replaces n_j / N, and the result is asymmetric.
    """
    marginal = np.asarray(counts.sum(axis=1, dtype=np.float64)).ravel()
    context = marginal**smoothing
    with np.errstate(divide="ignore"):
        of_row, of_column = np.log(marginal), np.log(context / max(context.sum(), 1e-300))
    values = np.log(counts.data, dtype=np.float64)
    values -= np.repeat(of_row, np.diff(counts.indptr))
    values -= of_column[counts.indices]
    return _positive(counts, values, shift)


def ppmi_from_values(values: sp.csr_matrix, scale: float, shift: float = 0.0) -> sp.csr_matrix:
    """PPMI given as whole numbers, ``scale`` times the values."""
    return _positive(values, values.data / scale, shift)


def _positive(like: sp.csr_matrix, values: np.ndarray, shift: float) -> sp.csr_matrix:
    kept = values > shift
    starts = np.concatenate([[0], np.cumsum(kept)])[like.indptr]
    return sp.csr_matrix((values[kept] - shift, like.indices[kept], starts), like.shape)
