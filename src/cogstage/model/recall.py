"""Stage 1, recall: which terms come to mind for a term.

    p(j|i) = softmax over all of V of υ'_j·υ_i          target p̂(j|i) = PPMI(i,j) / Σ_k PPMI(i,k)
    L_n = -Σ_j p̂(j|i) log p(j|i), averaged over the nodes of a batch

Targets stay sparse and the softmax is taken in chunks of rows, so nothing of size |V|×|V| exists. The gradient is
known, ∂L/∂logits = p - p̂, and is taken in the same pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor, nn

CHUNK = 1 << 22  # logits held at once: 16 MB in float32


@dataclass(frozen=True)
class RecallTargets:
    """p̂ as sparse rows: row i has ``indices[indptr[i]:indptr[i+1]]`` with ``values`` that sum to 1, or is empty."""

    indptr: np.ndarray  # int64 (V+1,)
    indices: np.ndarray  # int32 (E,)
    values: np.ndarray  # float32 (E,)

    @classmethod
    def of_ppmi(cls, ppmi: sp.csr_matrix) -> RecallTargets:
        """Rows of PPMI, each divided by its sum."""
        total = np.asarray(ppmi.sum(axis=1)).ravel()
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        values = (ppmi.data * np.repeat(scale, np.diff(ppmi.indptr))).astype(np.float32)
        return cls(ppmi.indptr.astype(np.int64), ppmi.indices.astype(np.int32, copy=False), values)

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


class _CrossEntropy(torch.autograd.Function):
    """Σ_i -Σ_j p̂(j|i) log p(j|i) for rows υ_i (n, d) against υ' (V, d)."""

    @staticmethod
    def forward(ctx: Any, terms: Tensor, context: Tensor, position: Tensor, column: Tensor, value: Tensor) -> Tensor:
        count = max(1, CHUNK // max(1, len(context)))
        value = value.to(terms.dtype)
        wanted = any(ctx.needs_input_grad)
        grad_terms = torch.empty_like(terms) if wanted else None
        grad_context = torch.zeros_like(context) if wanted else None
        loss = terms.new_zeros(())
        for begin in range(0, len(terms), count):
            end = min(begin + count, len(terms))
            chosen = slice(*torch.searchsorted(position, torch.tensor([begin, end], device=position.device)).tolist())
            where = ((position[chosen] - begin), column[chosen])
            logits = terms[begin:end] @ context.T  # (n, V)
            norm = logits.logsumexp(1, keepdim=True)
            mass = terms.new_zeros(end - begin).index_add_(0, where[0], value[chosen])  # 1, or 0 without a target
            loss += (mass * norm[:, 0]).sum() - (value[chosen] * logits[where]).sum()
            if grad_terms is None or grad_context is None:
                continue
            change = logits.sub_(norm).exp_().mul_(mass[:, None])  # p, in place
            change.index_put_(where, -value[chosen], accumulate=True)  # p - p̂
            grad_terms[begin:end] = change @ context
            grad_context.addmm_(change.T, terms[begin:end])
        ctx.save_for_backward(grad_terms, grad_context)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_terms, grad_context = ctx.saved_tensors
        if grads[0] != 1:
            grad_terms, grad_context = grad_terms * grads[0], grad_context * grads[0]
        return grad_terms, grad_context, None, None, None


class Recall(nn.Module):
    """Holds υ and υ'."""

    def __init__(self, terms: int, dimension: int) -> None:
        super().__init__()
        self.term = nn.Parameter(torch.randn(terms, dimension) * dimension**-0.5)  # υ (V, d)
        self.context = nn.Parameter(torch.randn(terms, dimension) * dimension**-0.5)  # υ' (V, d)

    def loss(self, terms: Tensor, entries: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """L_n summed over the given rows υ_i (n, d); ``entries`` are those of :meth:`RecallTargets.rows`."""
        result: Tensor = _CrossEntropy.apply(terms, self.context, *entries)  # type: ignore[no-untyped-call]
        return result

    @torch.no_grad()
    def associations(self, nodes: Tensor, candidates: Tensor, count: int) -> tuple[Tensor, Tensor]:
        """The ``count`` best of p(·|i) among candidates, best first: ids (n, N) and p (n, N)."""
        count = min(count, len(candidates))
        rows = max(1, CHUNK // max(1, len(self.context)))
        ids = torch.empty(len(nodes), count, dtype=torch.long, device=nodes.device)
        probability = torch.empty(len(nodes), count, dtype=self.term.dtype, device=nodes.device)
        for begin in range(0, len(nodes), rows):
            chosen = slice(begin, begin + rows)
            log_p = self.log_probabilities(nodes[chosen], candidates)
            best = log_p.topk(count, dim=1)
            ids[chosen], probability[chosen] = candidates[best.indices], best.values.exp()
        return ids, probability

    @torch.no_grad()
    def log_probabilities(self, nodes: Tensor, candidates: Tensor) -> Tensor:
        """log p(j|i) for candidates j, normalised over all of V: (n, C)."""
        logits = self.term[nodes] @ self.context.T
        norm = logits.logsumexp(1, keepdim=True)
        chosen = logits if len(candidates) == logits.shape[1] else logits[:, candidates]
        return chosen - norm


class AssociationTable:
    """The associations of terms, recalled when first asked for and kept until :meth:`refresh`."""

    def __init__(self, recall: Recall, candidates: Tensor, count: int) -> None:
        self._recall, self._candidates = recall, candidates
        self._count = min(count, len(candidates))
        terms = len(recall.term)
        self._row = torch.full((terms,), -1, dtype=torch.long)  # where a term's associations stand
        self.refresh()

    def refresh(self) -> None:
        """Forget everything: υ or υ' have moved."""
        device = self._recall.term.device
        self._row = self._row.to(device).fill_(-1)
        self._ids = torch.empty(0, self._count, dtype=torch.long, device=device)
        self._probability = torch.empty(0, self._count, dtype=self._recall.term.dtype, device=device)

    def recall_now(self, nodes: Tensor) -> None:
        """Recall for many terms at once, so that what they recall does not depend on who asks first."""
        self.of(torch.unique(nodes))

    def of(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Associations of each node: ids (n, N) and p (n, N)."""
        missing = torch.unique(nodes[self._row[nodes] < 0])
        if len(missing):
            ids, probability = self._recall.associations(missing, self._candidates, self._count)
            self._row[missing] = torch.arange(len(self._ids), len(self._ids) + len(ids), device=ids.device)
            self._ids = torch.cat([self._ids, ids])
            self._probability = torch.cat([self._probability, probability])
        row = self._row[nodes]
        return self._ids[row], self._probability[row]


def svd_start(recall: Recall, ppmi: sp.csr_matrix, seed: int) -> None:
    """Begin υ = U·√S and υ' = V·√S of the truncated SVD of PPMI, so that υ'_j·υ_i is near PPMI(i,j) from the start.

    A term without a positive PPMI keeps its random vector.
    """
    from sklearn.utils.extmath import randomized_svd

    dimension = min(recall.term.shape[1], min(ppmi.shape) - 1)
    if dimension < 1 or ppmi.nnz == 0:
        return
    left, size, right = randomized_svd(ppmi, dimension, n_iter=4, random_state=seed)
    for parameter, vectors in ((recall.term, left), (recall.context, right.T)):
        start = vectors * np.sqrt(size)
        known = torch.from_numpy(np.flatnonzero(np.abs(start).sum(axis=1) > 1e-8))
        with torch.no_grad():
            parameter[known] = 0.0
            parameter[known, :dimension] = torch.from_numpy(start).to(parameter.dtype)[known]
