"""Uncertainty of figures: bootstrap over test pairs clustered by head, paired tests, Holm's correction."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from cogstage.evaluation.metrics import THRESHOLD, weighted

REPLICATES = 1000
CHUNK_CELLS = 4_000_000  # weights held at a time: 32 MB

Measured = Mapping[str, np.ndarray]


def cluster_weights(head: np.ndarray, replicates: int, rng: np.random.Generator) -> np.ndarray:
    """How often each pair is drawn in each replicate, (B, M): whole heads are drawn, with all their pairs."""
    heads, cluster = np.unique(head, return_inverse=True)
    drawn = rng.multinomial(len(heads), np.full(len(heads), 1.0 / len(heads)), size=replicates)
    weights: np.ndarray = drawn[:, cluster].astype(np.float64)
    return weights


def replicate(
    measure: Callable[[np.ndarray], Measured], head: np.ndarray, replicates: int = REPLICATES, seed: int = 0
) -> dict[str, np.ndarray]:
    """The bootstrap values of ``measure(weights)``, each (B,); the draws depend on ``head`` and ``seed`` alone.

    So the replicates of two methods on the same pairs are paired, and can be subtracted.
    """
    rng = np.random.default_rng(seed)
    at_once = max(1, min(replicates, CHUNK_CELLS // max(len(head), 1)))
    parts: dict[str, list[np.ndarray]] = {}
    for start in range(0, replicates, at_once):
        weights = cluster_weights(head, min(at_once, replicates - start), rng)
        for name, value in measure(weights).items():
            parts.setdefault(name, []).append(value)
    return {name: np.concatenate(values) for name, values in parts.items()}


def replicate_metrics(
    head: np.ndarray, label: np.ndarray, probability: np.ndarray, replicates: int = REPLICATES, seed: int = 0
) -> dict[str, np.ndarray]:
    """Bootstrap values of the classification and calibration metrics of one method's predictions."""
    return replicate(lambda weights: weighted(label, probability, weights), head, replicates, seed)


def interval(values: np.ndarray, level: float = 0.95) -> tuple[float, float]:
    """The percentile interval of bootstrap values; replicates in which the measure is undefined are left out."""
    values = values[np.isfinite(values)]
    if not len(values):
        return float("nan"), float("nan")
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def paired_p(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Two-sided p of a difference between paired bootstrap values: how often its sign turns, at least 2 / (B + 1)."""
    difference = ours - theirs
    difference = difference[np.isfinite(difference)]
    if not len(difference):
        return 1.0
    below = (np.count_nonzero(difference <= 0) + 1) / (len(difference) + 1)
    above = (np.count_nonzero(difference >= 0) + 1) / (len(difference) + 1)
    return float(min(1.0, 2 * min(below, above)))


def mcnemar_p(label: np.ndarray, ours: np.ndarray, theirs: np.ndarray) -> float:
    """Exact two-sided McNemar test on the pairs that just one of two methods decides rightly at 0.5."""
    from scipy.stats import binomtest

    truth = np.asarray(label) == 1
    right, others = (ours >= THRESHOLD) == truth, (theirs >= THRESHOLD) == truth
    only_ours, only_theirs = int(np.count_nonzero(right & ~others)), int(np.count_nonzero(others & ~right))
    if only_ours + only_theirs == 0:
        return 1.0
    return float(binomtest(only_ours, only_ours + only_theirs, 0.5).pvalue)


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
