"""Stage 1, recall: two vectors per term, from the counts alone and from the counts joined with the training facts.

    υ   = U·√S of the truncated SVD of PPMI
    P   PPMI, each row scaled to length 1
    F   1/√n_kj in row i and column (k, j) for a training fact (i, k, j), where the column has n_kj facts;
        the row of a term with n facts scaled to length √(n / (n + 4))
    ρ   = U·√S of the truncated SVD of [ P | λ·F ]
    ℓ(h,i)  = cosine of the centred towers of h and i (stage 2 makes the towers from υ and ρ)

The associations of a term are the N nearest candidates (terms of the training facts), the term itself excluded.
"""

from __future__ import annotations

import threading

import numpy as np
import scipy.sparse as sp

from cogstage.model.fast.strongest import strongest

FACT_SHRINKAGE = 4  # number of facts of a term at which ρ gives them half of their weight
POWER_ITERATIONS = 4
CHUNK = 1 << 22  # similarities computed together: 16 MB in float32


def unit_rows(ppmi: sp.csr_matrix) -> sp.csr_matrix:
    """P (V, V) float32."""
    scale = np.repeat(_inverse(_lengths(ppmi)), np.diff(ppmi.indptr))
    return sp.csr_matrix(((ppmi.data * scale).astype(np.float32), ppmi.indices, ppmi.indptr), ppmi.shape)


def fact_columns(facts: np.ndarray, relations: int, terms: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """F (V, C) float32 for training facts (n, 3) of R relations, and the key k·V + j of each column, sorted.

    The inverse of relation k is k + R, so that every fact stands in two rows.
    """
    head, k, tail = facts.astype(np.int64).T
    rows = np.concatenate([head, tail])
    keys = np.concatenate([k * terms + tail, (k + relations) * terms + head])
    columns, column, n_facts = np.unique(keys, return_inverse=True, return_counts=True)
    table = sp.csr_matrix(((1.0 / np.sqrt(n_facts[column])).astype(np.float32), (rows, column)), (terms, len(columns)))
    per_term = np.diff(table.indptr)
    scale = np.sqrt(per_term / (per_term + FACT_SHRINKAGE)) * _inverse(_lengths(table))
    return sp.csr_matrix(sp.diags_array(scale.astype(np.float32)) @ table), columns


def with_facts(unit: sp.csr_matrix, facts: sp.csr_matrix, weight: float) -> sp.csr_matrix:
    """[ P | λ·F ] (V, V + C)."""
    return sp.hstack([unit, facts * np.float32(weight)], format="csr")


def vectors(matrix: sp.csr_matrix, dimension: int, seed: int) -> np.ndarray:
    """U·√S (V, d) float32 of the truncated SVD of a matrix; columns beyond its rank are 0.

    The SVD is the randomised one of Halko, Martinsson and Tropp (2011). Its last columns have not fully converged.
    """
    from sklearn.utils.extmath import randomized_svd

    result = np.zeros((matrix.shape[0], dimension), np.float32)
    rank = min(dimension, min(matrix.shape) - 1)
    if rank >= 1 and matrix.nnz:
        left, size, _ = randomized_svd(
            matrix, rank, n_iter=POWER_ITERATIONS, power_iteration_normalizer="LU", random_state=seed
        )
        result[:, :rank] = left * np.sqrt(size)
    return result


def directions(vectors: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1; a row of zeros stays."""
    scaled: np.ndarray = vectors * _inverse(np.linalg.norm(vectors, axis=1))[:, None].astype(vectors.dtype)
    return scaled


def similarity(vectors: np.ndarray, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """max(0, cos(υ_h, υ_t)): whether two terms occur beside the same terms. (B,), (B,) -> (B,)."""
    cosine: np.ndarray = (directions(vectors[head]) * directions(vectors[tail])).sum(1)
    return cosine.clip(min=0)


def _lengths(matrix: sp.csr_matrix) -> np.ndarray:
    """Euclidean length of each row."""
    squares = np.bincount(np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr)), matrix.data.astype(float) ** 2)
    lengths: np.ndarray = np.sqrt(np.append(squares, np.zeros(matrix.shape[0] - len(squares))))
    return lengths


def _inverse(length: np.ndarray) -> np.ndarray:
    """1 / length, and 0 for 0."""
    result: np.ndarray = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return result


class Associations:
    """The N nearest candidates of each term by one tower, computed when a term is first asked for."""

    def __init__(self, tower: np.ndarray, candidates: np.ndarray, count: int) -> None:
        """``tower`` (V, w) has a row per term, ``candidates`` (C,) are the terms that may be associated, sorted."""
        centre = tower[candidates].mean(0) if len(candidates) else np.zeros(tower.shape[1], tower.dtype)
        self._tower, self._candidates, self._centre = tower, candidates, centre
        self._position = np.full(len(tower), -1, np.int64)  # of a term among the candidates
        self._position[candidates] = np.arange(len(candidates))
        self._directions = directions(tower[candidates] - centre)  # (C, w)
        self.count = min(count, max(len(candidates) - 1, 0))
        self._row = np.full(len(tower), -1, np.int64)  # of a term in the tables below; -1: not computed yet
        self._ids = np.empty((0, self.count), np.int64)
        self._similarity = np.empty((0, self.count), tower.dtype)
        self._lock = threading.Lock()

    def nearest(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ids (B, N) and similarity (B, N) of each node's associations, nearest first."""
        with self._lock:
            missing = np.unique(nodes[self._row[nodes] < 0])
            if len(missing):
                rows = max(1, CHUNK // max(1, len(self._candidates)))
                parts = [self._compute(missing[at : at + rows]) for at in range(0, len(missing), rows)]
                first = len(self._ids)
                self._ids = np.concatenate([self._ids, *(ids for ids, _ in parts)])
                self._similarity = np.concatenate([self._similarity, *(values for _, values in parts)])
                self._row[missing] = np.arange(first, len(self._ids))
            rows_of = self._row[nodes]
            return self._ids[rows_of], self._similarity[rows_of]

    def _compute(self, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        cosine = directions(self._tower[nodes] - self._centre) @ self._directions.T  # (n, C)
        own = np.flatnonzero(self._position[nodes] >= 0)
        cosine[own, self._position[nodes[own]]] = -2.0  # not the term itself
        best = strongest(cosine, self.count)
        return self._candidates[best], np.take_along_axis(cosine, best, 1)
