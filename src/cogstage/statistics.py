"""Statistics that all packages share: AUROC, logistic regression, bootstrap, tests, agreement between raters.

scipy and scikit-learn compute what they can. Written here: bootstrap over clusters for many weightings at a time,
and Krippendorff's α. Ratings are whole numbers 0 ... levels - 1; NaN stands for an answer that was not given.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

REPLICATES = 1000
CHUNK_CELLS = 4_000_000  # weights held at a time: 32 MB
LEAST_PROBABILITY = 1e-15  # log-odds stay finite

Measured = Mapping[str, np.ndarray]


# Probabilities and classification


def sigmoid(logit: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-logit)), without overflow."""
    from scipy.special import expit

    result: np.ndarray = expit(np.asarray(logit, np.float64))
    return result


def log_odds(probability: np.ndarray) -> np.ndarray:
    """Log-odds of probabilities, finite at 0 and 1."""
    from scipy.special import logit

    p = np.clip(np.asarray(probability, np.float64), LEAST_PROBABILITY, 1 - LEAST_PROBABILITY)
    result: np.ndarray = logit(p)
    return result


def auroc(label: np.ndarray, score: np.ndarray) -> float | None:
    """Area under the ROC curve, ties at the mean rank; None if one class is missing."""
    from scipy.stats import rankdata

    positive = np.asarray(label) > 0
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if not n_positive or not n_negative:
        return None
    ranks = rankdata(score)[positive].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))


def logistic_weights(features: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Weights (1 + F,), bias first, of a ridge logistic regression of ``label`` (M,) on ``features`` (M, F)."""
    from sklearn.linear_model import LogisticRegression

    if len(np.unique(label)) < 2:  # one class: nothing to weigh
        return np.concatenate([log_odds(np.mean(label, keepdims=True)), np.zeros(features.shape[1])])
    fitted = LogisticRegression(solver="newton-cholesky", tol=1e-10, max_iter=200).fit(features, label)
    return np.concatenate([fitted.intercept_, fitted.coef_[0]])


# Bootstrap over clusters


def cluster_weights(cluster: np.ndarray, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """How often each row is drawn in each replicate, (B, M): whole clusters are drawn, with all their rows."""
    distinct, number = np.unique(cluster, return_inverse=True)
    drawn = rng.multinomial(len(distinct), np.full(len(distinct), 1.0 / len(distinct)), size=replicates)
    weights: np.ndarray = drawn[:, number].astype(np.float64)
    return weights


def replicate(
    measure: Callable[[np.ndarray], Measured], cluster: np.ndarray, replicates: int = REPLICATES, seed: int = 0
) -> dict[str, np.ndarray]:
    """The bootstrap values of ``measure(weights)``, each (B,); the draws depend on ``cluster`` and ``seed`` alone.

    So the replicates of two methods on the same pairs are paired, and can be subtracted.
    """
    rng = np.random.default_rng(seed)
    at_once = max(1, min(replicates, CHUNK_CELLS // max(len(cluster), 1)))
    parts: dict[str, list[np.ndarray]] = {}
    for start in range(0, replicates, at_once):
        weights = cluster_weights(cluster, min(at_once, replicates - start), rng)
        for name, value in measure(weights).items():
            parts.setdefault(name, []).append(value)
    return {name: np.concatenate(values) for name, values in parts.items()}


def interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of bootstrap values; replicates in which the measure is undefined are left out."""
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def mean_interval(
    values: np.ndarray, cluster: np.ndarray, replicates: int = REPLICATES, seed: int = 0
) -> tuple[float, float, float]:
    """The mean of the defined values and its 95 % interval, whole clusters drawn; NaN if none is defined."""
    defined = np.isfinite(values)
    if not defined.any():
        return math.nan, math.nan, math.nan
    value = values[defined]
    drawn = replicate(
        lambda weights: {"mean": (weights @ value) / np.maximum(weights.sum(axis=1), 1e-12)},
        cluster[defined],
        replicates,
        seed,
    )
    return float(value.mean()), *interval(drawn["mean"])


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
    times = cluster_weights(np.arange(len(number)), draws, np.random.default_rng(seed))
    sums = np.tensordot(times, by_cluster, axes=1)
    return Estimate(value, *interval(np.array([figure(drawn) for drawn in sums])), n)


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


# Tests


def paired_p(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Two-sided p of a difference between paired bootstrap values: how often its sign turns, at least 2 / (B + 1)."""
    difference = ours - theirs
    difference = difference[np.isfinite(difference)]
    if not len(difference):
        return 1.0
    below = (np.count_nonzero(difference <= 0) + 1) / (len(difference) + 1)
    above = (np.count_nonzero(difference >= 0) + 1) / (len(difference) + 1)
    return float(min(1.0, 2 * min(below, above)))


def sign_test(wins: int, losses: int) -> float:
    """Two-sided exact sign test: how often a fair coin is at least this uneven. Ties are left out by the caller."""
    from scipy.stats import binomtest

    return float(binomtest(wins, wins + losses, 0.5).pvalue) if wins + losses else 1.0


def mcnemar_p(label: np.ndarray, ours: np.ndarray, theirs: np.ndarray, threshold: float = 0.5) -> float:
    """Exact two-sided McNemar test on the pairs that just one of two methods decides rightly at the threshold."""
    truth = np.asarray(label) == 1
    right, others = (ours >= threshold) == truth, (theirs >= threshold) == truth
    return sign_test(int(np.count_nonzero(right & ~others)), int(np.count_nonzero(others & ~right)))


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


def holm(p: Mapping[str, float]) -> dict[str, float]:
    """Holm's step-down correction over named p values."""
    adjusted: dict[str, float] = {}
    running = 0.0
    for rank, (name, value) in enumerate(sorted(p.items(), key=lambda item: item[1])):
        running = max(running, min(1.0, (len(p) - rank) * value))
        adjusted[name] = running
    return {name: adjusted[name] for name in p}


def mark(p: float) -> str:
    """Return one to three stars for a p value below 5 %, 1 % and 0.1 %."""
    return "***" if p < 0.001 else "**" if p < 0.01 else "*" if p < 0.05 else ""


# Agreement between raters


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
