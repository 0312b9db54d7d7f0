"""Area under the ROC curve; evaluation has its own measures, which facts and data sets must not depend on."""

from __future__ import annotations

import numpy as np


def auroc(label: np.ndarray, score: np.ndarray) -> float | None:
    """Area under the ROC curve, ties at the mean rank; None if one class is missing."""
    positive = label > 0
    n_positive, n_negative = int(positive.sum()), int((~positive).sum())
    if not n_positive or not n_negative:
        return None
    _, place, count = np.unique(score, return_inverse=True, return_counts=True)
    mean_rank = np.cumsum(count) - (count - 1) / 2
    ranks = mean_rank[place][positive].sum()
    return float((ranks - n_positive * (n_positive + 1) / 2) / (n_positive * n_negative))
