"""The few figures that training itself needs on dev pairs; the full set belongs to evaluation."""

from __future__ import annotations

import numpy as np

from cogstage.statistics import auroc
from cogstage.training.calibration import sigmoid


def dev_measures(logit: np.ndarray, label: np.ndarray) -> dict[str, float]:
    """F1, precision and recall at 0.5, AUROC and Brier score."""
    positive, true = logit > 0, label > 0.5
    hits = float((positive & true).sum())
    precision = hits / max(1, int(positive.sum()))
    recall = hits / max(1, int(true.sum()))
    both, area = precision + recall, auroc(label, logit)
    return {
        "f1": 2 * precision * recall / both if both else 0.0,
        "precision": precision,
        "recall": recall,
        "auroc": float("nan") if area is None else area,
        "brier": float(np.mean((sigmoid(logit) - true) ** 2)),
        "pairs": len(label),
    }
