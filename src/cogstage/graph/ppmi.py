"""PPMI(i,j) = max(0, log( n_ij·N / (n_i·n_j) )), n_i = Σ_j n_ij, N = Σ_i n_i; shift and smoothing default to off."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


def ppmi(counts: sp.csr_matrix, shift: float = 0.0, smoothing: float = 1.0) -> sp.csr_matrix:
    """PPMI of a symmetric count matrix, zeros left out.

    ``shift`` is subtracted before the cut at zero (log k for k negative samples). ``smoothing`` < 1 flattens the
    context distribution: n_j^smoothing / Σ_j n_j^smoothing takes the place of n_j / N, and the result is asymmetric.
    """
    counts = sp.csr_matrix(counts, dtype=np.float64)
    marginal = np.asarray(counts.sum(axis=1)).ravel()
    total = marginal.sum()
    if total == 0:
        return counts
    context = marginal**smoothing
    context /= context.sum()
    with np.errstate(divide="ignore"):
        log_row, log_context = np.log(marginal), np.log(context)
    rows = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    values = np.log(counts.data) - log_row[rows] - log_context[counts.indices] - shift
    # A copy: taking the zeros out rewrites the index arrays, which are those of the caller's matrix.
    result = sp.csr_matrix((np.maximum(values, 0.0), counts.indices, counts.indptr), shape=counts.shape, copy=True)
    result.eliminate_zeros()
    return result
