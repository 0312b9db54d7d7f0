"""Noise and threshold of private releases against literal sums over all outputs, and against the simpler analysis."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from cogstage.errors import UsageError
from cogstage.graph.mechanism import best_pairs, gaussian_delta, mechanism_for
from cogstage.graph.options import PrivacyOptions


def mass(variance: float, shift: int = 0, reach: int = 90) -> np.ndarray:
    """Probabilities of shift + discrete Gaussian noise at -reach ... reach."""
    z = np.arange(-reach, reach + 1)
    whole = np.exp(-(np.arange(-2000, 2001) ** 2) / (2 * variance)).sum()
    return np.exp(-((z - shift) ** 2) / (2 * variance)) / whole


def divergence(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The smallest δ for which ``one`` is at most e^ε · ``other`` + δ in every set."""
    return float(np.maximum(one - math.exp(epsilon) * other, 0).sum())


@pytest.mark.parametrize("variance", ["4", "9", "45/2"])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("numbers", [1, 2])
def test_delta_equals_a_sum_over_all_outputs(variance: str, epsilon: float, numbers: int) -> None:
    spread = float(Fraction(variance))
    one, other = mass(spread, 1), mass(spread, 0)
    if numbers == 2:
        one, other = np.outer(one, one), np.outer(other, other)
    literal = divergence(one, other, epsilon)
    assert gaussian_delta(epsilon, Fraction(variance), numbers) == pytest.approx(literal, rel=1e-6, abs=1e-13)


def test_bounds_of_large_variances_agree_with_sums() -> None:
    """On both sides of the size from which integrals bound the sums."""
    for variance in (Fraction(99_000), Fraction(101_000)):
        spread = float(variance)
        z = np.arange(-20_000, 20_001)
        p = np.exp(-(z**2) / (2 * spread)) / np.exp(-(z**2) / (2 * spread)).sum()
        q = np.roll(p, 1)
        for epsilon in (0.005, 0.01):
            literal = divergence(q, p, epsilon)
            assert literal * (1 - 1e-9) <= gaussian_delta(epsilon, variance, 1) <= literal * 1.02


@pytest.mark.parametrize("limits", [(1.0, 0.02, 1), (0.7, 0.05, 2), (1.5, 0.003, 2), (1.0, 1e-6, 2)])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_a_whole_release_is_private_by_a_sum_over_all_outputs(limits: tuple[float, float, int], noise: str) -> None:
    """Every number of shared pairs, small and large counts, both directions; outputs are values or "not released"."""
    private = PrivacyOptions(*limits, noise)  # type: ignore[arg-type]
    mechanism = mechanism_for(private)
    reach = 400
    z = np.arange(-reach, reach + 1)
    weight = -(z**2) / (2 * float(mechanism.spread)) if noise == "gaussian" else -np.abs(z) / float(mechanism.spread)
    plain = np.exp(weight) / np.exp(weight).sum()

    def output(count: int) -> np.ndarray:
        """Probabilities of "not released", τ, τ + 1, ..."""
        if count == 0:
            return np.append(1.0, np.zeros(reach))
        noisy = z + count
        released = np.zeros(reach)
        inside = (noisy >= mechanism.threshold) & (noisy < mechanism.threshold + reach)
        released[noisy[inside] - mechanism.threshold] = plain[inside]
        return np.append(1 - plain[inside].sum(), released)

    worst = 0.0
    for shared in range(private.pairs + 1):
        for count in (1, mechanism.threshold - 1, mechanism.threshold + 60):
            with_patient, without = np.ones(1), np.ones(1)
            for pair in range(private.pairs):
                others = count if pair < shared else 0
                with_patient = np.outer(with_patient, output(others + 1)).ravel()
                without = np.outer(without, output(others)).ravel()
            for one, other in ((with_patient, without), (without, with_patient)):
                worst = max(worst, divergence(one, other, private.epsilon))
    assert worst <= private.delta
    assert worst >= 0.5 * private.delta or private.delta > 0.01 or noise == "laplace"  # and no noise is wasted


def test_thresholds() -> None:
    """The separate analysis (δ split between noise and threshold, continuous noise) and ours, which needs no split."""

    def sigma(epsilon: float, delta: float, pairs: int) -> float:
        root = math.sqrt(pairs)

        def excess(s: float) -> float:
            a, b = root / (2 * s), epsilon * s / root
            return float(norm.cdf(a - b) - math.exp(epsilon) * norm.cdf(-a - b) - delta)

        return float(brentq(excess, 0.1 * root, 1000 * root))

    def separate(pairs: int) -> float:
        tau = lambda f: 1 + sigma(1, 1e-6 * f, pairs) * norm.isf(1e-6 * (1 - f) / pairs)  # noqa: E731
        return float(minimize_scalar(tau, bounds=(0.3, 0.9), method="bounded").fun)

    assert [round(separate(pairs)) for pairs in (100, 1000)] == [251, 842]
    gaussian = [mechanism_for(PrivacyOptions(1, 1e-6, pairs)).threshold for pairs in (100, 1000)]
    assert gaussian == [239, 804]
    laplace = [mechanism_for(PrivacyOptions(1, 1e-6, pairs, "laplace")).threshold for pairs in (100, 1000)]
    assert laplace == [1775, 20032]


@pytest.mark.parametrize("limits", list(product((0.1, 1.0, 5.0), (1e-9, 1e-6, 1e-3), (1, 30, 5000))))
def test_more_privacy_is_more_noise(limits: tuple[float, float, int]) -> None:
    epsilon, delta, pairs = limits
    base = mechanism_for(PrivacyOptions(epsilon, delta, pairs))
    for stricter in ((epsilon / 2, delta, pairs), (epsilon, delta / 10, pairs), (epsilon, delta, 2 * pairs)):
        other = mechanism_for(PrivacyOptions(*stricter))
        assert other.threshold >= base.threshold
        assert other.spread >= base.spread
    assert mechanism_for(PrivacyOptions(epsilon, delta, pairs), order=True).spread >= base.spread


def test_a_delta_too_small_for_floating_point_is_refused() -> None:
    with pytest.raises(UsageError, match="`private` needs a DELTA of at least 1e-100"):
        mechanism_for(PrivacyOptions(1, 1e-200, 5))


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40).filter(any))
def test_the_best_number_of_pairs_is_the_best_of_all(pairs: list[int]) -> None:
    k = np.array(pairs)
    cost = {most: math.sqrt(most) / np.minimum(k, most).sum() for most in range(1, max(pairs) + 1)}
    assert cost[best_pairs(pairs)] <= min(cost.values()) * (1 + 1e-12)


def test_the_best_number_of_pairs_needs_some() -> None:
    for pairs in ([], [0, 0], [-1, 3]):
        with pytest.raises(UsageError, match="numbers of pairs"):
            best_pairs(pairs)
