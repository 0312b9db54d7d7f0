"""Ridge logistic regression on a few features, for scores that need no model."""

from __future__ import annotations

import numpy as np

STEPS = 100  # at most; Newton's method needs about ten


def logistic(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)), without overflow."""
    result: np.ndarray = 1.0 / (1.0 + np.exp(-np.clip(x, -30, 30)))
    return result


def logistic_weights(features: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Weights (1 + F,), bias first, of the regression of ``label`` (M,) on ``features`` (M, F), by Newton's method."""
    x = np.column_stack([np.ones(len(features)), features])
    ridge = np.diag([1e-6, *[1.0] * features.shape[1]])
    weights = np.zeros(x.shape[1])
    for _ in range(STEPS):
        p = logistic(x @ weights)
        gradient = x.T @ (p - label) + ridge @ weights
        step = np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge, gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    return weights
