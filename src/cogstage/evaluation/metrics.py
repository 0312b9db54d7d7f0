"""Classification and calibration of predicted probabilities.

Every measure is written once, for weighted pairs and many weightings at a time: a plain value is the weighting by
ones, a bootstrap replicate is the weighting by how often each pair was drawn.
"""

from __future__ import annotations

import numpy as np

from cogstage.errors import CogstageError
from cogstage.statistics import REPLICATES, replicate

CLASSIFICATION = ("f1", "precision", "recall", "auroc", "auprc", "mcc")
CALIBRATION = ("brier", "ece")
METRICS = CLASSIFICATION + CALIBRATION
BALANCED = "f1_balanced"
POPULATIONS = ("auroc_degree", "auroc_hard", "auroc_other")
LOWER_IS_BETTER = frozenset(CALIBRATION)
TITLES = {
    "f1": "F1",
    "f1_balanced": "F1, balanced on dev",
    "precision": "Precision",
    "recall": "Recall",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "mcc": "MCC",
    "brier": "Brier",
    "ece": "ECE",
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
    "auroc_degree": "AUROC, degree-matched",
    "auroc_hard": "AUROC, co-occurring",
    "auroc_other": "AUROC, other relations",
}
THRESHOLD = 0.5
BINS = 15


def score(label: np.ndarray, probability: np.ndarray) -> dict[str, float]:
    """All of :data:`METRICS` for one list of pairs; NaN if a measure is undefined (AUROC with one class only)."""
    label, probability = checked(label, probability)
    return {name: float(value[0]) for name, value in weighted(label, probability, np.ones((1, len(label)))).items()}


