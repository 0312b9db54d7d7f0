"""What can be shared: suppression of small counts, and differentially private release.

Private release protects one patient (one document, if there are no patients): two data sets that differ in one of
them give graphs whose probabilities differ by at most a factor e^ε, up to δ.

1. A patient adds 1 to each of at most M pairs (which ones, a keyed hash decides), so the counts of two neighbouring
   data sets differ by at most M in sum.
2. Every count gets discrete Laplace noise, P(z) ∝ exp(-|z|·ε/M): whole numbers, so that no rounding of floating point
   numbers tells anything.
3. Only pairs whose noisy count reaches τ are released. A pair that one patient alone has (count 1) is released with
   probability at most P(z ≥ τ-1) = p^(τ-1)/(1+p), p = exp(-ε/M); there are at most M of them, so with
   τ = 1 + ⌈ln(M / (δ·(1+p))) · M/ε⌉ the chance that any shows is at most δ.
4. Terms are those of released pairs, and a term's count is the largest released count of its pairs: computed from
   what is released, so it costs nothing of the budget. Exact totals and hashes of the inputs are not recorded.
5. With the order in time a patient adds 1 to one of three further counts of the same pairs, 2·M in all: everything gets
   noise of scale 2·M/ε, and the order is released for released pairs.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from cogstage.graph import kernels, private_kernels
from cogstage.graph.counting import Rows
from cogstage.graph.edges import Edges
from cogstage.graph.options import PrivacyOptions


def threshold(private: PrivacyOptions, order: bool = False) -> int:
    """τ: the smallest noisy count that is released."""
    scale = noise_scale(private, order)
    p = math.exp(-1 / scale)
    steps = (math.log(private.pairs) - math.log(private.delta) - math.log1p(p)) * scale
    return 1 + max(1, math.ceil(steps))


def noise_scale(private: PrivacyOptions, order: bool = False) -> float:
    """Scale of the noise: what one patient can change, divided by ε; the order in time doubles it."""
    return (2 if order else 1) * private.pairs / private.epsilon


def bounded_edges(rows: Rows, key: np.ndarray, most: int, seed: int, lag: int | None = None) -> Edges:
    """How many groups have each pair, when no group may have more than ``most`` pairs; rows sorted and distinct.

    ``key`` is a hash of each term that does not change with the data. With ``lag`` each group's order of its pairs is
    counted too.
    """
    day = np.empty(0, np.int32)
    if lag is not None and rows.day is not None:
        day = kernels.first_days(rows.group, rows.term, rows.day, len(key))
    found, which = private_kernels.bounded_pairs(
        rows.group, rows.unit, rows.term, key, most, seed, day, 0 if lag is None else lag
    )
    pairs, at, count = np.unique(found, return_inverse=True, return_counts=True)
    source, target = (pairs >> np.uint64(32)).astype(np.int32), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int32)
    order = None
    if lag is not None:
        order = np.bincount(at * 4 + which, minlength=4 * len(pairs)).reshape(-1, 4)[:, :3].astype(np.int32)
    return Edges(source, target, count.astype(np.int64), count.astype(np.int64), order)


def release(edges: Iterable[Edges], private: PrivacyOptions, noise: np.random.Generator) -> Iterator[Edges]:
    """The edges with noise, those below the threshold left out; order, if there is any, with noise of its own."""
    for part in edges:
        ordered = part.order is not None
        least, p = threshold(private, ordered), -math.expm1(-1 / noise_scale(private, ordered))
        draws = noise.geometric(p, (len(part), 8 if ordered else 2))  # edge by edge: pieces do not matter
        noisy = part.count + draws[:, 0] - draws[:, 1]
        kept = noisy >= least
        order = None
        if part.order is not None:
            order = np.maximum(part.order + draws[:, 2:5] - draws[:, 5:8], 0)[kept].astype(np.int32)
        yield Edges(part.source[kept], part.target[kept], noisy[kept].astype(np.int64), None, order)


def noise_from(seed: int | None) -> np.random.Generator:
    """The source of noise: entropy of the operating system, which is not stored, unless a test gives a seed."""
    return np.random.default_rng(None if seed is None else [seed, 0x5EED])


def fresh_seed() -> int:
    """A random secret seed, for hashes that must not be reproducible outside this build."""
    return secrets.randbits(62)


def suppress(edges: Iterable[Edges], below: int) -> Iterator[Edges]:
    """The edges that at least ``below`` groups have (or whose count is, where groups were not counted).

    The order of a pair is left out unless each of its counts is 0 or reaches ``below``.
    """
    for part in edges:
        kept = part.where((part.count if part.groups is None else part.groups) >= below)
        if kept.order is not None:
            order = kept.order.copy()
            order[np.any((order > 0) & (order < below), axis=1)] = 0
            kept = replace(kept, order=order)
        yield kept
