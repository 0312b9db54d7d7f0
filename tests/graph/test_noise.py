"""Exact samplers against closed forms and OpenDP; the source of their randomness."""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2, ncx2

from cogstage.graph import noise
from cogstage.graph.noise import (
    Randomness,
    bernoulli,
    bernoulli_exp,
    discrete_gaussian,
    discrete_laplace,
    rounded_up,
)

N = 200_000
REFUSED = 1e-7  # p value below which a sampler is called wrong; it is right in all but 1 of 10 million runs


def expected(kind: str, spread: float) -> tuple[np.ndarray, np.ndarray]:
    """Values and probabilities of a distribution."""
    z = np.arange(-math.ceil(40 * spread) - 5, math.ceil(40 * spread) + 6)
    mass = np.exp(-(z**2) / (2 * spread**2)) if kind == "gaussian" else np.exp(-np.abs(z) / spread)
    return z, mass / mass.sum()


def cells_of(kind: str, spread: float, n: int) -> tuple[int, np.ndarray]:
    """The least value, and the expected number of ``n`` draws per cell: one per value that expects 50, and tails."""
    z, mass = expected(kind, spread)
    middle = np.flatnonzero(mass * n >= 50)
    low, high = z[middle[0]], z[middle[-1]]
    return int(low), np.bincount(np.clip(z, low, high) - low, weights=mass) * n


def p_value(drawn: np.ndarray, kind: str, spread: float) -> float:
    """χ² test of draws against the closed form."""
    low, wanted = cells_of(kind, spread, len(drawn))
    seen = np.bincount(np.clip(drawn - low, 0, len(wanted) - 1), minlength=len(wanted))
    return float(chi2.sf(((seen - wanted) ** 2 / wanted).sum(), len(wanted) - 1))


def power(kind: str, spread: float, wrong: float) -> float:
    """Chance that the test refuses a sampler with ``spread`` as one with ``wrong``: χ² is then noncentral."""
    low, wanted = cells_of(kind, wrong, N)
    z, mass = expected(kind, spread)
    true = np.bincount(np.clip(z - low, 0, len(wanted) - 1), weights=mass, minlength=len(wanted)) * N
    freedom = len(wanted) - 1
    return float(ncx2.sf(chi2.isf(REFUSED, freedom), freedom, ((true - wanted) ** 2 / wanted).sum()))


CASES = [
    *(("laplace", Fraction(x)) for x in ("1/3", "1", "5/2", "40")),
    *(("gaussian", Fraction(x)) for x in ("1/4", "4", "9/2", "300", "7001/4")),
]


@pytest.mark.parametrize(("kind", "spread"), CASES)
def test_samplers_follow_the_closed_form_and_a_wrong_scale_would_show(kind: str, spread: Fraction) -> None:
    """With 200,000 draws the test also notices a scale that is 5 % off, in all but 1 of 100,000 runs."""
    sample = discrete_gaussian if kind == "gaussian" else discrete_laplace
    drawn = sample(spread, N, Randomness())
    scale = math.sqrt(spread) if kind == "gaussian" else float(spread)
    assert p_value(drawn, kind, scale) > REFUSED
    if scale >= 1:
        assert power(kind, scale, scale * 1.05) > 1 - 1e-5
        assert p_value(drawn, kind, scale * 1.05) < REFUSED


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_samplers_agree_with_opendp(kind: str) -> None:
    """Two samples, one of theirs and one of ours, in the same cells."""
    dp = pytest.importorskip("opendp.prelude", reason="opendp is not installed (extra test)")
    dp.enable_features("contrib")
    scale, n = 6.0, 40_000
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T=float)
    if kind == "gaussian":
        theirs = dp.m.make_gaussian(*space, scale=scale)
        ours = discrete_gaussian(Fraction(36), n, Randomness())
    else:
        theirs = dp.m.make_laplace(space[0], dp.l1_distance(T="i64"), scale=scale)
        ours = discrete_laplace(Fraction(6), n, Randomness())
    other = np.array(theirs([0] * n))
    reach = 18
    cells = [np.bincount(np.clip(drawn, -reach, reach) + reach, minlength=2 * reach + 1) for drawn in (ours, other)]
    statistic = ((cells[0] - cells[1]) ** 2 / (cells[0] + cells[1])).sum()
    assert chi2.sf(statistic, 2 * reach) > REFUSED


@pytest.mark.parametrize("big", [False, True])
@pytest.mark.parametrize("gamma", ["0", "1/7", "1", "5/3", "4"])
def test_bernoulli_of_an_exponential(gamma: str, big: bool) -> None:
    n, rate = 60_000, Fraction(gamma)
    factor = 3**60 if big else 1
    above = np.full(n, rate.numerator * factor, object if big else np.int64)
    below = np.full(n, rate.denominator * factor, object if big else np.int64)
    wanted = math.exp(-rate)
    share = bernoulli_exp(above, below, Randomness()).mean()
    assert abs(share - wanted) <= 6 * math.sqrt(wanted * (1 - wanted) / n)


def test_bernoulli_is_exact_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """All words of 4 bits instead of 32: of 16 words and their continuations exactly above/below succeed."""
    monkeypatch.setattr(noise, "WORD", 4)

    class Scripted(Randomness):
        def __init__(self, words: list[int]) -> None:
            self.script = words

        def words(self, n: int) -> np.ndarray:
            return np.array([self.script.pop(0)], np.uint64)

    for above, below in ((1, 3), (5, 7), (11, 16), (0, 9), (9, 9)):
        one, other = np.array([above]), np.array([below])
        successes = Fraction(0)
        for first in range(16):
            for second in range(16):
                try:
                    outcome = bernoulli(one, other, Scripted([first, second]))[0]
                except IndexError:  # both words equal to the first bits of the fraction: still open
                    continue
                successes += Fraction(int(outcome), 256)
        assert successes <= Fraction(above, below) < successes + Fraction(2, 256)


def test_randomness_comes_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    plain = os.urandom

    def urandom(n: int) -> bytes:
        asked.append(n)
        return plain(n)

    monkeypatch.setattr(os, "urandom", urandom)
    monkeypatch.setattr(np.random, "default_rng", None)
    discrete_gaussian(Fraction(50), 1000, Randomness())
    assert sum(asked) > 4000  # bytes
    monkeypatch.undo()
    first, second = (discrete_gaussian(Fraction(50), 1000, Randomness()) for _ in range(2))
    assert (first != second).any()
    first, second = (discrete_gaussian(Fraction(50), 1000, Randomness(3)) for _ in range(2))
    assert (first == second).all()


def test_uniform_numbers_below_any_bound() -> None:
    for most in (1, 2, 3, 1000, 2**33 + 1, 2**64):
        drawn = Randomness().below(most, 2000)
        assert int(drawn.max()) < most
        middle = (drawn >= np.uint64(most // 2)).mean() if most > 1 else 0.5
        assert abs(middle - 0.5) < 0.2


@pytest.mark.parametrize("value", [1e-3, 0.1, 1 / 3, 1.0, 1899.3, 1e12])
def test_scales_are_rounded_up_and_only_a_little(value: float) -> None:
    rounded = rounded_up(value)
    assert value <= rounded <= Fraction(value) * Fraction(1001, 1000)
