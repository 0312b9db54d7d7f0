"""Agreement against published examples, plain definitions and scikit-learn."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test, ttest_1samp
from sklearn.metrics import cohen_kappa_score

from cogstage.statistics import (
    alpha_of_coincidences,
    bootstrap,
    coincidences,
    disagreement,
    kappa_of_table,
    krippendorff_alpha,
    pair_tables,
    sign_flip_test,
    sign_test,
)

NAN = math.nan


def weighted_kappa(first: np.ndarray, second: np.ndarray, weight: np.ndarray) -> float:
    """Cohen's weighted κ; only units that both judged count."""
    return kappa_of_table(pair_tables(first, second, len(weight)).sum(axis=0), weight)


# The data of Krippendorff's "Computing Krippendorff's Alpha-Reliability", section E: four observers, twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
)


def alpha_by_definition(ratings: np.ndarray) -> float:
    """α as mean disagreement within units over that of all pairable answers: pairs listed one by one."""
    units = [[v for v in column if not math.isnan(v)] for column in ratings.T]
    units = [unit for unit in units if len(unit) > 1]
    pooled = [v for unit in units for v in unit]
    frequency = {v: pooled.count(v) for v in pooled}

    def distance(a: float, b: float) -> float:
        low, high = min(a, b), max(a, b)
        between = sum(n for v, n in frequency.items() if low <= v <= high)
        return (between - (frequency[low] + frequency[high]) / 2) ** 2

    n = len(pooled)
    if not n:
        return NAN
    observed = sum(distance(a, b) / (len(unit) - 1) for unit in units for a, b in itertools.permutations(unit, 2)) / n
    expected = sum(distance(a, b) for a, b in itertools.permutations(pooled, 2)) / (n * (n - 1))
    return 1 - observed / expected if expected else NAN


def test_sign_test_of_the_published_counts() -> None:
    """17 wins, 5 losses (8 ties) of 30."""
    assert sign_test(17, 5) == pytest.approx(0.0169, abs=5e-5)
    assert round(sign_test(17, 5), 3) == 0.017


@given(st.integers(0, 60), st.integers(0, 60))
def test_sign_test_is_the_exact_binomial_test(wins: int, losses: int) -> None:
    expected = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert sign_test(wins, losses) == pytest.approx(expected, abs=1e-12)
    assert sign_test(wins, losses) == sign_test(losses, wins)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(-3, 3), min_size=2, max_size=12))
def test_sign_flips_are_scipys_permutation_test(differences: list[int]) -> None:
    """Exact: every pattern of signs, as scipy counts them."""
    values = np.array(differences, float)
    ours = sign_flip_test(values.tolist())
    if not values.any():
        assert ours == 1.0
        return
    theirs = permutation_test(
        (values, np.zeros_like(values)),
        lambda a, b, axis: np.sum(a - b, axis=axis),
        permutation_type="samples",
        vectorized=True,
        n_resamples=np.inf,
    )
    assert ours == pytest.approx(min(1.0, theirs.pvalue), abs=1e-9)


def test_many_sign_flips_are_drawn() -> None:
    values = np.random.default_rng(0).normal(0.4, 1, 40)
    drawn = sign_flip_test(values.tolist(), draws=20_000, seed=1)
    assert drawn == pytest.approx(ttest_1samp(values, 0).pvalue, abs=0.02)
    assert sign_flip_test(values.tolist(), draws=20_000, seed=1) == drawn


def test_alpha_of_the_published_example() -> None:
    assert krippendorff_alpha(OBSERVERS, 6) == pytest.approx(0.815, abs=5e-4)
    assert alpha_by_definition(OBSERVERS) == pytest.approx(0.815, abs=5e-4)


ratings = st.integers(2, 4).flatmap(
    lambda raters: st.lists(
        st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, NAN]), min_size=raters, max_size=raters), min_size=1, max_size=12
    )
)


