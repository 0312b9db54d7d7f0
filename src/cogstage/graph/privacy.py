"""What leaves the house: suppression of small counts, and differentially private release.

Private release protects one patient (one document, where there are no patients): two data sets that differ in one of
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
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Iterable, Iterator

import numpy as np

from cogstage.graph import kernels
from cogstage.graph.counting import Rows
from cogstage.graph.edges import Edges
from cogstage.graph.options import Private


def threshold(private: Private) -> int:
    """τ: the smallest noisy count that is released."""
    p = math.exp(-private.epsilon / private.pairs)
    steps = math.log(private.pairs / (private.delta * (1 + p))) * private.pairs / private.epsilon
    return 1 + max(1, math.ceil(steps))


def bounded_edges(rows: Rows, most: int, seed: int) -> Edges:
    """How many groups have each pair, when no group may have more than ``most`` pairs; rows sorted and distinct."""
    pairs, count = np.unique(kernels.bounded_pairs(rows.group, rows.unit, rows.term, most, seed), return_counts=True)
    source, target = (pairs >> np.uint64(32)).astype(np.int32), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int32)
    return Edges(source, target, count.astype(np.int64), count.astype(np.int64))


def release(edges: Iterable[Edges], private: Private, seed: int) -> Iterator[Edges]:
    """The edges with noise, those below the threshold left out; they come sorted, so a seed gives one result."""
    rng = np.random.default_rng([seed, 0x5EED])
    least, p = threshold(private), -math.expm1(-private.epsilon / private.pairs)
    for part in edges:
        draws = rng.geometric(p, (len(part), 2))  # edge by edge, so that the pieces they come in do not matter
        noisy = part.count + draws[:, 0] - draws[:, 1]
        kept = noisy >= least
        yield Edges(part.source[kept], part.target[kept], noisy[kept].astype(np.int64))


def fresh_seed() -> int:
    """A seed nobody knows: noise that can be made again can be taken off again."""
    return secrets.randbits(62)


def suppress(edges: Iterable[Edges], below: int) -> Iterator[Edges]:
    """The edges that at least ``below`` groups have (or whose count is, where groups were not counted)."""
    for part in edges:
        yield part.where((part.count if part.groups is None else part.groups) >= below)
