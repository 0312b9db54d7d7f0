"""Probabilities that mean what they say: Platt or isotonic scaling, fitted on dev and stored with the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

FEW = 300  # below so many dev pairs isotonic steps are noise, and Platt's two numbers are fitted instead


def fit_calibration(logit: np.ndarray, label: np.ndarray, kind: str = "auto") -> dict[str, Any]:
    """A map from logits to calibrated probabilities as plain values; ``kind`` is platt, isotonic or auto."""
    if kind == "auto":
        kind = "platt" if len(label) < FEW else "isotonic"
    if kind == "platt":
        from sklearn.linear_model import LogisticRegression

        fitted = LogisticRegression(C=1e6).fit(logit[:, None], label)
        return {"kind": "platt", "slope": float(fitted.coef_[0, 0]), "intercept": float(fitted.intercept_[0])}
    from sklearn.isotonic import IsotonicRegression

    fitted = IsotonicRegression(y_min=0.0, y_max=1.0, out_of_bounds="clip").fit(logit, label)
    # one positive and one negative in each direction more than were seen keep 0 and 1 out of reach
    floor = 1.0 / (len(label) + 2.0)
    values = np.clip(fitted.y_thresholds_, floor, 1.0 - floor)
    return {"kind": "isotonic", "logit": fitted.X_thresholds_.tolist(), "probability": values.tolist()}


def calibrate(logit: np.ndarray, calibration: Mapping[str, Any]) -> np.ndarray:
    """Calibrated probabilities of logits."""
    if calibration["kind"] == "platt":
        return sigmoid(calibration["slope"] * logit + calibration["intercept"])
    result: np.ndarray = np.interp(logit, calibration["logit"], calibration["probability"])
    return result


def sigmoid(logit: np.ndarray) -> np.ndarray:
    """σ, without overflow."""
    logit = np.asarray(logit, np.float64)
    small = np.exp(-np.abs(logit))
    result: np.ndarray = np.where(logit >= 0, 1.0 / (1.0 + small), small / (1.0 + small))
    return result