def weighted(label: np.ndarray, probability: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """All of :data:`METRICS` for each row of ``weights`` (B, M) over the same M pairs; each value has shape (B,).

    A pair counts as predicted positive from a probability of 0.5 on. AUPRC is average precision (no interpolation),
    AUROC gives half for ties. ECE compares the mean probability with the share of positives in 15 bins of equal width.
    """
    label, probability = checked(label, probability)
    weights = np.asarray(weights, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            **_at_threshold(label, probability, weights),
            **_over_thresholds(label, probability, weights),
            "brier": (weights @ (probability - label) ** 2) / weights.sum(axis=1),
            "ece": _ece(label, probability, weights),
        }


def replicate_metrics(
    head: np.ndarray, label: np.ndarray, probability: np.ndarray, replicates: int = REPLICATES, seed: int = 0
) -> dict[str, np.ndarray]:
    """Bootstrap values, over whole heads, of all of :data:`METRICS` for one method's predictions."""
    return replicate(lambda weights: weighted(label, probability, weights), head, replicates, seed)


def checked(label: np.ndarray, probability: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64, or a one-line complaint about what cannot be measured."""
    label, probability = np.asarray(label, np.float64), np.asarray(probability, np.float64)
    if label.shape != probability.shape or label.ndim != 1:
        raise CogstageError(f"{label.shape} labels and {probability.shape} probabilities do not match")
    if not len(label):
        raise CogstageError("there are no pairs to measure on")
    if not np.isin(label, (0.0, 1.0)).all():
        raise CogstageError("labels must be 0 or 1")
    if not (np.isfinite(probability).all() and probability.min() >= 0.0 and probability.max() <= 1.0):
        raise CogstageError("a method returned values that are not probabilities (outside 0 to 1, or NaN)")
    return label, probability


def balanced_threshold(label: np.ndarray, probability: np.ndarray) -> float:
    """The threshold above which as many pairs lie as are true; 0.5 if one class is missing."""
    positives = int(np.sum(label))
    if not 0 < positives < len(label):
        return THRESHOLD
    return float(np.sort(probability)[::-1][positives - 1 : positives + 1].mean())


def f1_at(label: np.ndarray, probability: np.ndarray, threshold: float, weights: np.ndarray) -> np.ndarray:
    """F1 of the decision at a threshold for each row of ``weights`` (B, M)."""
    return _at_threshold(np.asarray(label, np.float64), probability, weights, threshold)["f1"]


def _at_threshold(
    label: np.ndarray, probability: np.ndarray, weights: np.ndarray, threshold: float = THRESHOLD
) -> dict[str, np.ndarray]:
    chosen = (probability >= threshold).astype(np.float64)
    true_positive = weights @ (chosen * label)
    false_positive = weights @ (chosen * (1.0 - label))
    false_negative = weights @ ((1.0 - chosen) * label)
    true_negative = weights @ ((1.0 - chosen) * (1.0 - label))
    spread = (
        (true_positive + false_positive)
        * (true_positive + false_negative)
        * (true_negative + false_positive)
        * (true_negative + false_negative)
    )
    return {
        "f1": _ratio(2 * true_positive, 2 * true_positive + false_positive + false_negative),
        "precision": _ratio(true_positive, true_positive + false_positive),
        "recall": _ratio(true_positive, true_positive + false_negative),
        "mcc": _ratio(true_positive * true_negative - false_positive * false_negative, np.sqrt(spread)),
    }


def _ratio(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """part / whole, and 0 if there is nothing to divide by."""
    result: np.ndarray = np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)
    return result


def _over_thresholds(label: np.ndarray, probability: np.ndarray, weights: np.ndarray) -> dict[str, np.ndarray]:
    """Both areas from the counts above each distinct probability, highest first."""
    order = np.argsort(-probability, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(probability[order]) != 0, True))  # last pair of each group of ties
    ordered = weights[:, order]
    above = np.cumsum(ordered * label[order], axis=1)[:, ends]  # (B, T) positives at or above the threshold
    false = np.cumsum(ordered * (1.0 - label[order]), axis=1)[:, ends]
    new = np.diff(above, axis=1, prepend=0.0)
    new_false = np.diff(false, axis=1, prepend=0.0)
    positives, negatives = above[:, -1], false[:, -1]
    auroc = ((above - new / 2) * new_false).sum(axis=1) / (positives * negatives)
    precision = _ratio(above, above + false)
    return {"auroc": auroc, "auprc": (precision * new).sum(axis=1) / positives}


def auroc(label: np.ndarray, score: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """AUROC of scores of any range for each row of ``weights`` (B, M); NaN if one class is missing."""
    label, score = np.asarray(label, np.float64), np.asarray(score, np.float64)
    weights = np.ones((1, len(label))) if weights is None else np.asarray(weights, np.float64)
    if not len(label):
        return np.full(len(weights), np.nan)
    with np.errstate(divide="ignore", invalid="ignore"):
        return _over_thresholds(label, score, weights)["auroc"]


def auroc_within(
    label: np.ndarray, score: np.ndarray, group: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """The share of (positive, negative) pairs *of the same group* in which the positive has the higher score, (B,)."""
    label, score = np.asarray(label, np.float64), np.asarray(score, np.float64)
    weights = np.ones((1, len(label))) if weights is None else np.asarray(weights, np.float64)
    right, total = np.zeros(len(weights)), np.zeros(len(weights))
    for name in np.unique(group):
        rows = np.flatnonzero(group == name)
        pairs = (weights[:, rows] @ label[rows]) * (weights[:, rows] @ (1.0 - label[rows]))
        right += np.where(pairs > 0, np.nan_to_num(auroc(label[rows], score[rows], weights[:, rows])) * pairs, 0.0)
        total += pairs
    result: np.ndarray = np.divide(right, total, out=np.full(len(weights), np.nan), where=total > 0)
    return result


def bins_of(probability: np.ndarray, bins: int = BINS) -> np.ndarray:
    """The bin of equal width that each probability falls in; 1.0 belongs to the last."""
    return np.minimum((np.asarray(probability) * bins).astype(np.int64), bins - 1)


def _ece(label: np.ndarray, probability: np.ndarray, weights: np.ndarray) -> np.ndarray:
    member = bins_of(probability)[:, None] == np.arange(BINS)  # (M, BINS)
    gap = weights @ (member * (probability - label)[:, None])  # (B, BINS)
    result: np.ndarray = np.abs(gap).sum(axis=1) / weights.sum(axis=1)
    return result


def ece_of(label: np.ndarray, probability: np.ndarray, weights: np.ndarray) -> float:
    """ECE of weighted pairs."""
    label, probability = checked(label, probability)
    return float(_ece(label, probability, weights[None])[0])


def reliability(
    label: np.ndarray, probability: np.ndarray, bins: int = BINS, weights: np.ndarray | None = None
) -> dict[str, np.ndarray]:
    """The reliability curve: for each bin that holds pairs their mean probability, share of positives and number."""
    label, probability = checked(label, probability)
    weights = np.ones(len(label)) if weights is None else weights
    member = bins_of(probability, bins)
    number, weight = np.bincount(member, minlength=bins), np.bincount(member, weights, minlength=bins)
    held = number > 0
    mean = np.bincount(member, weights * probability, minlength=bins)[held] / weight[held]
    share = np.bincount(member, weights * label, minlength=bins)[held] / weight[held]
    return {"probability": mean, "positives": share, "pairs": number[held]}


def precision_recall(label: np.ndarray, probability: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Precision and recall at each distinct probability, highest first."""
    label, probability = checked(label, probability)
    order = np.argsort(-probability, kind="stable")
    ends = np.flatnonzero(np.append(np.diff(probability[order]) != 0, True))
    above = np.cumsum(label[order])[ends]
    return above / (ends + 1.0), above / max(label.sum(), 1.0)
