"""Audit of private release: many releases of worst-case neighbouring inputs give a lower bound on ε.

Every release goes through the code that releases a graph: a patient's pairs are bounded by
:func:`cogstage.graph.privacy.bounded_edges` under a fresh secret seed, added to the counts of the other patients, and
released by :func:`cogstage.graph.privacy.release`. Neighbouring inputs differ in one patient:

    shared   the patient has M pairs that many others have, so that all M counts change by 1
    wide     the patient has 5·M such pairs, so that a bound which does not hold shows
    alone    the patient has 5·M pairs that nobody else has, so that a threshold which is too low shows

An attacker sees a release and decides whether the patient is in it. With true and false positive rates a and b of any
rule, (ε, δ)-privacy demands a ≤ e^ε·b + δ and 1 - b ≤ e^ε·(1 - a) + δ. Clopper-Pearson intervals of a and b give

    ε ≥ ln((a_low - δ) / b_high)                                                           "any mechanism"

The rule (a threshold of the patient's summed counts, or remainders of one count) is chosen on one half of the releases
and measured on the other. With Gaussian noise and the threshold in the middle, the same intervals of all releases bound
the distance μ = Φ⁻¹(a) - Φ⁻¹(b) between both distributions of the sum; it means δ = Φ(μ/2 - ε/μ) - e^ε·Φ(-μ/2 - ε/μ):
a far higher bound where δ is small ("Gaussian noise"). All bounds hold together with the given confidence.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cogstage.errors import UsageError
from cogstage.graph.counting import Rows
from cogstage.graph.edges import Edges
from cogstage.graph.mechanism import mechanism_for
from cogstage.graph.noise import Randomness
from cogstage.graph.options import PrivacyOptions
from cogstage.graph.privacy import bounded_edges, fresh_seed, release
from cogstage.progress import SILENT, Progress

INPUTS = {"shared": 1, "wide": 5, "alone": 5}  # pairs of the patient, in multiples of M
REMAINDERS = 16  # a count is also judged by its remainder: noise that avoids some numbers shows there
LEAST_RELEASES = 100
BOUNDS = 4 * len(INPUTS)  # intervals that must hold together: two rules of two rates each
LAG = 90


@dataclass(frozen=True)
class Bound:
    """A lower bound on ε from the releases of one pair of neighbouring inputs."""

    input: str
    rule: str  # "sum" or "remainder"
    assumption: str  # "any mechanism" or "Gaussian noise"
    epsilon: float


@dataclass(frozen=True)
class Audit:
    """The result of an audit: the claimed privacy and what was measured."""

    private: PrivacyOptions
    order: bool
    releases: int  # with the patient, and as many without, of each input
    confidence: float
    bounds: tuple[Bound, ...]

    @property
    def epsilon(self) -> float:
        """The highest lower bound on ε."""
        return max(bound.epsilon for bound in self.bounds)

    @property
    def passed(self) -> bool:
        """Whether no bound exceeds the claimed ε."""
        return self.epsilon <= self.private.epsilon


def audit(
    private: PrivacyOptions,
    releases: int = 10_000,
    confidence: float = 0.99,
    order: bool = False,
    progress: Progress = SILENT,
) -> Audit:
    """Release worst-case inputs with and without one patient, ``releases`` times each, and bound ε from below."""
    if releases < LEAST_RELEASES or not 0 < confidence < 1:
        raise UsageError(f"an audit needs at least {LEAST_RELEASES} releases and a confidence between 0 and 1")
    miss = (1 - confidence) / BOUNDS
    bounds: list[Bound] = []
    for name, wide in INPUTS.items():
        progress.start(f"Releasing {name}", 2 * releases)
        base = 0 if name == "alone" else _clear_count(private, order)
        seen = [_sums(private, base, wide * private.pairs * with_patient, wide, releases, order, progress)
                for with_patient in (1, 0)]  # fmt: skip
        progress.done()
        per_pair = 2 if order else 1
        middle = per_pair * private.pairs * (wide * base + 0.5)  # between the sums with and without the patient
        bounds += _bounds_of(name, private, seen[0], seen[1], middle, miss)
    return Audit(private, order, releases, confidence, tuple(bounds))


def _clear_count(private: PrivacyOptions, order: bool) -> int:
    """A count that is always released, and whose order counts never reach 0."""
    mechanism = mechanism_for(private, order)
    return mechanism.threshold + math.ceil(30 * mechanism.deviation)


def _sums(
    private: PrivacyOptions, base: int, n_own: int, wide: int, releases: int, order: bool, progress: Progress
) -> np.ndarray:
    """Summed counts of all pairs, and the first count, of every release; int64 (releases, 2).

    ``base`` other patients have each pair; one more patient has the first ``n_own`` pairs.
    """
    sums = np.zeros((releases, 2), np.int64)
    inputs = (_counts(private, base, n_own, wide, order) for _ in range(releases))
    for number, released in enumerate(release(inputs, private, Randomness(), order)):
        sums[number, 0] = released.count.sum()
        if released.order is not None:
            sums[number, 0] += released.order[:, 0].sum()
        if len(released) and released.source[0] == 0:
            sums[number, 1] = released.count[0]
        progress.advance()
    return sums


def _counts(private: PrivacyOptions, base: int, n_own: int, wide: int, order: bool) -> Edges:
    """The counts of one input: pair i has the terms 2i and 2i + 1; others have one pair each, and all of them."""
    n = wide * private.pairs
    source = 2 * np.arange(n, dtype=np.int32)
    count = np.full(n, base, np.int64)
    cells = None
    if order:
        cells = np.zeros((n, 3), np.int32)
        cells[:, 0] = base
    if n_own:
        term = np.arange(2 * n_own, dtype=np.int32)
        rows = Rows(np.zeros(2 * n_own, np.uint64), term.astype(np.int64) // 2, term, term if order else None)
        keys = term.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        own = bounded_edges(rows, keys, private.pairs, fresh_seed(), LAG if order else None)
        count[own.source // 2] += own.count
        if cells is not None and own.order is not None:
            cells[own.source // 2] += own.order
    there = count > 0
    return Edges(source[there], source[there] + 1, count[there], None, None if cells is None else cells[there])


def _bounds_of(
    name: str, private: PrivacyOptions, one: np.ndarray, other: np.ndarray, middle: float, miss: float
) -> Iterator[Bound]:
    """Bounds from releases with (``one``) and without (``other``) the patient."""
    delta, half = private.delta, len(one) // 2
    top = np.unique(np.quantile(np.concatenate([one[:half, 0], other[:half, 0]]), np.linspace(0.01, 0.99, 50)))
    rules = [(sign, cut) for cut in top for sign in (1, -1)]

    def hits(sums: np.ndarray, rule: tuple[int, float]) -> np.ndarray:
        return rule[0] * sums[:, 0] > rule[0] * rule[1]

    chosen = max(rules, key=lambda rule: _epsilon(hits(one[:half], rule), hits(other[:half], rule), delta, miss))
    yield Bound(
        name, "sum", "any mechanism", _epsilon(hits(one[half:], chosen), hits(other[half:], chosen), delta, miss)
    )
    remainder = [np.bincount(x[:half, 1] % REMAINDERS, minlength=REMAINDERS) for x in (one, other)]
    likelier = remainder[0] > remainder[1]
    mine, theirs = (likelier[x[half:, 1] % REMAINDERS] for x in (one, other))
    yield Bound(name, "remainder", "any mechanism", _epsilon(mine, theirs, delta, miss))
    if private.noise == "gaussian" and name != "alone":
        epsilon = _gaussian_epsilon(one[:, 0] > middle, other[:, 0] > middle, delta, miss)
        yield Bound(name, "sum", "Gaussian noise", epsilon)


def _epsilon(one: np.ndarray, other: np.ndarray, delta: float, miss: float) -> float:
    """The bound for any mechanism, from the outcomes of a rule with and without the patient."""
    low, high = _rate(one, miss)[0] - delta, _rate(other, miss)[1]
    return max(0.0, math.log(low / high)) if low > 0 else 0.0


def _gaussian_epsilon(one: np.ndarray, other: np.ndarray, delta: float, miss: float) -> float:
    from scipy.special import ndtri

    distance = float(ndtri(_rate(one, miss)[0]) - ndtri(_rate(other, miss)[1]))
    return gaussian_epsilon(distance, delta) if distance > 0 else 0.0


def gaussian_epsilon(distance: float, delta: float) -> float:
    """The ε at ``delta`` of two normal distributions of variance 1 whose means are ``distance`` apart."""
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtr

    def excess(epsilon: float) -> float:
        beyond = math.exp(epsilon + float(log_ndtr(-distance / 2 - epsilon / distance)))
        return float(ndtr(distance / 2 - epsilon / distance)) - beyond - delta

    return float(brentq(excess, 0.0, distance * (distance + 50))) if excess(0.0) > 0 else 0.0


def _rate(hits: np.ndarray, miss: float) -> tuple[float, float]:
    """Clopper-Pearson bounds of a rate; each is wrong with probability ``miss`` at most."""
    from scipy.special import betaincinv

    n, k = len(hits), int(hits.sum())
    low = float(betaincinv(k, n - k + 1, miss)) if k else 0.0
    high = float(betaincinv(k + 1, n - k, 1 - miss)) if k < n else 1.0
    return low, high
