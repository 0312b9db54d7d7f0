"""Stage 1, recall: vectors that know which terms occur together, and the associations of a term.

    p(j|i)  = softmax over all of V of υ'_j·υ_i             target  p̂(j|i) = PPMI(i,j) / Σ_k PPMI(i,k)
    L_n     = -Σ_j p̂(j|i) log p(j|i), averaged over the nodes of a batch
    ρ       = U·√S of the truncated SVD of A = [ P | λ·F ]
              P  PPMI, each row scaled to length 1
              F  1/√n_kj in row i and column (k, j) for a training fact (i, k, j), where the column has n_kj facts;
                 the row of a term with n facts scaled to length √(n / (n + 4))
    ℓ(h,i)  = cosine of the centred towers of h and i (stage 2 makes the towers from υ and ρ)

The associations of a term are the N likest candidates (terms of the training facts), the term itself excluded.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.graph.ppmi import Ppmi
from cogstage.model.fast.recall import cross_entropy
from cogstage.model.fast.svd import truncated_svd
from cogstage.scratch import FileRows

FEW = 4  # facts of a term at which ρ trusts them half as much as it ever does
BATCH = 512  # nodes per step of L_n
ROWS = 1 << 12  # vectors that are set together
COLUMNS = 32  # of a product with facts that are computed together


@dataclass(frozen=True)
class RecallTargets:
    """p̂ as sparse rows: row i has ``indices[indptr[i]:indptr[i+1]]`` with ``values`` that sum to 1, or is empty."""

    indptr: np.ndarray  # int64 (V+1,)
    indices: np.ndarray | FileRows  # int32 (E,)
    values: np.ndarray | FileRows  # float32 (E,)

    @classmethod
    def from_ppmi(cls, ppmi: Ppmi) -> RecallTargets:
        """Rows of PPMI, each divided by its sum."""
        return cls(*ppmi.shares())

    @classmethod
    def empty(cls) -> RecallTargets:
        """No rows."""
        return cls(np.zeros(1, np.int64), np.empty(0, np.int32), np.empty(0, np.float32))

    @property
    def nodes(self) -> np.ndarray:
        """The nodes that carry a loss: those with a positive PPMI."""
        return np.flatnonzero(np.diff(self.indptr))

    def rows(self, nodes: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Entries of some rows: position within ``nodes`` (n,), column (n,), value (n,)."""
        begin, length = self.indptr[nodes], np.diff(self.indptr)[nodes]
        position = np.repeat(np.arange(len(nodes)), length)
        offset = np.arange(length.sum()) - np.repeat(np.cumsum(length) - length, length)
        entry = np.repeat(begin, length) + offset
        columns = torch.from_numpy(self.indices[entry].astype(np.int64))
        return torch.from_numpy(position), columns, torch.from_numpy(self.values[entry])


