"""Analysis of crossover studies: each reviewer judges pairs in two or three arms.

The arms are: the prediction with reasons, the prediction alone and, in studies with an evidence arm, the reasons alone.

The model behind a difference is that of a crossover: an answer is the sum of what the reviewer, the pair and the period
contribute, and of what the arm adds. Pair effects are estimated by least squares and taken off; then each reviewer has
one difference between two arms, and these are averaged over those who met the first of the two arms earlier and those
who met it later, so that a period effect (learning, fatigue) cancels. The reviewer is the unit: t test with n - 2
degrees of freedom. A second interval resamples reviewers and pairs, for other pairs than these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cogstage.statistics import Bootstrap, Estimate
from cogstage.study.judgements import Judgement, by_familiarity
from cogstage.study.mixed import MixedEffect, mixed_effects
from cogstage.study.observation import Observation
from cogstage.study.protocol import EVIDENCE, WITH, WITHOUT, Study
from cogstage.study.reliability import Agreement, agreement
from cogstage.study.results import DRAWS, Comment, ReviewerSummary, comments, familiarity, summaries

ARM_PAIRS = ((WITH, WITHOUT), (EVIDENCE, WITHOUT), (EVIDENCE, WITH))
SENSITIVITY = ("accuracy", "over-reliance")  # measures with a mixed model as a sensitivity analysis


@dataclass(frozen=True)
class ArmEffect:
    """The difference between two arms in one measure."""

    difference: float
    low: float  # 95 % interval of the t test, reviewers drawn anew
    high: float
    p_value: float
    reviewers: int  # who judged pairs both ways

    @property
    def defined(self) -> bool:
        """Whether there is a figure at all."""
        return math.isfinite(self.difference)


@dataclass(frozen=True)
class Contrast:
    """One arm against another in one measure."""

    first: str
    second: str
    effect: ArmEffect
    other_pairs: Estimate  # the plain difference, reviewers and pairs drawn anew
    mixed: MixedEffect | None = None  # sensitivity analysis

    @property
    def name(self) -> str:
        """Both arms."""
        return f"{self.first} − {self.second}"


@dataclass(frozen=True)
class Measure:
    """One row of the crossover's table: a figure for each arm, and the differences between arms."""

    name: str
    about: str  # the denominator in words
    arms: dict[str, Estimate]
    contrasts: tuple[Contrast, ...]
    is_ratio: bool = False  # the difference is a factor

    @property
    def effect(self) -> ArmEffect:
        """The effect of reasons: the first contrast."""
        return self.contrasts[0].effect


@dataclass(frozen=True)
class CrossoverResults:
    """Everything a report on a crossover shows. Main figures rest on ``counted`` reviewers alone."""

    study: Study
    reviewers: tuple[ReviewerSummary, ...]
    counted: tuple[str, ...]
    everyone_counts: bool
    measures: tuple[Measure, ...]
    by_familiarity: dict[str, Measure]  # accuracy
    agreement: tuple[Agreement, ...]
    familiarity: dict[str, int]
    comments: tuple[Comment, ...]


