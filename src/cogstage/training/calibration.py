"""Fit a shift and a slope to dev logits, so that a probability of 0.9 means nine of ten.

Dev facts stand against three kinds of pairs: degree-matched negatives, co-occurring ones and facts of other relations.
Facts and negatives weigh the same, and so do the three kinds. Both numbers keep a sum of reasons a sum:
slope·(b - shift) + Σ slope·c is the calibrated logit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

LOG_SLOPES = (-7.0, 4.0)


@dataclass(frozen=True)
class Calibration:
    """Calibrated logit = slope·(logit - shift)."""

    slope: float = 1.0
    shift: float = 0.0

    @classmethod
    def fit(cls, logit: np.ndarray, label: np.ndarray, weight: np.ndarray | None = None) -> Calibration:
        """Fit by maximum likelihood on dev pairs with at least one positive and one negative.

        The labels are smoothed as by Platt (1999), so that separable pairs have a finite slope.
        """
        from scipy.optimize import minimize

        logit, label = np.asarray(logit, np.float64), np.asarray(label, np.float64)
        weight = np.ones(len(label)) if weight is None else weight
        positives, negatives = label.sum(), (1 - label).sum()
        if not (positives and negatives):
            return cls()
        smoothed = np.where(label > 0, (positives + 1) / (positives + 2), 1 / (negatives + 2))
        centre, spread = float(np.median(logit)), float(logit.std()) or 1.0
        x = (logit - centre) / spread

        def loss(parameters: np.ndarray) -> tuple[float, np.ndarray]:
            slope = np.exp(parameters[1])
            y = slope * x + parameters[0]
            value = (weight * (np.logaddexp(0.0, y) - smoothed * y)).sum() / weight.sum()
            slack = weight * (sigmoid(y) - smoothed) / weight.sum()
            return float(value), np.array([slack.sum(), (slack * x).sum() * slope])

        best = minimize(loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-50.0, 50.0), LOG_SLOPES])
        slope = float(np.exp(best.x[1])) / spread
        return cls(slope, centre - float(best.x[0]) / slope)

    @classmethod
    def fit_kinds(cls, logit: np.ndarray, label: np.ndarray, contrasts: Mapping[str, np.ndarray]) -> Calibration:
        """Fit on labelled degree-matched pairs and further kinds of negatives, all kinds with the same weight."""
        positive = np.asarray(label) > 0
        kinds = [logit[~positive], *(values for values in contrasts.values() if len(values))]
        weights = [np.full(len(values), positive.sum() / max(len(values), 1) / len(kinds)) for values in kinds]
        every = np.concatenate([logit[positive], *kinds])
        weight = np.concatenate([np.ones(positive.sum()), *weights])
        return cls.fit(every, np.arange(len(every)) < positive.sum(), weight)

    def logits(self, logit: np.ndarray) -> np.ndarray:
        """Calibrated logits."""
        result: np.ndarray = self.slope * (np.asarray(logit, np.float64) - self.shift)
        return result

    def to_dict(self) -> dict[str, float]:
        """Plain values."""
        return asdict(self)


def sigmoid(logit: np.ndarray) -> np.ndarray:
    """σ, without overflow."""
    logit = np.asarray(logit, np.float64)
    small = np.exp(-np.abs(logit))
    result: np.ndarray = np.where(logit >= 0, 1.0 / (1.0 + small), small / (1.0 + small))
    return result
