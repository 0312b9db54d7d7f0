"""What can be shared: suppression of small counts, and differentially private release.

Private release protects one patient (one document, if there are no patients): two data sets that differ in one of
them give graphs whose probabilities differ by at most a factor e^ε, up to δ.

1. A patient adds 1 to each of at most M pairs; a keyed hash decides which.
2. Every count gets discrete Gaussian or Laplace noise (:mod:`cogstage.graph.noise`), and only pairs whose noisy count
   reaches a threshold τ are released. :mod:`cogstage.graph.mechanism` derives noise and threshold from ε, δ and M.
3. Terms are those of released pairs, and a term's count is the largest released count of its pairs: computed from
   what is released, so it costs nothing of the budget. Exact totals and hashes of the inputs are not recorded.
4. With the order in time a patient adds 1 to one of three further counts of the same pairs, so there are twice as many
   numbers to protect. The order is released for released pairs.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from cogstage.graph import kernels, private_kernels
from cogstage.graph.counting import Rows
from cogstage.graph.edges import Edges
from cogstage.graph.mechanism import Mechanism, mechanism_for
from cogstage.graph.noise import Randomness
from cogstage.graph.options import PrivacyOptions
from cogstage.numbering import new_numbers

EXACT = (
    *("inputs", "decided", "documents", "units", "groups", "years", "skipped"),
    *("merged", "federated", "pairs_per_patient"),
)
BLOCK = 1 << 16  # numbers whose noise is drawn together


def bounded_edges(rows: Rows, key: np.ndarray, most: int, seed: int, lag: int | None = None) -> Edges:
    """How many groups have each pair, when no group may have more than ``most`` pairs; rows sorted and distinct.

    ``key`` is a hash of each term that does not change with the data. With ``lag`` each group's order of its pairs is
    counted too.
    """
    day = np.empty(0, np.int32)
    if lag is not None and rows.day is not None:
        day = kernels.first_days(rows.group, rows.term, rows.day, len(key))
    pairs, which = private_kernels.bounded_pairs(
        rows.group, rows.unit, rows.term, key, most, seed, day, 0 if lag is None else lag
    )
    pairs, at, count = np.unique(pairs, return_inverse=True, return_counts=True)
    source, target = (pairs >> np.uint64(32)).astype(np.int32), (pairs & np.uint64(0xFFFFFFFF)).astype(np.int32)
    order = None
    if lag is not None:
        order = np.bincount(at * 4 + which, minlength=4 * len(pairs)).reshape(-1, 4)[:, :3].astype(np.int32)
    return Edges(source, target, count.astype(np.int64), count.astype(np.int64), order)


def release(
    edges: Iterable[Edges], private: PrivacyOptions, random: Randomness, order: bool = False
) -> Iterator[Edges]:
    """The edges with noise, those below the threshold left out; order, if there is any, with noise of its own."""
    mechanism = mechanism_for(private, order)
    noise = NoiseStream(mechanism, random)
    for part in edges:
        numbers = 4 if order else 1
        drawn = noise.take(numbers * len(part)).reshape(len(part), numbers)  # edge by edge
        noisy = part.count + drawn[:, 0]
        kept = noisy >= mechanism.threshold
        cells = None
        if order and part.order is not None:
            cells = np.maximum(part.order + drawn[:, 1:], 0)[kept].astype(np.int32)
        yield Edges(part.source[kept], part.target[kept], noisy[kept].astype(np.int64), None, cells)


class NoiseStream:
    """The noise of one number after the other, drawn in blocks of one size, however the edges come in pieces."""

    def __init__(self, mechanism: Mechanism, random: Randomness) -> None:
        self.mechanism, self.random = mechanism, random
        self._left = np.empty(0, np.int64)

    def take(self, n: int) -> np.ndarray:
        """The noise of the next ``n`` numbers, int64 (n,)."""
        blocks = [self._left]
        missing = n - len(self._left)
        while missing > 0:
            blocks.append(self.mechanism.draw(BLOCK, self.random))
            missing -= BLOCK
        drawn = np.concatenate(blocks)
        self._left = drawn[n:]
        return drawn[:n]


def released_nodes(edges: Iterable[Edges], n_nodes: int, below: int = 0) -> tuple[list[Edges], np.ndarray, np.ndarray]:
    """Released edges under the numbers of the nodes that they have, those nodes, and the largest count of each."""
    parts = list(suppress(edges, below))
    largest = np.zeros(n_nodes, np.int64)
    for part in parts:
        np.maximum.at(largest, part.source, part.count)
        np.maximum.at(largest, part.target, part.count)
    kept = np.flatnonzero(largest > 0)
    number = new_numbers(kept, n_nodes)
    renumbered = [replace(part, source=number[part.source], target=number[part.target]) for part in parts]
    return renumbered, kept, largest[kept]


def private_meta(
    made_with: Mapping[str, Any], private: PrivacyOptions, order: bool, seed: int | None = None
) -> dict[str, Any]:
    """What ``meta.json`` says of a private release: no exact counts."""
    mechanism = mechanism_for(private, order)
    about = {**asdict(private), "noise": f"discrete {private.noise.title()}", "threshold": mechanism.threshold}
    about |= {"deviation": round(mechanism.deviation, 3)}
    about["unit_of_privacy"] = "patient, or document where there is no patient_id"
    if seed is not None:
        about["seed"] = (
            f"{seed}, set by the user: anyone who knows it can remove the noise, so this graph is not private"
        )
    return {**{key: value for key, value in made_with.items() if key not in EXACT}, "private": about}


def fresh_seed() -> int:
    """A random secret seed, for hashes that must not be reproducible outside this build."""
    return secrets.randbits(62)


def is_large(count: np.ndarray, below: int) -> np.ndarray:
    """Whether counts may be known where those under ``below`` may not: 0, or large enough; bool, of one shape."""
    large: np.ndarray = (count == 0) | (count >= below)
    return large


def suppress(
    edges: Iterable[Edges], below: int, term_count: np.ndarray | None = None, total: int = 0
) -> Iterator[Edges]:
    """The edges that at least ``below`` groups have (or whose count is, where groups were not counted).

    With the counts of both terms and the ``total``, all four cells of a pair's table follow: with both terms, with one
    of them, with none. A pair is left out if one of the cells is too small.

    The order of a pair is left out unless each of its counts is 0 or reaches ``below``, and so does the number of
    groups that have the pair but are in none of them, which is the difference between published counts.
    """
    for part in edges:
        shown = (part.count if part.groups is None else part.groups) >= below
        if term_count is not None:
            first, second = term_count[part.source], term_count[part.target]
            for cell in (first - part.count, second - part.count, total - first - second + part.count):
                shown &= is_large(cell, below)
        kept = part.where(shown)
        if kept.order is not None:
            order = kept.order.copy()
            cells = order if kept.groups is None else np.column_stack([order, kept.groups - order.sum(axis=1)])
            order[np.any((cells > 0) & (cells < below), axis=1)] = 0
            kept = replace(kept, order=order)
        yield kept