def analyse_crossover(
    study: Study,
    answered: Sequence[Judgement],
    draws: int = DRAWS,
    seed: int = 0,
    include_unfinished: bool = False,
    sensitivity: bool = False,
) -> CrossoverResults:
    """All figures of a crossover study; ``sensitivity`` adds mixed models, which take seconds."""
    reviewers = summaries(study, answered)
    counted = tuple(r.name for r in reviewers if r.finished or include_unfinished)
    counting = [j for j in answered if j.reviewer in counted]
    judged = [j for j in counting if j.verdict is not None]
    wrong, right = [j for j in judged if not j.case.correct], [j for j in judged if j.case.correct]
    boot = Bootstrap(draws, seed)
    period = _periods(counting)
    Value = Callable[[Judgement], float | None]

    def measure(name: str, about: str, chosen: Sequence[Judgement], value: Value, is_ratio: bool = False) -> Measure:
        rows = [
            Observation(j.reviewer, j.case.key, j.arm, period[j.reviewer, j.arm], float(number))
            for j in chosen
            if (number := value(j)) is not None
        ]
        mixed = mixed_effects(rows, study.arms) if sensitivity and name in SENSITIVITY else {}
        return _measure(name, about, rows, study.arms, boot, is_ratio, mixed)

    def accurate(j: Judgement) -> float:
        return float(j.verdict == bool(j.case.label))

    def followed(j: Judgement) -> float:
        return float(j.verdict == j.case.predicted)

    def log_seconds(j: Judgement) -> float | None:
        return math.log(j.seconds) if j.seconds > 0 else None

    known = by_familiarity(judged)
    return CrossoverResults(
        study=study,
        reviewers=reviewers,
        counted=counted,
        everyone_counts=include_unfinished,
        measures=(
            measure("accuracy", "share of right verdicts, all pairs", judged, accurate),
            measure("over-reliance", "share of wrong predictions that were followed", wrong, followed),
            measure(
                "under-reliance", "share of right predictions that were rejected", right, lambda j: 1.0 - followed(j)
            ),
            measure("confidence", "mean, 0 (a guess) to 3 (certain)", counting, lambda j: j.confidence),
            measure("time", "seconds per pair, geometric mean", judged, log_seconds, is_ratio=True),
        ),
        by_familiarity={name: measure("accuracy", name, chosen, accurate) for name, chosen in known.items() if chosen},
        agreement=agreement(study, counting, counted, boot),
        familiarity=familiarity(counting),
        comments=comments(answered),
    )


def _periods(answered: Sequence[Judgement]) -> dict[tuple[str, str], int]:
    """The order in which a reviewer met the arms, from 0, by reviewer and arm."""
    earliest: dict[str, dict[str, int]] = {}
    for j in answered:
        arms = earliest.setdefault(j.reviewer, {})
        arms[j.arm] = min(j.position, arms.get(j.arm, j.position))
    return {
        (name, arm): period
        for name, arms in earliest.items()
        for period, arm in enumerate(sorted(arms, key=lambda arm: arms[arm]))
    }


def _measure(
    name: str,
    about: str,
    rows: Sequence[Observation],
    arms: Sequence[str],
    boot: Bootstrap,
    is_ratio: bool,
    mixed: dict[tuple[str, str], MixedEffect],
) -> Measure:
    scale = _exp if is_ratio else _same
    estimates = {}
    for arm in arms:
        chosen = [row for row in rows if row.arm == arm]
        estimates[arm] = scale(boot.mean([row.reviewer for row in chosen], [row.value for row in chosen]))
    contrasts = []
    for first, second in ARM_PAIRS:
        if first in arms and second in arms:
            effect = crossover_effect(rows, first, second)
            if is_ratio:
                difference, low, high = (math.exp(value) for value in (effect.difference, effect.low, effect.high))
                effect = ArmEffect(difference, low, high, effect.p_value, effect.reviewers)
            other_pairs = scale(_two_way(rows, first, second, boot))
            contrasts.append(Contrast(first, second, effect, other_pairs, mixed.get((first, second))))
    return Measure(name, about, estimates, tuple(contrasts), is_ratio)


def _same(estimate: Estimate) -> Estimate:
    return estimate


def _exp(estimate: Estimate) -> Estimate:
    return Estimate(math.exp(estimate.value), math.exp(estimate.low), math.exp(estimate.high), estimate.n)


