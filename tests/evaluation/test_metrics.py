"""Measures against sklearn and against counting by hand."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn.metrics as sk
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.errors import CogstageError
from cogstage.evaluation import metrics


@st.composite
def predictions(draw: st.DrawFn, least: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Labels of both classes and probabilities with many ties."""
    size = draw(st.integers(least, 40))
    label = np.array([0, 1, *draw(st.lists(st.integers(0, 1), min_size=size - 2, max_size=size - 2))])
    levels = draw(st.integers(1, 12))
    steps = draw(st.lists(st.integers(0, levels), min_size=size, max_size=size))
    return label, np.array(steps) / levels


@given(predictions())
@settings(max_examples=60, deadline=None)
def test_agrees_with_sklearn(given_pairs: tuple[np.ndarray, np.ndarray]) -> None:
    label, probability = given_pairs
    chosen = probability >= 0.5
    found = metrics.score(label, probability)
    expected = {
        "f1": sk.f1_score(label, chosen, zero_division=0),
        "precision": sk.precision_score(label, chosen, zero_division=0),
        "recall": sk.recall_score(label, chosen, zero_division=0),
        "mcc": sk.matthews_corrcoef(label, chosen),
        "auroc": sk.roc_auc_score(label, probability),
        "auprc": sk.average_precision_score(label, probability),
        "brier": sk.brier_score_loss(label, probability),
    }
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-12), name


@given(predictions())
@settings(max_examples=60, deadline=None)
def test_ece_counted_bin_by_bin(given_pairs: tuple[np.ndarray, np.ndarray]) -> None:
    label, probability = given_pairs
    total = 0.0
    for low in range(15):
        inside = [
            (y, p)
            for y, p in zip(label, probability, strict=True)
            if low <= p * 15 < low + 1 or (low == 14 and p == 1.0)
        ]
        if inside:
            total += abs(sum(p for _, p in inside) - sum(y for y, _ in inside)) / len(label)
    assert metrics.score(label, probability)["ece"] == pytest.approx(total, abs=1e-12)


@given(predictions(), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_a_weight_is_a_repetition(given_pairs: tuple[np.ndarray, np.ndarray], seed: int) -> None:
    label, probability = given_pairs
    weights = np.random.default_rng(seed).integers(0, 4, size=(3, len(label)))
    weights[:, :2] = np.maximum(weights[:, :2], 1)  # both classes stay
    found = metrics.weighted(label, probability, weights)
    for row, weight in enumerate(weights):
        expected = metrics.score(np.repeat(label, weight), np.repeat(probability, weight))
        for name in metrics.METRICS:
            assert found[name][row] == pytest.approx(expected[name], abs=1e-9), name


def test_known_answers() -> None:
    perfect = metrics.score(np.array([1, 1, 0, 0]), np.array([1.0, 1.0, 0.0, 0.0]))
    assert perfect == {**dict.fromkeys(metrics.CLASSIFICATION, 1.0), "brier": 0.0, "ece": 0.0}
    always = metrics.score(np.array([1, 0] * 10), np.ones(20))
    assert always["f1"] == pytest.approx(2 / 3)
    assert always["auroc"] == 0.5
    assert always["ece"] == 0.5
    assert np.isnan(metrics.score(np.ones(3, int), np.array([0.1, 0.2, 0.9]))["auroc"])


@given(predictions())
@settings(max_examples=60, deadline=None)
def test_curves(given_pairs: tuple[np.ndarray, np.ndarray]) -> None:
    label, probability = given_pairs
    precision, recall, _ = sk.precision_recall_curve(label, probability)
    ours = metrics.precision_recall(label, probability)
    assert np.allclose(ours[0], precision[:-1][::-1])
    assert np.allclose(ours[1], recall[:-1][::-1])
    curve = metrics.reliability(label, probability)
    assert curve["pairs"].sum() == len(label)
    assert np.dot(curve["positives"], curve["pairs"]) == pytest.approx(label.sum())
    gap = np.abs(curve["probability"] - curve["positives"]) @ curve["pairs"] / len(label)
    assert gap == pytest.approx(metrics.score(label, probability)["ece"])


@pytest.mark.parametrize(
    ("label", "probability", "complaint"),
    [
        ([1, 0], [0.5], "do not match"),
        ([], [], "no pairs"),
        ([1, 2], [0.5, 0.5], "0 or 1"),
        ([1, 0], [0.5, np.nan], "not probabilities"),
        ([1, 0], [0.5, 1.5], "not probabilities"),
    ],
)
def test_what_cannot_be_measured_is_said(label: list[int], probability: list[float], complaint: str) -> None:
    with pytest.raises(CogstageError, match=complaint):
        metrics.score(np.array(label), np.array(probability))
