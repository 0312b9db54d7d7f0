"""Exact samplers of discrete Laplace and discrete Gaussian noise (Canonne, Kamath and Steinke, 2020).

Everything is computed with whole numbers and uniform bits: no floating point number, whose rounding could tell about
the count, takes part. The bits come from the operating system.

    Bernoulli(p/q)       compares p/q with uniform bits, 32 at a time, until they differ
    Bernoulli(exp(-γ))   0 ≤ γ ≤ 1: draw Bernoulli(γ/k) for k = 1, 2, ... up to the first failure; success if that k is
                         odd. Larger γ: all of ⌊γ⌋ draws of Bernoulli(exp(-1)), and one of the rest
    Laplace(t/s)         P(z) ∝ exp(-|z|·s/t): U uniform below t, kept with probability exp(-U/t), V geometric with
                         exp(-1), |z| = ⌊(U + t·V)/s⌋, a random sign, -0 thrown away
    Gaussian(σ²)         P(z) ∝ exp(-z²/2σ²): Laplace with t = ⌊σ⌋ + 1, kept with probability
                         exp(-(|z| - σ²/t)²/2σ²)
"""

from __future__ import annotations

import math
import os
from fractions import Fraction

import numpy as np

WORD = 32  # bits that are compared at a time
SMALL = 1 << 31  # denominators below this are compared in 64 bits, others as Python's integers
PRECISION = 12  # bits to which a scale or variance is rounded up


class Randomness:
    """Uniform bits of the operating system; with a seed, bits that anyone can repeat, for tests alone."""

    def __init__(self, seed: int | None = None) -> None:
        self.seed = seed
        self._generator = None if seed is None else np.random.default_rng([seed, 0x5EED])

    def words(self, n: int) -> np.ndarray:
        """``n`` uniform numbers below 2^32, uint64 (n,)."""
        size = n * WORD // 8
        data = os.urandom(size) if self._generator is None else self._generator.bytes(size)
        return np.frombuffer(data, "<u4").astype(np.uint64)

    def below(self, most: int, n: int) -> np.ndarray:
        """``n`` uniform numbers in 0 ... most - 1 (most up to 2^64), uint64 (n,): too large draws are repeated."""
        bits = max(1, (most - 1).bit_length())
        result = np.zeros(n, np.uint64)
        left = np.arange(n)
        while len(left):
            drawn = self.words(len(left))
            if bits > WORD:
                drawn |= self.words(len(left)) << np.uint64(WORD)
            drawn &= np.uint64((1 << bits) - 1)
            fits = drawn < np.uint64(most) if most < 1 << 64 else np.ones(len(left), bool)
            result[left[fits]] = drawn[fits]
            left = left[~fits]
        return result


def bernoulli(above: np.ndarray, below: np.ndarray, random: Randomness) -> np.ndarray:
    """True with probability above/below, for arrays of whole numbers 0 ≤ above ≤ below; bool (n,)."""
    result = np.zeros(len(above), bool)
    left = np.arange(len(above))
    big = len(below) > 0 and int(below.max()) >= SMALL
    kind = object if big else np.int64
    above, below = above.astype(kind), below.astype(kind)
    while len(left):
        # u uniform in [0, 1): its next word w says success if (w + 1)/2^32 ≤ p and failure if w/2^32 ≥ p
        word = random.words(len(left)).astype(kind)
        reached, scaled = word * below, above * (1 << WORD)
        success = (reached + below <= scaled).astype(bool)
        undecided = ~success & (reached < scaled).astype(bool)
        result[left[success]] = True
        left, above, below = left[undecided], (scaled - reached)[undecided], below[undecided]
    return result


def bernoulli_exp(above: np.ndarray, below: np.ndarray, random: Randomness) -> np.ndarray:
    """True with probability exp(-above/below), for arrays of whole numbers above ≥ 0, below > 0; bool (n,)."""
    whole, rest = above // below, above % below
    result = np.ones(len(above), bool)
    step, active = 0, np.flatnonzero(whole)
    while len(active):
        ones = np.ones(len(active), np.int64)
        success = _exp_at_most_one(ones, ones, random)
        result[active[~success]] = False
        step, active = step + 1, active[success]
        active = active[(whole[active] > step).astype(bool)]
    result[result] = _exp_at_most_one(rest[result], below[result], random)
    return result


def _exp_at_most_one(above: np.ndarray, below: np.ndarray, random: Randomness) -> np.ndarray:
    """:func:`bernoulli_exp` where above ≤ below."""
    result = np.zeros(len(above), bool)
    left, k = np.arange(len(above)), 1
    while len(left):
        again = bernoulli(above[left], below[left] * k, random)
        result[left[~again]] = k % 2 == 1
        left, k = left[again], k + 1
    return result


def discrete_laplace(scale: Fraction, size: int, random: Randomness) -> np.ndarray:
    """Noise with P(z) ∝ exp(-|z|/scale); int64 (size,)."""
    t, s = scale.numerator, scale.denominator
    result = np.zeros(size, np.int64)
    left = np.arange(size)
    while len(left):
        uniform = random.below(t, len(left)).astype(np.int64)
        kept = bernoulli_exp(uniform, np.full(len(left), t, np.int64), random)
        places, uniform = left[kept], uniform[kept]
        geometric, more = np.zeros(len(places), np.int64), np.arange(len(places))
        while len(more):
            ones = np.ones(len(more), np.int64)
            more = more[_exp_at_most_one(ones, ones, random)]
            geometric[more] += 1
        value = (uniform + t * geometric) // s
        negative = random.below(2, len(places)).astype(bool)
        sound = ~(negative & (value == 0))
        result[places[sound]] = np.where(negative, -value, value)[sound]
        left = np.setdiff1d(left, places[sound], assume_unique=True)
    return result


def discrete_gaussian(variance: Fraction, size: int, random: Randomness) -> np.ndarray:
    """Noise with P(z) ∝ exp(-z²/(2·variance)); int64 (size,)."""
    n, d = variance.numerator, variance.denominator
    t = math.isqrt(n // d) + 1
    below = 2 * n * d * t * t
    result = np.zeros(size, np.int64)
    left = np.arange(size)
    while len(left):
        drawn = discrete_laplace(Fraction(t), len(left), random)
        # (|z| - σ²/t)²/2σ² as a fraction of whole numbers; Python's integers, since squares pass 64 bits
        distance = np.abs(drawn).astype(object) * (t * d) - n
        kept = bernoulli_exp(distance * distance, np.full(len(left), below, object), random)
        result[left[kept]] = drawn[kept]
        left = left[~kept]
    return result


def rounded_up(value: float) -> Fraction:
    """The smallest fraction over a power of 2 that is at least ``value``, to about 12 bits."""
    exponent = max(0, PRECISION - math.frexp(value)[1])
    return Fraction(math.ceil(Fraction(value) * (1 << exponent)), 1 << exponent)
