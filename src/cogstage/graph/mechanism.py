"""Noise and threshold of a private release: the Gaussian mechanism by default, the Laplace mechanism by name.

A patient adds 1 to each of at most m numbers: M pair counts, and with the order in time M order counts (m = 2·M).

**Gaussian.** Every number gets discrete Gaussian noise of variance σ². With S the sum of m such noises, the probability
of any set of outputs with and without a patient who changes m numbers differs by a factor e^ε up to

    δ(ε, m) = P(S > εσ² - m/2) - e^ε·P(S > εσ² + m/2)                                                      (1)

because the logarithm of the ratio of both densities is (S + m/2)/σ². S is distributed as one discrete Gaussian of
variance mσ², up to a factor e^±κ, κ = 10·Σ_{k<m} exp(-2π²σ²·k/(k+1)) (Kairouz, Liu and Steinke, 2021).

A pair that one patient alone has appears only if 1 plus its noise Z reaches the threshold τ: with probability
p = P(Z ≥ τ - 1). If j of the patient's M pairs are shared with others and M - j are not, none of the latter appears
with probability q = (1 - p)^(M-j). The release is (ε, δ)-private with (Wilkins, Kifer, Zhang and Karrer, 2024)

    δ = max over j of  1 - q + q·δ(ε, j)   and   δ(ε + ln q, j)                                            (2)

the first where the patient was added, the second where they were removed. σ is the smallest for which the last term is
below .99·δ for j = M, and τ the smallest that keeps (2). The order in time counts each shared pair twice.

**Laplace.** P(z) ∝ exp(-|z|·ε/m), and τ = 1 + ⌈ln(M / (δ·(1+p))) · m/ε⌉ with p = exp(-ε/m), so that all of δ is the
chance that a pair of one patient appears.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

import numpy as np

from cogstage.errors import UsageError
from cogstage.graph.noise import Randomness, discrete_gaussian, discrete_laplace, rounded_up
from cogstage.graph.options import PrivacyOptions

SHARE, GRID = 0.99, 256  # of δ that the noise may use, so that the steps between grid points fit beside it
SUMMED = 1e5  # variances up to this have their tails summed; beyond it, integrals bound the sums
LEAST_DELTA = 1e-100  # smaller ones come too near to what floating point numbers hold
LEAST_VARIANCE = 4  # κ above is then below 1e-16 per number
STEPS = 200  # of a bisection


@dataclass(frozen=True)
class Mechanism:
    """How the numbers of a release get their noise, and which pairs are released."""

    noise: str  # "gaussian" or "laplace"
    spread: Fraction  # variance of Gaussian noise, scale of Laplace noise
    threshold: int  # smallest noisy count that is released

    def draw(self, size: int, random: Randomness) -> np.ndarray:
        """Noise of ``size`` numbers, int64 (size,)."""
        sample = discrete_gaussian if self.noise == "gaussian" else discrete_laplace
        return sample(self.spread, size, random)

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise of a count."""
        return math.sqrt(self.spread) if self.noise == "gaussian" else math.sqrt(2) * float(self.spread)


@lru_cache(maxsize=64)
def mechanism_for(private: PrivacyOptions, order: bool = False) -> Mechanism:
    """The mechanism of a release; with ``order``, one that also releases which term came first."""
    numbers = (2 if order else 1) * private.pairs
    if private.noise == "laplace":
        scale = rounded_up(numbers / private.epsilon)
        return Mechanism("laplace", scale, _laplace_threshold(private, scale))
    per_pair = numbers // private.pairs
    epsilon = private.epsilon + math.log1p(-private.delta)  # ln q in (2) is not below ln(1 - δ)
    if private.delta < LEAST_DELTA:
        raise UsageError(f"`private` needs a DELTA of at least {LEAST_DELTA:g} with Gaussian noise")
    variance = _variance(max(0.0, epsilon), SHARE * private.delta, numbers)
    shared = np.unique(np.linspace(0, private.pairs, GRID + 1).astype(np.int64))
    deltas = np.array([gaussian_delta(private.epsilon, variance, per_pair * int(j)) for j in shared])
    least, most = 1, 2 + math.ceil(60 * math.sqrt(variance))
    while least < most:  # the smallest noise that so few pairs of one patient reach
        middle = (least + most) // 2
        if _added_delta(private.pairs, _tail(middle, variance)[1], shared, deltas) <= private.delta:
            most = middle
        else:
            least = middle + 1
    return Mechanism("gaussian", variance, 1 + least)


def appearance(pairs: int, mechanism: Mechanism) -> float:
    """Upper bound of the probability that one of a patient's ``pairs``, which nobody else has, is released."""
    return min(1.0, pairs * _tail(mechanism.threshold - 1, mechanism.spread)[1])