def crossover_effect(rows: Sequence[Observation], first: str = WITH, second: str = WITHOUT) -> ArmEffect:
    """The difference between two arms, with its t interval and p value; see the head of this file."""
    undefined = ArmEffect(math.nan, math.nan, math.nan, math.nan, 0)
    if not rows:
        return undefined
    value = np.array([row.value for row in rows])
    arm, arms = _numbered([row.arm for row in rows])
    reviewer, names = _numbered([row.reviewer for row in rows])
    pair, pairs = _numbered([row.pair for row in rows])
    if first not in arms or second not in arms:
        return undefined
    each = np.arange(len(rows))
    design = np.zeros((len(rows), len(names) + len(pairs) + len(arms)))
    for column, begin in ((reviewer, 0), (pair, len(names)), (arm, len(names) + len(pairs))):
        design[each, begin + column] = 1
    fitted, _, rank, _ = np.linalg.lstsq(design, value, rcond=None)  # the shortest solution: only differences are used
    if len(rows) - rank < len(names) / 2:
        return undefined  # pair effects would explain everything, and nothing would be left to test with
    adjusted = value - fitted[len(names) + pair]
    period = {(row.reviewer, row.arm): row.period for row in rows}
    differences: dict[bool, list[float]] = {True: [], False: []}
    for number, name in enumerate(names):
        one, other = (adjusted[(reviewer == number) & (arm == arms.index(side))] for side in (first, second))
        if len(one) and len(other):
            differences[period[name, first] < period[name, second]].append(float(one.mean() - other.mean()))
    return _t_test([np.array(group) for group in differences.values() if group]) or undefined


def _t_test(groups: Sequence[np.ndarray]) -> ArmEffect | None:
    """The mean of the groups' means with a pooled t test; None of fewer than four reviewers.

    Pair effects were estimated from the same answers, which takes 1/n of the variance away: hence n / (n - 1).
    """
    from scipy.stats import t

    n = sum(map(len, groups))
    freedom = n - len(groups)
    if n < 4 or freedom < 2:
        return None
    difference = float(np.mean([group.mean() for group in groups]))
    pooled = sum(float(((group - group.mean()) ** 2).sum()) for group in groups) / freedom * n / (n - 1)
    error = math.sqrt(pooled * sum(1 / len(group) for group in groups)) / len(groups)
    reach = float(t.ppf(0.975, freedom)) * error
    p_value = float(2 * t.sf(abs(difference) / error, freedom)) if error > 0 else float(difference == 0)
    return ArmEffect(difference, difference - reach, difference + reach, p_value, n)


def _numbered(names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    distinct = list(dict.fromkeys(names))
    number = {name: position for position, name in enumerate(distinct)}
    return np.array([number[name] for name in names]), distinct


def _two_way(rows: Sequence[Observation], first: str, second: str, boot: Bootstrap) -> Estimate:
    """The plain difference of means; its interval draws reviewers and pairs anew, each with all their answers."""
    rows = [row for row in rows if row.arm in (first, second)]
    if not rows:
        return Estimate(math.nan, math.nan, math.nan, 0)
    reviewer, names = _numbered([row.reviewer for row in rows])
    pair, pairs = _numbered([row.pair for row in rows])
    tables = np.zeros((4, len(names), len(pairs)))  # sum and count of one arm, and of the other
    for row, r, p in zip(rows, reviewer, pair, strict=True):
        arm = 0 if row.arm == first else 2
        tables[arm, r, p] += row.value
        tables[arm + 1, r, p] += 1
    rng = np.random.default_rng(boot.seed)
    times_reviewer = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), size=boot.draws)
    times_pair = rng.multinomial(len(pairs), np.full(len(pairs), 1 / len(pairs)), size=boot.draws)
    drawn = np.einsum("dr,trp,dp->td", times_reviewer, tables, times_pair, optimize=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        differences = drawn[0] / drawn[1] - drawn[2] / drawn[3]
        sums = tables.sum(axis=(1, 2))
        value = float(sums[0] / sums[1] - sums[2] / sums[3])
    differences = differences[np.isfinite(differences)]
    if not math.isfinite(value) or not len(differences):
        return Estimate(math.nan, math.nan, math.nan, len(rows))
    low, high = np.quantile(differences, [0.025, 0.975])
    return Estimate(value, float(low), float(high), len(rows))
