"""Power of crossover studies: simulated studies, analysed like real ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from cogstage.errors import UsageError
from cogstage.reporting import Table
from cogstage.study.crossover import ARM_PAIRS
from cogstage.study.draw import CELLS
from cogstage.study.placement import ORDERS
from cogstage.study.protocol import EVIDENCE, WITH, WITHOUT

MOST_REVIEWERS = 200
WANTED = 0.8
TWO_ORDERS = ((WITH, WITHOUT), (WITHOUT, WITH))
ArmPair = tuple[str, str]


@dataclass(frozen=True)
class Scenario:
    """Assumptions about the reviewers. Spreads are standard deviations of the log-odds of a correct judgement."""

    accuracy: float = 0.75  # share of correct judgements without reasons
    gain: float = 0.10  # what reasons add to it
    reviewer_spread: float = 0.5  # between reviewers
    pair_spread: float = 1.5  # between pairs: some are easy for everyone, others hard
    reviewers: int = 24
    pairs: int = 20  # that each reviewer judges, an equal part in each arm
    evidence_gain: float | None = None  # what reasons without the prediction add; None: there is no such arm

    @property
    def gains(self) -> dict[str, float]:
        """What each arm adds to the accuracy without reasons."""
        gains = {WITH: self.gain, WITHOUT: 0.0}
        return gains if self.evidence_gain is None else {**gains, EVIDENCE: self.evidence_gain}

    @property
    def orders(self) -> tuple[tuple[str, ...], ...]:
        """The orders of the arms that reviewers take in turns."""
        return TWO_ORDERS if self.evidence_gain is None else ORDERS

    @property
    def contrasts(self) -> tuple[ArmPair, ...]:
        """The pairs of arms that are compared."""
        return tuple(pair for pair in ARM_PAIRS if set(pair) <= self.gains.keys())

    @property
    def hardest(self) -> ArmPair:
        """The contrast with the smallest difference that is not zero."""
        gains = self.gains
        differ = [pair for pair in self.contrasts if gains[pair[0]] != gains[pair[1]]]
        return min(differ or self.contrasts, key=lambda pair: abs(gains[pair[0]] - gains[pair[1]]))

    def check(self) -> None:
        """Raise if the scenario is invalid."""
        if not all(0 < self.accuracy + gain < 1 for gain in self.gains.values()):
            raise UsageError("accuracy, and accuracy plus gain, must be between 0 and 1")
        if min(self.reviewer_spread, self.pair_spread) < 0:
            raise UsageError("a spread cannot be negative")
        if not 4 <= self.reviewers <= MOST_REVIEWERS:
            raise UsageError(f"a crossover study needs 4 to {MOST_REVIEWERS} reviewers")
        cells = CELLS if self.evidence_gain is None else 3 * CELLS
        if self.pairs < 2 * CELLS or self.pairs % cells or self.pairs > 400:
            raise UsageError(f"this crossover study needs 8 to 400 pairs per reviewer, in a multiple of {cells}")


def power(scenario: Scenario, studies: int = 1000, seed: int = 0) -> float:
    """The share of simulated studies whose accuracy differs at the 5 % level, for the hardest contrast."""
    return contrast_powers(scenario, studies, seed)[scenario.hardest]


def contrast_powers(scenario: Scenario, studies: int = 1000, seed: int = 0) -> dict[ArmPair, float]:
    """The share of simulated studies that are significant, for each two arms. Reviewers come in twos or sixes."""
    scenario.check()
    rng = np.random.default_rng(seed)
    batches = list(_batches(scenario, studies, rng))
    return {pair: float(np.mean(np.concatenate([one[pair] for one in batches]))) for pair in scenario.contrasts}


def _batches(scenario: Scenario, studies: int, rng: np.random.Generator) -> Iterator[dict[ArmPair, np.ndarray]]:
    per_batch = max(1, 2_000_000 // (scenario.reviewers * scenario.pairs))
    for begin in range(0, studies, per_batch):
        right, arm = simulate(scenario, min(per_batch, studies - begin), rng)
        yield {pair: p_values(scenario, right, arm, pair) < 0.05 for pair in scenario.contrasts}


def simulate(scenario: Scenario, studies: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Simulate correct judgements and arms, each (studies, reviewers, pairs).

    Arms are positions in ``scenario.gains``. Of every two (three) reviewers, each pair is judged in all arms.
    """
    gains, pairs = list(scenario.gains.values()), scenario.pairs
    n_arms, n_orders = len(gains), len(scenario.orders)
    groups = math.ceil(scenario.reviewers / n_orders) * n_orders // n_arms
    order = rng.permuted(np.broadcast_to(np.arange(pairs), (studies, groups, pairs)), axis=-1)
    part = order // (pairs // n_arms)
    arm = np.stack([(part + within) % n_arms for within in range(n_arms)], axis=2).reshape(studies, -1, pairs)
    spread = math.hypot(scenario.reviewer_spread, scenario.pair_spread)
    base = np.array([_log_odds(scenario.accuracy + gain, spread) for gain in gains])
    odds = (
        base[arm]
        + scenario.reviewer_spread * rng.standard_normal((studies, groups * n_arms, 1))
        + scenario.pair_spread * rng.standard_normal((studies, 1, pairs))
    )
    return rng.random(odds.shape) < 1 / (1 + np.exp(-odds)), arm


