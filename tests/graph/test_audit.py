"""The audit finds broken mechanisms, and never a bound above a sound one."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.errors import UsageError
from cogstage.graph import mechanism, privacy, private_kernels
from cogstage.graph.audit import Audit, Bound, audit, gaussian_epsilon
from cogstage.graph.noise import Randomness
from cogstage.graph.options import PrivacyOptions

SMALL = PrivacyOptions(1.0, 1e-3, 4)  # its bounds are near enough to ε that 1,500 releases show a mistake
Break = Callable[[pytest.MonkeyPatch], None]


def half_the_noise(patch: pytest.MonkeyPatch) -> None:
    sound = mechanism.discrete_gaussian
    patch.setattr(
        mechanism, "discrete_gaussian", lambda variance, size, random: sound(variance / 5, size, random)
    )  # the standard deviation is 45 %


def even_noise(patch: pytest.MonkeyPatch) -> None:
    sound = mechanism.discrete_gaussian

    def even(variance: Fraction, size: int, random: Randomness) -> np.ndarray:
        return sound(variance, size, random) // 2 * 2

    patch.setattr(mechanism, "discrete_gaussian", even)


def no_bound(patch: pytest.MonkeyPatch) -> None:
    sound = private_kernels.bounded_pairs
    patch.setattr(
        private_kernels,
        "bounded_pairs",
        lambda group, unit, term, key, most, *rest: sound(group, unit, term, key, 1000, *rest),
    )


def low_threshold(patch: pytest.MonkeyPatch) -> None:
    sound = privacy.mechanism_for
    patch.setattr(privacy, "mechanism_for", lambda *given: replace(sound(*given), threshold=2))


def highest(result: Audit) -> Bound:
    return max(result.bounds, key=lambda bound: bound.epsilon)


@pytest.mark.parametrize(
    ("broken", "input", "rule"),
    [
        (half_the_noise, "shared", "sum"),
        (even_noise, "shared", "remainder"),
        (no_bound, "wide", "sum"),
        (low_threshold, "alone", "sum"),
    ],
)
def test_what_is_broken_is_caught_by_the_input_that_is_made_for_it(
    broken: Break, input: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken(monkeypatch)
    result = audit(SMALL, 1500)
    assert not result.passed
    assert (highest(result).input, highest(result).rule) == (input, rule)


@pytest.mark.parametrize("private", [SMALL, PrivacyOptions(0.5, 1e-6, 5), PrivacyOptions(2, 1e-6, 1, "laplace")])
@pytest.mark.parametrize("order", [False, True])
def test_a_sound_release_passes(private: PrivacyOptions, order: bool) -> None:
    result = audit(private, 400, 0.9999, order)
    assert result.passed
    assert result.private.epsilon == private.epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    ("private", "least"), [(PrivacyOptions(1, 1e-6, 10), 0.4), (PrivacyOptions(1, 1e-6, 1, "laplace"), 0.8)]
)
def test_ten_thousand_releases_stay_below_the_claim_and_come_near_it(private: PrivacyOptions, least: float) -> None:
    result = audit(private, 10_000, 0.9999)
    assert least < result.epsilon <= private.epsilon


def test_the_gaussian_curve_agrees_with_a_sum() -> None:
    """Two discretised normal distributions: the ε at which their hockey-stick divergence is δ."""
    x = np.linspace(-12, 14, 400_001)
    for distance, delta in ((0.3, 1e-4), (1.0, 1e-3), (2.0, 1e-5)):
        epsilon = gaussian_epsilon(distance, delta)
        one, other = (np.exp(-((x - mean) ** 2) / 2) / math.sqrt(2 * math.pi) for mean in (distance, 0))
        literal = np.maximum(one - math.exp(epsilon) * other, 0).sum() * (x[1] - x[0])
        assert literal == pytest.approx(delta, rel=1e-3)
    assert gaussian_epsilon(0.1, 0.5) == 0


def test_the_command_reports_all_bounds_and_fails_for_a_broken_release(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["graph", "audit", "--private", "1,1e-3,4", "--releases", "300", "--json"]
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0, shown.output
    about = json.loads(shown.stdout)
    assert about["passed"]
    assert {bound["input"] for bound in about["bounds"]} == {"shared", "wide", "alone"}
    low_threshold(monkeypatch)
    assert CliRunner().invoke(app, words).exit_code != 0
    with pytest.raises(UsageError, match="at least 100 releases"):
        audit(SMALL, 10)
