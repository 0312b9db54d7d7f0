"""Truncated SVD of a large matrix that is known by its products alone (Halko, Martinsson and Tropp 2011)."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import linalg

from cogstage.scratch import FileRows

OVERSAMPLES, ITERATIONS = 10, 4


def truncated_svd(matrix: Any, rank: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """U (n, rank), S (rank,) and V (m, rank) of a matrix with ``shape``, ``@`` and ``.T``; the first are the largest.

    The largest entry of each column of U is positive, so that the same seed gives the same signs everywhere.
    """
    basis = np.random.RandomState(seed).normal(size=(matrix.shape[1], rank + OVERSAMPLES))
    for _ in range(ITERATIONS):  # LU keeps the columns apart, and is cheaper than QR
        for turned in (matrix, matrix.T):
            basis = turned @ basis  # by itself, so that the former basis is not held any longer
            basis = linalg.lu(basis, permute_l=True, overwrite_a=True, check_finite=False)[0]
    basis = matrix @ basis
    basis = linalg.qr(basis, mode="economic", overwrite_a=True, check_finite=False)[0]
    small = (matrix.T @ basis).T  # (rank + oversamples, m)
    resting = FileRows(basis.T.shape, basis.dtype)
    resting[:] = basis.T  # the columns in one piece, as LAPACK gave them
    del basis
    inner, size, right = linalg.svd(small, full_matrices=False, overwrite_a=True)
    del small  # the results are as large
    left = resting[:].T @ inner
    sign = np.sign([column[np.abs(column).argmax()] for column in left.T])
    left *= sign
    right *= sign[:, None]
    return left[:, :rank], size[:rank], right.T[:, :rank]
