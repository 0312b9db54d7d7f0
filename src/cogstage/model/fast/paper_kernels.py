"""Kernels for lists of term pairs, each with its own backward: nothing of size pairs × relations × dimension is kept.

``l1_scores`` and ``pair_sum`` take numba on the CPU and plain torch elsewhere; both give the same values.
Pairs are divided into a fixed number of parts, so results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import torch
from torch import Tensor

from cogstage.model.fast.threads import PARTS, spread  # each part has its own partial sums in a backward pass

NUMBA_DTYPES = (torch.float32, torch.float64)
_jit = numba.njit(fastmath={"reassoc", "contract", "nsz", "arcp"}, cache=True, nogil=True)


@_jit
def _l1_forward(part: int, terms: Any, relations: Any, left: Any, right: Any, scores: Any) -> None:
    pairs, dimension, count = left.shape[0], terms.shape[1], relations.shape[0]
    difference = np.empty(dimension, terms.dtype)
    for m in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        i, j = left[m], right[m]
        for x in range(dimension):
            difference[x] = terms[i, x] - terms[j, x]
        for k in range(count):
            total = terms.dtype.type(0)
            for x in range(dimension):
                total += abs(difference[x] + relations[k, x])
            scores[m, k] = -total


@_jit
def _l1_backward(
    part: int, terms: Any, relations: Any, left: Any, right: Any, grad: Any, grad_terms: Any, grad_relations: Any
) -> None:
    pairs, dimension, count = left.shape[0], terms.shape[1], relations.shape[0]
    zero, one = terms.dtype.type(0), terms.dtype.type(1)
    difference = np.empty(dimension, terms.dtype)
    moved = np.empty(dimension, terms.dtype)
    for m in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        i, j = left[m], right[m]
        touched = False
        for k in range(count):
            weight = grad[m, k]
            if weight == zero:  # most relations do not beat NA: nothing flows
                continue
            if not touched:
                touched = True
                for x in range(dimension):
                    difference[x] = terms[i, x] - terms[j, x]
                    moved[x] = zero
            for x in range(dimension):
                value = difference[x] + relations[k, x]
                step = -weight * ((one if value > zero else zero) - (one if value < zero else zero))
                moved[x] += step
                grad_relations[part, k, x] += step
        if touched:
            for x in range(dimension):
                grad_terms[part, i, x] += moved[x]
                grad_terms[part, j, x] -= moved[x]


@_jit
def _triples_forward(part: int, terms: Any, relations: Any, left: Any, name: Any, right: Any, scores: Any) -> None:
    pairs, dimension = left.shape[0], terms.shape[1]
    for m in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        i, k, j = left[m], name[m], right[m]
        total = terms.dtype.type(0)
        for x in range(dimension):
            total += abs(terms[i, x] + relations[k, x] - terms[j, x])
        scores[m] = -total


@_jit
def _triples_backward(
    part: int,
    terms: Any,
    relations: Any,
    left: Any,
    name: Any,
    right: Any,
    grad: Any,
    grad_terms: Any,
    grad_relations: Any,
) -> None:
    pairs, dimension = left.shape[0], terms.shape[1]
    zero, one = terms.dtype.type(0), terms.dtype.type(1)
    for m in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        i, k, j, weight = left[m], name[m], right[m], grad[m]
        if weight == zero:
            continue
        for x in range(dimension):
            value = terms[i, x] + relations[k, x] - terms[j, x]
            step = -weight * ((one if value > zero else zero) - (one if value < zero else zero))
            grad_terms[part, i, x] += step
            grad_terms[part, j, x] -= step
            grad_relations[part, k, x] += step


@_jit
def _sum_forward(
    part: int, head: Any, tail: Any, left: Any, right: Any, features: Any, weights: Any, total: Any
) -> None:
    pairs, dimension, count = left.shape[0], head.shape[1], weights.shape[0]
    for m in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        i, j = left[m], right[m]
        for x in range(dimension):
            total[m, x] = head[i, x] + tail[j, x]
        for k in range(count):
            feature = features[m, k]
            if feature != 0:
                for x in range(dimension):
                    total[m, x] += feature * weights[k, x]


@_jit
def _sum_backward(
    part: int,
    left: Any,
    right: Any,
    features: Any,
    weights: Any,
    grad: Any,
    g_head: Any,
    g_tail: Any,
    g_features: Any,
    g_weights: Any,
) -> None:
    pairs, dimension, count = left.shape[0], weights.shape[1], weights.shape[0]
    for m in range(part * pairs // PARTS, (part + 1) * pairs // PARTS):
        i, j = left[m], right[m]
        for x in range(dimension):
            g_head[part, i, x] += grad[m, x]
            g_tail[part, j, x] += grad[m, x]
        for k in range(count):
            feature = features[m, k]
            inner = weights.dtype.type(0)
            for x in range(dimension):
                inner += grad[m, x] * weights[k, x]
            g_features[m, k] = inner
            if feature != 0:
                for x in range(dimension):
                    g_weights[part, k, x] += feature * grad[m, x]


@numba.njit(cache=True, nogil=True)
def _distinct(left: Any, right: Any, size: int, index: Any, first: Any) -> int:
    """Number pairs by first appearance with an open-addressing table; ``first[u]`` is where pair u appears first."""
    mask = size - 1
    table = np.full(size, -1, np.int64)
    n_found = 0
    for m in range(left.shape[0]):
        key = np.uint64(left[m]) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(right[m]) * np.uint64(0xC2B2AE3D27D4EB4F)
        slot = np.int64((key ^ (key >> np.uint64(29))) & np.uint64(mask))
        while True:
            entry = table[slot]
            if entry < 0:
                table[slot] = n_found
                first[n_found] = m
                index[m] = n_found
                n_found += 1
                break
            if left[first[entry]] == left[m] and right[first[entry]] == right[m]:
                index[m] = entry
                break
            slot = (slot + 1) & mask
    return n_found


def distinct_pairs(left: Tensor, right: Tensor) -> tuple[Tensor, Tensor]:
    """Distinct pairs of two long vectors: where each appears first (U,), and for each pair which one it is (M,)."""
    if left.device.type != "cpu":
        span = int(right.max()) + 1 if len(right) else 1
        _, index = torch.unique(left * span + right, return_inverse=True)
        count = int(index.max()) + 1 if len(index) else 0
        first = torch.full((count,), len(left), device=left.device)
        first.scatter_reduce_(0, index, torch.arange(len(left), device=left.device), "amin")
        return first, index
    which, begin = np.empty(len(left), np.int64), np.empty(len(left), np.int64)
    size = 1 << max(4, (2 * len(left)).bit_length())
    count = _distinct(left.numpy(), right.numpy(), size, which, begin)
    return torch.from_numpy(begin[:count]), torch.from_numpy(which)


def on_numba(*tensors: Tensor) -> bool:
    """Whether the numba kernels can take these tensors."""
    return all(tensor.device.type == "cpu" and tensor.dtype in NUMBA_DTYPES for tensor in tensors)


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.detach().contiguous().numpy()
    return array


class _L1Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Tensor, relations: Tensor, left: Tensor, right: Tensor) -> Tensor:
        scores = terms.new_empty(len(left), len(relations))
        spread(_l1_forward, len(left), _array(terms), _array(relations), left.numpy(), right.numpy(), scores.numpy())
        ctx.save_for_backward(terms, relations, left, right)
        return scores

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        terms, relations, left, right = ctx.saved_tensors
        grad_terms = terms.new_zeros(PARTS, *terms.shape)
        grad_relations = relations.new_zeros(PARTS, *relations.shape)
        arrays = (_array(terms), _array(relations), left.numpy(), right.numpy(), _array(grads[0]))
        spread(_l1_backward, len(left), *arrays, grad_terms.numpy(), grad_relations.numpy())
        return grad_terms.sum(0), grad_relations.sum(0), None, None


class _L1Triples(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, terms: Tensor, relations: Tensor, left: Tensor, name: Tensor, right: Tensor) -> Tensor:
        scores = terms.new_empty(len(left))
        arrays = (_array(terms), _array(relations), _array(left), _array(name), _array(right))
        spread(_triples_forward, len(left), *arrays, scores.numpy())
        ctx.save_for_backward(terms, relations, left, name, right)
        return scores

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        terms, relations, left, name, right = ctx.saved_tensors
        grad_terms = terms.new_zeros(PARTS, *terms.shape)
        grad_relations = relations.new_zeros(PARTS, *relations.shape)
        arrays = (_array(terms), _array(relations), _array(left), _array(name), _array(right), _array(grads[0]))
        spread(_triples_backward, len(left), *arrays, grad_terms.numpy(), grad_relations.numpy())
        return grad_terms.sum(0), grad_relations.sum(0), None, None, None


class _PairSum(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, head: Tensor, tail: Tensor, left: Tensor, right: Tensor, features: Tensor, weights: Tensor
    ) -> Tensor:
        total = head.new_empty(len(left), head.shape[1])
        arrays = (_array(head), _array(tail), left.numpy(), right.numpy(), _array(features), _array(weights))
        spread(_sum_forward, len(left), *arrays, total.numpy())
        ctx.save_for_backward(left, right, features, weights)
        ctx.shapes = head.shape, tail.shape
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        left, right, features, weights = ctx.saved_tensors
        g_head, g_tail = (grads[0].new_zeros(PARTS, *shape) for shape in ctx.shapes)
        g_features, g_weights = torch.empty_like(features), weights.new_zeros(PARTS, *weights.shape)
        arrays = (left.numpy(), right.numpy(), _array(features), _array(weights), _array(grads[0]))
        spread(_sum_backward, len(left), *arrays, g_head.numpy(), g_tail.numpy(), g_features.numpy(), g_weights.numpy())
        return g_head.sum(0), g_tail.sum(0), None, None, g_features, g_weights.sum(0)


def l1_scores(terms: Tensor, relations: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """s[m, k] = -‖terms[left[m]] + relations[k] - terms[right[m]]‖₁; (T, d), (K, d), (M,), (M,) -> (M, K)."""
    if on_numba(terms, relations):
        result: Tensor = _L1Scores.apply(terms, relations, left, right)  # type: ignore[no-untyped-call]
        return result
    difference = terms[left] - terms[right]
    return -torch.cdist(difference, -relations, p=1.0)


def l1_triples(terms: Tensor, relations: Tensor, left: Tensor, name: Tensor, right: Tensor) -> Tensor:
    """-‖terms[left[m]] + relations[name[m]] - terms[right[m]]‖₁; (T, d), (K, d), (M,), (M,), (M,) -> (M,)."""
    if on_numba(terms, relations):
        result: Tensor = _L1Triples.apply(terms, relations, left, name, right)  # type: ignore[no-untyped-call]
        return result
    return -(terms[left] + relations[name] - terms[right]).abs().sum(1)


def pair_sum(head: Tensor, tail: Tensor, left: Tensor, right: Tensor, features: Tensor, weights: Tensor) -> Tensor:
    """head[left[m]] + tail[right[m]] + features[m]·weights; (T, e), (T, e), (M,), (M,), (M, f), (f, e) -> (M, e)."""
    if on_numba(head, tail, features, weights):
        result: Tensor = _PairSum.apply(head, tail, left, right, features, weights)  # type: ignore[no-untyped-call]
        return result
    return head[left] + tail[right] + features @ weights
