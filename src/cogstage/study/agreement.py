"""Agreement and tests: weighted Cohen's κ, Krippendorff's α, the sign test, and bootstrap intervals.

Answers are whole numbers 0 ... levels - 1; NaN stands for an answer that was not given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % bootstrap interval; ``value`` is NaN where it is not defined."""

    value: float
    low: float
    high: float
    n: int  # units it rests on

    @property
    def defined(self) -> bool:
        """Whether there is a figure at all."""
        return not math.isnan(self.value)


def sign_test(wins: int, losses: int) -> float:
    """Two-sided exact sign test: how often a fair coin is at least this uneven. Ties are left out by the caller."""
    n, fewer = wins + losses, min(wins, losses)
    tail = sum(math.comb(n, k) for k in range(fewer + 1))
    return min(1.0, float(2 * tail / 2**n))


def disagreement(levels: int, weights: str = "quadratic") -> np.ndarray:
    """How far two answers lie apart, (levels, levels): |a - b| (``linear``) or (a - b)² (``quadratic``)."""
    apart = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels))).astype(float)
    return apart**2 if weights == "quadratic" else apart


def weighted_kappa(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> float:
    """Cohen's weighted κ of two raters: 1 - Σ w·observed / Σ w·expected, w the disagreement weights.

    Only units that both judged count. NaN where no disagreement can be expected (both gave one and the same answer).
    """
    both = ~(np.isnan(first) | np.isnan(second))
    if not both.any():
        return math.nan
    levels = len(weight)
    table = np.zeros((levels, levels))
    np.add.at(table, (first[both].astype(int), second[both].astype(int)), 1.0)
    table /= table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    chance = float((weight * expected).sum())
    return 1.0 - float((weight * table).sum()) / chance if chance > 0 else math.nan


def krippendorff_alpha(ratings: np.ndarray, levels: int) -> float:
    """Krippendorff's α for ordinal answers, (raters, units), any number of raters, answers may be missing.

    NaN where all pairable answers are the same: agreement is total, but chance could not have told it apart.
    """
    # Coincidences o_ck: each pair of answers to a unit counts 1 / (answers to the unit - 1).
    counts = np.stack([(ratings == level).sum(axis=0) for level in range(levels)], axis=1).astype(float)  # (units, C)
    answers = counts.sum(axis=1)
    counts = counts[answers > 1]
    shared = counts / (answers[answers > 1, None] - 1)
    coincidence = shared.T @ counts - np.diag(shared.sum(axis=0))
    of_level = coincidence.sum(axis=1)
    total = of_level.sum()
    # Ordinal distance of c < k: the answers that lie between, those at the ends by half.
    upto = np.cumsum(of_level)
    between = np.abs(np.subtract.outer(upto - of_level / 2, upto - of_level / 2)) ** 2
    expected = float((np.outer(of_level, of_level) * between).sum())
    if expected == 0:
        return math.nan
    return float(1.0 - (total - 1) * (coincidence * between).sum() / expected)


def bootstrap(
    clusters: Sequence[object],
    figure: Callable[[np.ndarray], float],
    draws: int = 2000,
    seed: int = 0,
) -> Estimate:
    """A figure with its 95 % percentile interval, resampling whole clusters (cases: their answers hang together).

    ``clusters`` names the cluster of each unit; ``figure`` gets the positions of the units drawn, with repetitions.
    """
    n = len(clusters)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    value = float(figure(np.arange(n)))
    if math.isnan(value):
        return Estimate(value, math.nan, math.nan, n)
    names = list(dict.fromkeys(clusters))
    members = [np.array([i for i, c in enumerate(clusters) if c == name]) for name in names]
    rng = np.random.default_rng(seed)
    found = np.empty(draws)
    for draw in range(draws):
        chosen = rng.integers(len(members), size=len(members))
        found[draw] = figure(np.concatenate([members[c] for c in chosen]))
    found = found[~np.isnan(found)]
    if not len(found):
        return Estimate(value, math.nan, math.nan, n)
    low, high = np.quantile(found, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)