@settings(max_examples=200)
@given(ratings)
def test_alpha_is_its_definition(units: list[list[float]]) -> None:
    matrix = np.array(units).T
    assert krippendorff_alpha(matrix, 4) == pytest.approx(alpha_by_definition(matrix), nan_ok=True, abs=1e-9)


def test_kappa_of_the_published_example() -> None:
    """Cohen's weighted κ of 1968: 200 judgements, weights 0/1/3/6, κ_w = 0.348, unweighted 0.492."""
    table = np.array([[88, 14, 18], [10, 40, 10], [2, 6, 12]])
    first = np.repeat(np.repeat(np.arange(3), 3), table.ravel()).astype(float)
    second = np.repeat(np.tile(np.arange(3), 3), table.ravel()).astype(float)
    weight = np.array([[0.0, 1, 3], [1, 0, 6], [3, 6, 0]])
    assert weighted_kappa(first, second, weight) == pytest.approx(0.348, abs=5e-4)
    assert weighted_kappa(first, second, 1 - np.eye(3)) == pytest.approx(0.492, abs=5e-4)


@settings(max_examples=100)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=2, max_size=40),
    st.sampled_from(["linear", "quadratic"]),
)
def test_kappa_is_that_of_scikit_learn(pairs: list[tuple[int, int]], weights: str) -> None:
    first, second = np.array(pairs, float).T
    ours = weighted_kappa(first, second, disagreement(4, weights))
    if math.isnan(ours):
        assert len({v for pair in pairs for v in pair}) == 1
    else:
        theirs = cohen_kappa_score(first, second, labels=[0, 1, 2, 3], weights=weights)
        assert ours == pytest.approx(theirs, abs=1e-9)


def test_kappa_passes_over_missing_answers() -> None:
    first, second = np.array([0, 1, 2, 3, NAN, 1]), np.array([0, 1, 2, 3, 2, NAN])
    assert weighted_kappa(first, second, disagreement(4)) == 1.0
    assert math.isnan(weighted_kappa(first[4:], second[4:], disagreement(4)))


def mean(sums: np.ndarray) -> float:
    return float(sums[0] / sums[1])


def test_bootstrap_resamples_whole_cases() -> None:
    values = np.array([[0.0, 1]] * 5 + [[3.0, 1]] * 5)
    cases = ["a"] * 5 + ["b"] * 5
    estimate = bootstrap(cases, values, mean, seed=1)
    # two cases: means 0, 1.5, 3 at 1/4, 1/2, 1/4
    assert (estimate.value, estimate.low, estimate.high) == (1.5, 0.0, 3.0)
    assert bootstrap(cases, values, mean, seed=1) == estimate
    normal = np.random.default_rng(0).normal(size=400)
    wide = bootstrap(range(400), np.stack([normal, np.ones(400)], axis=1), mean)
    assert wide.high - wide.low == pytest.approx(2 * 1.96 * normal.std() / 20, rel=0.1)
    assert not bootstrap([], np.empty((0, 2)), mean).defined


def test_bootstrap_of_alpha_is_that_of_drawn_units() -> None:
    """Summing coincidences of drawn cases is the same as computing α on the drawn answers."""
    rng = np.random.default_rng(2)
    ratings = rng.integers(0, 4, size=(3, 24)).astype(float)
    ratings[0, ::5] = NAN
    cases = np.repeat(np.arange(6), 4)
    estimate = bootstrap(cases.tolist(), coincidences(ratings, 4), alpha_of_coincidences, draws=3000, seed=0)
    slow = []
    for _ in range(3000):
        units = np.concatenate([np.flatnonzero(cases == case) for case in rng.integers(6, size=6)])
        slow.append(krippendorff_alpha(ratings[:, units], 4))
    assert estimate.value == pytest.approx(alpha_by_definition(ratings))
    assert (estimate.low, estimate.high) == pytest.approx(np.nanquantile(slow, [0.025, 0.975]), abs=0.03)
