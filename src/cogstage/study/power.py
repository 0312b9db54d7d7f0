"""Power of crossover studies: simulated studies, analysed like real ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cogstage.errors import UsageError
from cogstage.reporting import Table
from cogstage.study.draw import CELLS

MOST_REVIEWERS = 200
WANTED = 0.8


@dataclass(frozen=True)
class Scenario:
    """Assumptions about the reviewers. Spreads are standard deviations of the log-odds of a correct judgement."""

    accuracy: float = 0.75  # share of correct judgements without reasons
    gain: float = 0.10  # what reasons add to it
    reviewer_spread: float = 0.5  # between reviewers
    pair_spread: float = 1.5  # between pairs: some are easy for everyone, others hard
    reviewers: int = 24
    pairs: int = 20  # that each reviewer judges, half of them with reasons

    def check(self) -> None:
        """Raise if the scenario is invalid."""
        if not 0 < self.accuracy < 1 or not 0 < self.accuracy + self.gain < 1:
            raise UsageError("accuracy, and accuracy plus gain, must be between 0 and 1")
        if min(self.reviewer_spread, self.pair_spread) < 0:
            raise UsageError("a spread cannot be negative")
        if not 4 <= self.reviewers <= MOST_REVIEWERS:
            raise UsageError(f"a crossover study needs 4 to {MOST_REVIEWERS} reviewers")
        if self.pairs < 2 * CELLS or self.pairs % CELLS or self.pairs > 400:
            raise UsageError(f"a crossover study needs 8 to 400 pairs per reviewer, in a multiple of {CELLS}")


def power(scenario: Scenario, studies: int = 1000, seed: int = 0) -> float:
    """The share of simulated studies whose accuracy differs at the 5 % level. Reviewers come in twos."""
    scenario.check()
    rng = np.random.default_rng(seed)
    significant = [one for part in _batches(scenario, studies, rng) for one in part]
    return float(np.mean(significant))


def _batches(scenario: Scenario, studies: int, rng: np.random.Generator) -> Iterator[np.ndarray]:
    per_batch = max(1, 2_000_000 // (scenario.reviewers * scenario.pairs))
    for begin in range(0, studies, per_batch):
        yield _p_values(*simulate(scenario, min(per_batch, studies - begin), rng)) < 0.05


def simulate(scenario: Scenario, studies: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Simulate correct judgements and arms, each (studies, reviewers, pairs); paired reviewers have opposite arms."""
    couples, pairs = (scenario.reviewers + 1) // 2, scenario.pairs
    order = rng.permuted(np.broadcast_to(np.arange(pairs), (studies, couples, pairs)), axis=-1)
    one = order < pairs // 2
    reasons = np.stack([one, ~one], axis=2).reshape(studies, 2 * couples, pairs)
    spread = math.hypot(scenario.reviewer_spread, scenario.pair_spread)
    base = _log_odds(scenario.accuracy, spread)
    gain = _log_odds(scenario.accuracy + scenario.gain, spread) - base
    odds = (
        base
        + gain * reasons
        + scenario.reviewer_spread * rng.standard_normal((studies, 2 * couples, 1))
        + scenario.pair_spread * rng.standard_normal((studies, 1, pairs))
    )
    return rng.random(odds.shape) < 1 / (1 + np.exp(-odds)), reasons


def _p_values(right: np.ndarray, reasons: np.ndarray) -> np.ndarray:
    """The crossover's test for complete answers, where taking pair effects off is taking pair means off."""
    from scipy.stats import t

    n = right.shape[1]
    adjusted = right - right.mean(axis=1, keepdims=True)
    half = right.shape[2] / 2
    differences = (np.where(reasons, adjusted, -adjusted)).sum(axis=2) / half  # (studies, reviewers)
    groups = differences.reshape(len(right), n // 2, 2)  # of every two reviewers one begins with reasons
    mean = differences.mean(axis=1)
    pooled = ((groups - groups.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2)) / (n - 2) * n / (n - 1)
    error = np.sqrt(pooled / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * t.sf(np.abs(mean) / error, n - 2)
    p_values: np.ndarray = np.where(error > 0, p, (mean == 0).astype(float))
    return p_values


def _log_odds(share: float, spread: float) -> float:
    """The centre of normal log-odds of this spread whose mean probability is ``share``."""
    from scipy.optimize import brentq

    points, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()
    return float(brentq(lambda b: weights @ (1 / (1 + np.exp(-(b + spread * points)))) - share, -30, 30))


@dataclass(frozen=True)
class Plan:
    """The power of a scenario, and how many reviewers the wanted power takes."""

    scenario: Scenario
    power: float
    table: dict[tuple[int, int], float]  # by reviewers and pairs
    needed: dict[int, int | None]  # reviewers for 80 % power, by pairs; None above the most that are tried


def plan(scenario: Scenario, studies: int = 1000, seed: int = 0) -> Plan:
    """Power of the scenario itself, of designs around it, and the reviewers needed for 80 %."""
    scenario.check()
    reviewers = sorted({8, 12, 16, 24, 32, 48, scenario.reviewers})
    pairs = sorted({12, 20, 32, 48, scenario.pairs})
    table = {(r, p): power(replace(scenario, reviewers=r, pairs=p), studies, seed) for r in reviewers for p in pairs}
    needed = {p: _needed(replace(scenario, pairs=p), studies, seed) for p in pairs}
    return Plan(scenario, table[scenario.reviewers, scenario.pairs], table, needed)


def _needed(scenario: Scenario, studies: int, seed: int) -> int | None:
    """The smallest even number of reviewers with 80 % power, by bisection: power grows with reviewers."""
    low, high = 2, MOST_REVIEWERS // 2
    if power(replace(scenario, reviewers=2 * high), studies, seed) < WANTED:
        return None
    while low < high:
        middle = (low + high) // 2
        if power(replace(scenario, reviewers=2 * middle), studies, seed) >= WANTED:
            high = middle
        else:
            low = middle + 1
    return 2 * high


def plan_text(made: Plan, scenario: Scenario, studies: int) -> str:
    """The plan as a table for a terminal."""
    columns = sorted({pairs for _, pairs in made.table})
    rows = [(str(r), *(f"{made.table[r, p]:.0%}" for p in columns)) for r in sorted({r for r, _ in made.table})]
    needed = ("needed for 80 %", *("over 200" if made.needed[p] is None else str(made.needed[p]) for p in columns))
    titles = ("reviewers", *(f"{p} pairs" for p in columns))
    right = f"{scenario.accuracy:.0%} against {scenario.accuracy + scenario.gain:.0%}"
    table = Table(f"Power to detect {right} correct judgements at the 5 % level", titles, (*rows, needed)).text()
    design = f"{scenario.reviewers} reviewers × {scenario.pairs} pairs"
    return f"{table}\n{design}: {made.power:.0%} of {studies:,} simulated studies detect it."