def p_values(scenario: Scenario, right: np.ndarray, arm: np.ndarray, contrast: ArmPair) -> np.ndarray:
    """The crossover's test for complete answers, where taking pair effects off is taking pair means off."""
    from scipy.stats import t

    first, second = contrast
    arms, n = list(scenario.gains), right.shape[1]
    adjusted = right - right.mean(axis=1, keepdims=True)
    sides = (arm == arms.index(first)).astype(float) - (arm == arms.index(second))
    differences = (sides * adjusted).sum(axis=2) / (right.shape[2] / len(arms))  # (studies, reviewers)
    orders = [scenario.orders[number % len(scenario.orders)] for number in range(n)]
    earlier = np.array([order.index(first) < order.index(second) for order in orders])
    groups = [differences[:, earlier], differences[:, ~earlier]]  # as many reviewers in each
    mean = differences.mean(axis=1)
    within = sum(((group - group.mean(axis=1, keepdims=True)) ** 2).sum(axis=1) for group in groups)
    error = np.sqrt(within / (n - 2) * n / (n - 1) / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * t.sf(np.abs(mean) / error, n - 2)
    values: np.ndarray = np.where(error > 0, p, (mean == 0).astype(float))
    return values


def _log_odds(share: float, spread: float) -> float:
    """The centre of normal log-odds of this spread whose mean probability is ``share``."""
    from scipy.optimize import brentq

    points, weights = np.polynomial.hermite_e.hermegauss(61)
    weights = weights / weights.sum()
    return float(brentq(lambda b: weights @ (1 / (1 + np.exp(-(b + spread * points)))) - share, -30, 30))


@dataclass(frozen=True)
class Plan:
    """The power of a scenario for each contrast, and how many reviewers the wanted power takes for the hardest."""

    scenario: Scenario
    powers: dict[ArmPair, float]
    table: dict[tuple[int, int], float]  # of the hardest contrast, by reviewers and pairs
    needed: dict[int, int | None]  # reviewers for 80 % power, by pairs; None above the most that are tried

    @property
    def power(self) -> float:
        """The power for the hardest contrast."""
        return self.powers[self.scenario.hardest]


def plan(scenario: Scenario, studies: int = 1000, seed: int = 0) -> Plan:
    """Power of the scenario itself, of designs around it, and the reviewers needed for 80 %."""
    scenario.check()
    three = scenario.evidence_gain is not None
    reviewers = sorted({*((6, 12, 24, 48, 96) if three else (8, 12, 16, 24, 32, 48)), scenario.reviewers})
    pairs = sorted({*((12, 24, 36, 48) if three else (12, 20, 32, 48)), scenario.pairs})
    table = {(r, p): power(replace(scenario, reviewers=r, pairs=p), studies, seed) for r in reviewers for p in pairs}
    needed = {p: _needed(replace(scenario, pairs=p), studies, seed) for p in pairs}
    return Plan(scenario, contrast_powers(scenario, studies, seed), table, needed)


def _needed(scenario: Scenario, studies: int, seed: int) -> int | None:
    """The smallest number of complete groups of reviewers with 80 % power, by bisection: power grows with reviewers."""
    step = len(scenario.orders)
    low, high = max(1, 4 // step), MOST_REVIEWERS // step
    if power(replace(scenario, reviewers=step * high), studies, seed) < WANTED:
        return None
    while low < high:
        middle = (low + high) // 2
        if power(replace(scenario, reviewers=step * middle), studies, seed) >= WANTED:
            high = middle
        else:
            low = middle + 1
    return step * high


def plan_text(made: Plan, scenario: Scenario, studies: int) -> str:
    """The plan as a table for a terminal."""
    columns = sorted({pairs for _, pairs in made.table})
    rows = [(str(r), *(f"{made.table[r, p]:.0%}" for p in columns)) for r in sorted({r for r, _ in made.table})]
    needed = ("needed for 80 %", *("over 200" if made.needed[p] is None else str(made.needed[p]) for p in columns))
    titles = ("reviewers", *(f"{p} pairs" for p in columns))
    first, second = scenario.hardest
    shares = [f"{scenario.accuracy + scenario.gains[arm]:.0%}" for arm in (second, first)]
    compared = f" ({second} against {first})" if len(scenario.gains) > 2 else ""
    title = f"Power to detect {shares[0]} against {shares[1]} correct judgements at the 5 % level{compared}"
    table = Table(title, titles, (*rows, needed)).text()
    design = f"{scenario.reviewers} reviewers × {scenario.pairs} pairs"
    lines = [f"{design}: {made.power:.0%} of {studies:,} simulated studies detect it."]
    if len(made.powers) > 1:
        lines = [f"{design}, {one} against {other}: {share:.0%}" for (one, other), share in made.powers.items()]
    return "\n".join([table, *lines])
