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
    """A figure with its 95 % bootstrap interval; ``value`` is NaN if it is not defined."""

    value: float
    low: float
    high: float
    n: int  # units it rests on

    @property
    def defined(self) -> bool:
        """Whether the figure is defined."""
        return not math.isnan(self.value)


def sign_test(wins: int, losses: int) -> float:
    """Two-sided exact sign test: how often a fair coin is at least this uneven. Ties are left out by the caller."""
    n, fewer = wins + losses, min(wins, losses)
    tail = sum(math.comb(n, k) for k in range(fewer + 1))
    return min(1.0, float(2 * tail / 2**n))


def sign_flip_test(differences: Sequence[float], draws: int = 10_000, seed: int = 0) -> float:
    """Two-sided test of paired differences against zero: how often random signs give a sum at least as large.

    Exact up to 16 differences that are not zero, from ``draws`` random sign patterns above.
    """
    values = np.asarray([value for value in differences if value != 0], dtype=float)
    n, reached = len(values), abs(float(np.sum(values))) - 1e-9
    if n == 0:
        return 1.0
    if n <= 16:
        signs = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(signs @ values) >= reached))
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), size=(draws, n))
    return float((1 + np.sum(np.abs(signs @ values) >= reached)) / (1 + draws))


def disagreement(levels: int, weights: str = "quadratic") -> np.ndarray:
    """Distance between two answers, (levels, levels): |a - b| (``linear``) or (a - b)² (``quadratic``)."""
    apart = np.abs(np.subtract.outer(np.arange(levels), np.arange(levels))).astype(float)
    return apart**2 if weights == "quadratic" else apart


def pair_tables(first: np.ndarray, second: np.ndarray, levels: int) -> np.ndarray:
    """For each unit a table (levels, levels) with 1 where the two raters' answers meet; zero unless both answered."""
    tables = np.zeros((len(first), levels, levels))
    both = np.flatnonzero(~(np.isnan(first) | np.isnan(second)))
    tables[both, first[both].astype(int), second[both].astype(int)] = 1.0
    return tables


def kappa_of_table(table: np.ndarray, weight: np.ndarray) -> float:
    """Cohen's weighted κ of two raters: 1 - Σ w·observed / Σ w·expected, w the disagreement weights.

    NaN if no disagreement can be expected (both gave one and the same answer, or none).
    """
    total = table.sum()
    expected = np.outer(table.sum(axis=1), table.sum(axis=0))
    chance = float((weight * expected).sum())
    return float(1.0 - total * (weight * table).sum() / chance) if chance > 0 else math.nan


def coincidences(ratings: np.ndarray, levels: int) -> np.ndarray:
    """For each unit of (raters, units) its coincidences (levels, levels): each ordered pair of answers to it counts
    1 / (answers to it - 1)."""
    counts = np.stack([(ratings == level).sum(axis=0) for level in range(levels)], axis=1).astype(float)  # (units, C)
    answers = counts.sum(axis=1)
    pairs = counts[:, :, None] * counts[:, None, :] - counts[:, :, None] * np.eye(levels)
    made: np.ndarray = pairs / np.maximum(answers - 1, 1)[:, None, None] * (answers > 1)[:, None, None]
    return made


def alpha_of_coincidences(coincidence: np.ndarray) -> float:
    """Krippendorff's α for ordinal answers.

    NaN if all pairable answers are the same: agreement is total, but chance could not have told it apart.
    """
    of_level = coincidence.sum(axis=1)
    total = of_level.sum()
    # Ordinal distance of c < k: the answers that lie between, those at the ends by half.
    middle = np.cumsum(of_level) - of_level / 2
    between = np.subtract.outer(middle, middle) ** 2
    expected = float((np.outer(of_level, of_level) * between).sum())
    if expected == 0:
        return math.nan
    return float(1.0 - (total - 1) * (coincidence * between).sum() / expected)


def krippendorff_alpha(ratings: np.ndarray, levels: int) -> float:
    """Krippendorff's α of ordinal answers (raters, units): any number of raters, answers may be missing."""
    return alpha_of_coincidences(coincidences(ratings, levels).sum(axis=0))


def bootstrap(
    clusters: Sequence[object],
    statistics: np.ndarray,
    figure: Callable[[np.ndarray], float],
    draws: int = 2000,
    seed: int = 0,
) -> Estimate:
    """A figure with its 95 % percentile interval, resampling whole clusters (cases, whose answers are not independent).

    ``statistics`` (units, ...) are summed over the units drawn, and ``figure`` is computed from the sum: means,
    tables and coincidences all add up, so a draw costs no more than the figure itself. ``clusters`` names the cluster
    of each unit.
    """
    n = len(clusters)
    if n == 0:
        return Estimate(math.nan, math.nan, math.nan, 0)
    number = {name: position for position, name in enumerate(dict.fromkeys(clusters))}
    by_cluster = np.zeros((len(number), *statistics.shape[1:]))
    np.add.at(by_cluster, [number[name] for name in clusters], statistics)
    value = float(figure(by_cluster.sum(axis=0)))
    if math.isnan(value):
        return Estimate(value, math.nan, math.nan, n)
    rng = np.random.default_rng(seed)
    times = rng.multinomial(len(number), np.full(len(number), 1 / len(number)), size=draws)
    sums = np.tensordot(times.astype(float), by_cluster, axes=1)
    found = np.array([figure(drawn) for drawn in sums])
    found = found[~np.isnan(found)]
    if not len(found):
        return Estimate(value, math.nan, math.nan, n)
    low, high = np.quantile(found, [0.025, 0.975])
    return Estimate(value, float(low), float(high), n)


@dataclass(frozen=True)
class Bootstrap:
    """The bootstrap of one report: the same draws and seed behind every interval."""

    draws: int = 2000
    seed: int = 0

    def __call__(
        self, clusters: Sequence[object], statistics: np.ndarray, figure: Callable[[np.ndarray], float]
    ) -> Estimate:
        """A figure of summed statistics with its interval."""
        return bootstrap(clusters, statistics, figure, self.draws, self.seed)

    def mean(self, clusters: Sequence[object], values: Sequence[float]) -> Estimate:
        """The mean of values with its 95 % bootstrap interval over cases."""
        array = np.asarray(values, dtype=float)
        return self(clusters, np.stack([array, np.ones_like(array)], axis=1), lambda s: ratio(s[0], s[1]))


def ratio(total: float, count: float) -> float:
    """A mean from a sum; NaN if there are no values."""
    return float(total / count) if count else math.nan
