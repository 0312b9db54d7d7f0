"""Intervals and tests against brute force, scipy and what they promise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from cogstage import statistics
from cogstage.evaluation import metrics, ranking


def simulated(seed: int, heads: int = 60, quality: float = 1.0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    head = rng.integers(0, heads, 400)
    label = rng.integers(0, 2, 400)
    probability = 1 / (1 + np.exp(-(quality * (2 * label - 1) + rng.normal(size=400))))
    return head, label, probability


def test_replicates_are_resampled_heads() -> None:
    head, label, probability = simulated(0)
    rng = np.random.default_rng(3)
    found = metrics.replicate_metrics(head, label, probability, replicates=5, seed=3)
    heads = np.unique(head)
    counts = rng.multinomial(len(heads), np.full(len(heads), 1 / len(heads)), size=5)
    for row in range(5):
        rows = np.concatenate(
            [np.flatnonzero(head == h) for h, n in zip(heads, counts[row], strict=True) for _ in range(n)]
        )
        for name, value in metrics.score(label[rows], probability[rows]).items():
            assert found[name][row] == pytest.approx(value, abs=1e-9), name


def test_the_draws_do_not_depend_on_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    head, label, probability = simulated(1)
    whole = metrics.replicate_metrics(head, label, probability, replicates=50)
    monkeypatch.setattr(statistics, "CHUNK_CELLS", 7 * len(head))
    parts = metrics.replicate_metrics(head, label, probability, replicates=50)
    assert all(np.allclose(whole[name], parts[name]) for name in whole)


def test_clusters_widen_the_interval() -> None:
    rng = np.random.default_rng(5)
    head = np.repeat(np.arange(20), 20)
    label = np.tile([0, 1], 200)
    right = np.repeat(rng.random(20), 20)  # a method is right or wrong by head
    probability = np.where(label == 1, right, 1 - right)
    clustered = statistics.interval(metrics.replicate_metrics(head, label, probability)["brier"])
    alone = statistics.interval(metrics.replicate_metrics(np.arange(400), label, probability)["brier"])
    assert clustered[1] - clustered[0] > 1.5 * (alone[1] - alone[0])


@pytest.mark.parametrize("name", ["f1", "auroc", "brier"])
def test_the_interval_covers(name: str) -> None:
    head, label, probability = simulated(0, heads=10**6)
    truth = np.mean([metrics.score(*simulated(seed, 10**6)[1:])[name] for seed in range(1000, 1100)])
    inside = 0
    for seed in range(100):
        head, label, probability = simulated(seed, heads=10**6)
        low, high = statistics.interval(metrics.replicate_metrics(head, label, probability, 200)[name])
        inside += low <= truth <= high
    assert inside >= 86  # 95 % promised; fewer than 86 of 100 has a chance below one in a thousand


def test_paired_bootstrap_sees_a_real_difference_and_no_other() -> None:
    head, label, good = simulated(2, quality=1.2)
    bad = np.random.default_rng(0).permutation(good)
    good_values = metrics.replicate_metrics(head, label, good)
    bad_values = metrics.replicate_metrics(head, label, bad)
    assert statistics.paired_p(good_values["auroc"], bad_values["auroc"]) == pytest.approx(2 / 1001)
    assert statistics.paired_p(good_values["auroc"], good_values["auroc"]) == 1.0
    assert statistics.mcnemar_p(label, good, bad) < 0.001
    assert statistics.mcnemar_p(label, good, good) == 1.0


@given(st.integers(0, 30), st.integers(0, 30))
@settings(max_examples=60, deadline=None)
def test_mcnemar_counted(ours: int, theirs: int) -> None:
    label = np.ones(ours + theirs + 5, int)
    first = np.concatenate([np.ones(ours), np.zeros(theirs), np.ones(5)])
    second = np.concatenate([np.zeros(ours), np.ones(theirs), np.ones(5)])
    n = ours + theirs
    expected = min(1.0, 2 * binom.cdf(min(ours, theirs), n, 0.5)) if n else 1.0
    assert statistics.mcnemar_p(label, first, second) == pytest.approx(expected)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
@settings(max_examples=60, deadline=None)
def test_holm_by_definition(values: list[float]) -> None:
    named = {str(i): value for i, value in enumerate(values)}
    found = statistics.holm(named)
    ordered = sorted(values)
    for name, value in named.items():
        # the largest of (m - j) p_(j) over the ranks up to this value's own
        rank = ordered.index(value)
        expected = min(1.0, max((len(values) - j) * ordered[j] for j in range(rank + 1)))
        assert found[name] >= expected - 1e-12
        assert found[name] >= value
    assert [found[name] for name in sorted(named, key=lambda n: named[n])] == sorted(found.values())
    if len(set(values)) == len(values):
        for name, value in named.items():
            rank = ordered.index(value)
            assert found[name] == pytest.approx(min(1.0, max((len(values) - j) * ordered[j] for j in range(rank + 1))))


def test_ranking_has_intervals_too() -> None:
    rank = np.array([1.0, 2.0, 4.0, 8.0])
    values = statistics.replicate(lambda w: ranking.summarise(rank, w), np.arange(4), replicates=500)
    low, high = statistics.interval(values["mrr"])
    assert 0.125 <= low < np.mean(1 / rank) < high <= 1.0
    assert statistics.interval(np.full(3, np.nan))[0] != 0


def test_stars() -> None:
    assert [statistics.mark(p) for p in (0.5, 0.04, 0.009, 0.0001)] == ["", "*", "**", "***"]
