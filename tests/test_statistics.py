"""The shared statistics against scikit-learn, Newton's method and counting."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from cogstage.statistics import auroc, bootstrap, log_odds, logistic_weights, sigmoid, sign_test


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=2, max_size=60))
def test_auroc_is_that_of_scikit_learn(rows: list[tuple[bool, int]]) -> None:
    label, score = (np.array(column) for column in zip(*rows, strict=True))
    if len(set(label.tolist())) < 2:
        assert auroc(label, score) is None
    else:
        assert auroc(label, score) == pytest.approx(roc_auc_score(label, score), abs=1e-12)


def newton(features: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Minimise the sum of losses plus half the squared weights, the bias free."""
    x = np.column_stack([np.ones(len(features)), features])
    ridge = np.diag([0.0, *[1.0] * features.shape[1]])
    weights = np.zeros(x.shape[1])
    for _ in range(100):
        p = 1 / (1 + np.exp(-(x @ weights)))
        weights -= np.linalg.solve((x.T * (p * (1 - p))) @ x + ridge, x.T @ (p - label) + ridge @ weights)
    return weights


@pytest.mark.parametrize("seed", range(5))
def test_logistic_weights_are_those_of_newtons_method(seed: int) -> None:
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(120, 3))
    label = (rng.random(120) < sigmoid(features @ np.array([1.0, -2.0, 0.0]) + 0.3)).astype(float)
    np.testing.assert_allclose(logistic_weights(features, label), newton(features, label), atol=1e-6)


def test_logistic_weights_of_one_class_weigh_nothing() -> None:
    found = logistic_weights(np.ones((4, 2)), np.ones(4))
    assert found[0] > 10
    assert found[1:].tolist() == [0, 0]


def test_sigmoid_and_log_odds_are_inverse_and_finite() -> None:
    logit = np.linspace(-30, 30, 61)
    np.testing.assert_allclose(log_odds(sigmoid(logit)), logit, rtol=1e-3)
    assert sigmoid(np.array([-1e4, 1e4])).tolist() == [0, 1]
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()


@pytest.mark.parametrize(("wins", "losses"), [(0, 0), (3, 0), (7, 2), (5, 5), (30, 14)])
def test_sign_test_counts_coins(wins: int, losses: int) -> None:
    n = wins + losses
    uneven = [k for k in range(n + 1) if abs(k - n / 2) >= abs(wins - n / 2)]
    assert sign_test(wins, losses) == pytest.approx(sum(comb(n, k) for k in uneven) / 2**n)


def test_bootstrap_of_a_mean_covers_it() -> None:
    values = np.random.default_rng(0).normal(size=300)
    found = bootstrap(range(300), np.stack([values, np.ones(300)], axis=1), lambda s: s[0] / s[1])
    half = 1.96 * values.std() / np.sqrt(300)
    assert found.value == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * half, rel=0.1)
