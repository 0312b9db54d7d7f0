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

FEW = 4  # facts of a term at which ρ trusts them half as much as it ever does
BATCH = 512  # nodes per step of L_n
CHUNK = 1 << 22  # likenesses held at once: 16 MB in float32


@dataclass(frozen=True)
class RecallTargets:
    """p̂ as sparse rows: row i has ``indices[indptr[i]:indptr[i+1]]`` with ``values`` that sum to 1, or is empty."""

    indptr: np.ndarray  # int64 (V+1,)
    indices: np.ndarray  # int32 (E,)
    values: np.ndarray  # float32 (E,)

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
            start = vectors * np.sqrt(size)
            known = torch.from_numpy(np.flatnonzero(np.abs(start).sum(axis=1) > 1e-8))
            with torch.no_grad():
                parameter[known] = 0.0
                parameter[known, :dimension] = torch.from_numpy(start).to(parameter.dtype)[known]


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
        product[:terms] = matrix.ppmi.T @ (matrix.scale[:, None] * dense)
        product[terms:] = matrix.facts.T @ dense
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


class Associations:
    """The N likest candidates of each term by one tower, computed when first asked for."""

    def __init__(self, tower: Tensor, candidates: Tensor, count: int) -> None:
        """``tower`` (V, w) are all terms' vectors, ``candidates`` (C,) the terms that may be associated."""
        centred = tower - tower[candidates].mean(0)
        centred /= centred.norm(dim=1, keepdim=True).clamp_min(1e-12)
        self._tower, self._candidates = centred, candidates
        self._of_candidates = centred[candidates]  # (C, w)
        self._count = min(count, max(len(candidates) - 1, 0))
        self._place = torch.full((len(tower),), -1)  # of a term among the candidates
        self._place[candidates] = torch.arange(len(candidates))
        self._row = torch.full((len(tower),), -1)  # a term's row in the tables below
        self._ids = torch.empty(0, self._count, dtype=torch.long)
        self._likeness = torch.empty(0, self._count, dtype=tower.dtype)

    @torch.no_grad()
    def find(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Ids (B, N) and likeness (B, N) of each node's associations, likest first."""
        missing = nodes[self._row[nodes] < 0]
        if len(missing):
            for part in torch.unique(missing).split(max(1, CHUNK // max(1, len(self._candidates)))):
                self._append(part, *self._likest(part))
        row = self._row[nodes]
        return self._ids[row], self._likeness[row]

    def _likest(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        likeness = self._tower[nodes] @ self._of_candidates.T  # (n, C)
        place = self._place[nodes]
        (own,) = (place >= 0).nonzero(as_tuple=True)
        likeness[own, place[own]] = -2.0  # not the term itself
        best = likeness.topk(self._count, dim=1)
        return self._candidates[best.indices], best.values

    def _append(self, nodes: Tensor, ids: Tensor, likeness: Tensor) -> None:
        rows = torch.arange(len(self._ids), len(self._ids) + len(ids))
        self._ids, self._likeness = torch.cat([self._ids, ids]), torch.cat([self._likeness, likeness])
        self._row[nodes] = rows
