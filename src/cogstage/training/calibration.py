"""Probabilities that mean what they say: a shift and a slope, fitted on dev and stored with the model.

The shift makes the model say yes as often as it is true on dev ("balanced"); the slope is that of the logistic
likelihood. Both keep a sum of reasons a sum: slope·(b - shift) + Σ slope·c is the calibrated logit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

LOG_SLOPES = (-7.0, 4.0)  # the range keeps a separable dev set finite


@dataclass(frozen=True)
class Calibration:
    """Calibrated logit = slope·(logit - shift)."""

    slope: float = 1.0
    shift: float = 0.0

    @classmethod
    def fit(cls, logit: np.ndarray, label: np.ndarray) -> Calibration:
        """Fit on dev pairs with at least one positive and one negative."""
        from scipy.optimize import minimize_scalar

        logit, label = np.asarray(logit, np.float64), np.asarray(label, np.float64)
        positives = int(label.sum())
        if not 0 < positives < len(label):
            return cls()
        ordered = np.sort(logit)[::-1]
        shift = float(ordered[positives - 1 : positives + 1].mean())  # as many lie above it as are true
        centred = logit - shift

        def loss(log_slope: float) -> float:
            return float(np.logaddexp(0.0, np.exp(log_slope) * centred * (1 - 2 * label)).mean())

        best = minimize_scalar(loss, bounds=LOG_SLOPES, method="bounded", options={"xatol": 1e-6})
        return cls(float(np.exp(best.x)), shift)

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