def _added_delta(pairs: int, p: float, shared: np.ndarray, deltas: np.ndarray) -> float:
    """Upper bound of 1 - q + q·δ(ε, j) in (2) over all j; within a step of the grid, each term is at its largest."""
    if p >= 1:
        return 1.0
    q = np.exp((pairs - shared) * math.log1p(-p))
    appear = -np.expm1((pairs - shared) * math.log1p(-p))
    if len(shared) == pairs + 1:  # the grid is every j
        return float((appear + q * deltas).max())
    return float(max((appear[:-1] + q[1:] * deltas[1:]).max(), appear[0], deltas[-1]))


def _laplace_threshold(private: PrivacyOptions, scale: Fraction) -> int:
    p = math.exp(-1 / scale)
    steps = (math.log(private.pairs) - math.log(private.delta) - math.log1p(p)) * scale
    return 1 + max(1, math.ceil(steps))


def _variance(epsilon: float, delta: float, numbers: int) -> Fraction:
    """The smallest variance, to about 12 bits, that makes ``numbers`` numbers (ε, δ)-private."""
    low, high = math.sqrt(LEAST_VARIANCE), math.sqrt(LEAST_VARIANCE)
    while gaussian_delta(epsilon, rounded_up(high**2), numbers) > delta:
        low, high = high, 2 * high
    for _ in range(STEPS):
        if high - low <= 1e-9 * high:
            break
        middle = (low + high) / 2
        if gaussian_delta(epsilon, rounded_up(middle**2), numbers) > delta:
            low = middle
        else:
            high = middle
    return rounded_up(high**2)


def gaussian_delta(epsilon: float, variance: Fraction, numbers: int) -> float:
    """Upper bound of δ(ε, m) in (1): how far discrete Gaussian noise on ``numbers`` numbers is from ε-private."""
    if numbers == 0:
        return 0.0
    spread = float(variance)
    whole = numbers * spread
    first = math.floor(epsilon * spread - numbers / 2) + 1
    second = math.floor(epsilon * spread + numbers / 2) + 1
    above, beyond = _tail(first, Fraction(whole))[1], _tail(second, Fraction(whole))[0]
    scaled = beyond * math.exp(min(epsilon, 700.0))
    most_terms = (numbers - 1) * math.exp(-(math.pi**2) * spread)
    kappa = 10 * most_terms  # every term of the sum is at most exp(-π²σ²)
    return max(0.0, above - scaled + kappa * (above + scaled))


def _tail(least: int, variance: Fraction) -> tuple[float, float]:
    """Bounds of P(z ≥ least) for a discrete Gaussian."""
    if variance <= SUMMED:
        return (_summed_tail(least, float(variance)),) * 2
    return _bounded_tail(least, float(variance))


@lru_cache(maxsize=16)
def _cumulated(variance: float) -> tuple[int, np.ndarray]:
    """-r, and P(z ≥ -r), P(z ≥ 1-r), ... of a discrete Gaussian, added up from the smallest."""
    reach = math.ceil(40 * math.sqrt(variance))
    z = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-z * z / (2 * variance))
    tails = np.cumsum(mass[::-1])[::-1]
    return -reach, tails / tails[0]


def _summed_tail(least: int, variance: float) -> float:
    first, tails = _cumulated(variance)
    if least <= first:
        return 1.0
    return float(tails[least - first]) if least - first < len(tails) else 0.0


def _bounded_tail(least: int, variance: float) -> tuple[float, float]:
    """Where z exceeds σ the density is convex: a sum of midpoints is at most the integral, of trapezia at least."""
    from scipy.special import ndtr

    sigma = math.sqrt(variance)
    if least <= sigma + 1:
        return float(ndtr(-(least + 1) / sigma)), float(ndtr(-(least - 1) / sigma))
    density = math.exp(-least * least / (2 * variance)) / (sigma * math.sqrt(2 * math.pi))
    return float(ndtr(-least / sigma)) + density / 2, float(ndtr(-(least - 0.5) / sigma))


def best_pairs(pairs_per_patient: Sequence[int] | np.ndarray) -> int:
    """The M that keeps most pairs above the threshold, from the numbers of pairs of patients in public data.

    Noise and threshold grow as √M. Of a count, E[min(k, M)]/E[k] stays when a patient with k pairs gives M of them. So
    the smallest count that is released grows as √M / E[min(k, M)], which is least where 2·M·P(k > M) = E[min(k, M)].
    """
    k = np.sort(np.asarray(pairs_per_patient, np.int64))
    if len(k) == 0 or k[0] < 0 or k[-1] == 0:
        raise UsageError("choosing M needs the numbers of pairs of patients")
    most = np.unique(k[k > 0])
    below = np.concatenate([[0], np.cumsum(k)])
    position = np.searchsorted(k, most, side="right")
    kept = below[position] + most * (len(k) - position)  # Σ min(k, M)
    return int(most[np.argmin(np.sqrt(most) / kept)])