class Recall(nn.Module):
    """Holds υ and υ'."""

    def __init__(self, terms: int, dimension: int) -> None:
        super().__init__()
        self.term = nn.Parameter(torch.randn(terms, dimension) * dimension**-0.5)  # υ (V, d)
        self.context = nn.Parameter(torch.randn(terms, dimension) * dimension**-0.5)  # υ' (V, d)

    def loss(self, terms: Tensor, entries: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """L_n summed over the given rows υ_i (n, d); ``entries`` are those of :meth:`RecallTargets.rows`."""
        return cross_entropy(terms, self.context, *entries)

    @torch.no_grad()
    def similarity(self, head: Tensor, tail: Tensor) -> Tensor:
        """max(0, cos(υ_h, υ_t)): whether two terms occur beside the same terms. (B,), (B,) -> (B,)."""
        return F.cosine_similarity(self.term[head], self.term[tail]).clamp(min=0)

    def start_from_svd(self, ppmi: Ppmi, seed: int) -> None:
        """Set υ = U·√S and υ' = V·√S of the truncated SVD of PPMI, so that υ'_j·υ_i starts near PPMI(i,j).

        A term without a positive PPMI keeps its random vector.
        """
        dimension = min(self.term.shape[1], min(ppmi.shape) - 1)
        if dimension < 1:
            return
        left, size, right = truncated_svd(ppmi, dimension, seed)
        for parameter, vectors in ((self.term, left), (self.context, right)):
            for at in range(0, len(vectors), ROWS):
                start = vectors[at : at + ROWS] * np.sqrt(size)
                known = np.flatnonzero(np.abs(start).sum(axis=1) > 1e-8)
                with torch.no_grad():
                    parameter[at + known] = 0.0
                    parameter[at + known, :dimension] = torch.from_numpy(start[known]).to(parameter.dtype)


@dataclass(frozen=True)
class PpmiWithFacts:
    """A = [P | λ·F] (V, V + C), known by its products; F has a column for each (k, j) with facts."""

    ppmi: Ppmi
    scale: np.ndarray  # (V,) 1 / the length of a row of PPMI
    facts: sp.csr_matrix  # λ·F (V, C)
    columns: np.ndarray  # (C,) k·V + j, sorted

    @classmethod
    def from_facts(cls, ppmi: Ppmi, facts: np.ndarray, relations: int, weight: float) -> PpmiWithFacts:
        """The matrix for training facts (n, 3) of R relations; the inverse of k is k + R."""
        head, k, tail = facts.astype(np.int64).T
        terms, rows = len(ppmi.row), np.concatenate([head, tail])
        keys = np.concatenate([k * terms + tail, (k + relations) * terms + head])
        columns, column, often = np.unique(keys, return_inverse=True, return_counts=True)
        table = sp.csr_matrix((1.0 / np.sqrt(often[column]), (rows, column)), (terms, len(columns)))
        length = np.sqrt(np.asarray(table.multiply(table).sum(axis=1)).ravel())
        many = np.diff(table.indptr)
        table = sp.diags_array(weight * np.sqrt(many / (many + FEW)) * _inverse(length)) @ table
        return cls(ppmi, _inverse(ppmi.lengths()), table.tocsr(), columns)

    @property
    def shape(self) -> tuple[int, int]:
        """(V, V + C)."""
        return len(self.scale), len(self.scale) + len(self.columns)

    @property
    def T(self) -> _Turned:
        """Aᵀ, to be multiplied."""
        return _Turned(self)

    def __matmul__(self, dense: np.ndarray) -> np.ndarray:
        terms = len(self.scale)
        product = self.ppmi @ dense[:terms]
        product *= self.scale[:, None]
        product += self.facts @ dense[terms:]
        return product


@dataclass(frozen=True)
class _Turned:
    matrix: PpmiWithFacts

    def __matmul__(self, dense: np.ndarray) -> np.ndarray:
        matrix, terms = self.matrix, len(self.matrix.scale)
        product = np.empty((matrix.shape[1], dense.shape[1]))
        matrix.ppmi.times(np.multiply(matrix.scale[:, None], dense, order="C"), transposed=True, out=product[:terms])
        for at in range(0, dense.shape[1], COLUMNS):  # the results for all columns would be as large as the product
            product[terms:, at : at + COLUMNS] = matrix.facts.T @ dense[:, at : at + COLUMNS]
        return product


def _inverse(length: np.ndarray) -> np.ndarray:
    """1 / length, and 0 for 0."""
    found: np.ndarray = np.divide(1.0, length, out=np.zeros_like(length), where=length > 0)
    return found


def fact_vectors(matrix: PpmiWithFacts, dimension: int, seed: int) -> np.ndarray:
    """ρ (V, d) float32 from A; columns beyond the rank of A are 0."""
    count = min(dimension, min(matrix.shape) - 1)
    vectors = np.zeros((matrix.shape[0], dimension), np.float32)
    if count >= 1:
        left, size, _ = truncated_svd(matrix, count, seed)
        vectors[:, :count] = left * np.sqrt(size)
    return vectors
