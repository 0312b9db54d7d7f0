"""Analysis of crossover studies: each reviewer judges pairs with and without reasons.

The model behind a difference is that of a two-period crossover: an answer is the sum of what the reviewer, the pair and
the period contribute, and of what reasons add. Pair effects are estimated by least squares and taken off; then each
reviewer has one difference between pairs with and without reasons, and these are averaged over those who began with
reasons and those who began without, so that a period effect (learning, fatigue) cancels. The reviewer is the unit:
t test with n - 2 degrees of freedom. A second interval resamples reviewers and pairs, for other pairs than these.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cogstage.statistics import Bootstrap, Estimate
from cogstage.study.judgements import Judgement, by_familiarity
from cogstage.study.protocol import Study
from cogstage.study.reliability import Agreement, agreement
from cogstage.study.results import DRAWS, Comment, ReviewerSummary, comments, familiarity, summaries


@dataclass(frozen=True)
class Observation:
    """One answer as a number, with reviewer, pair, arm, and whether reasons came first."""

    reviewer: str
    pair: str
    reasons: bool
    reasons_first: bool
    value: float


@dataclass(frozen=True)
class ReasonsEffect:
    """The effect of reasons on one measure."""

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
class Measure:
    """One row of the crossover's table."""

    name: str
    about: str  # the denominator in words
    with_reasons: Estimate
    without_reasons: Estimate
    effect: ReasonsEffect
    other_pairs: Estimate  # the plain difference, reviewers and pairs drawn anew
    is_ratio: bool = False  # the difference is a factor


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
    study: Study, answered: Sequence[Judgement], draws: int = DRAWS, seed: int = 0, include_unfinished: bool = False
) -> CrossoverResults:
    """All figures of a crossover study."""
    reviewers = summaries(study, answered)
    counted = tuple(r.name for r in reviewers if r.finished or include_unfinished)
    counting = [j for j in answered if j.reviewer in counted]
    judged = [j for j in counting if j.verdict is not None]
    wrong, right = [j for j in judged if not j.case.correct], [j for j in judged if j.case.correct]
    boot = Bootstrap(draws, seed)
    first = _reasons_first(counting)

    def measure(name: str, about: str, chosen: Sequence[Judgement], value: object, is_ratio: bool = False) -> Measure:
        rows = [
            Observation(j.reviewer, j.case.key, not j.bare, first[j.reviewer], float(number))
            for j in chosen
            if (number := value(j)) is not None  # type: ignore[operator]
        ]
        return _measure(name, about, rows, boot, is_ratio)

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


def _reasons_first(answered: Sequence[Judgement]) -> dict[str, bool]:
    """Whether a reviewer began with reasons: what the earliest position shows."""
    earliest: dict[str, Judgement] = {}
    for j in answered:
        if j.reviewer not in earliest or j.position < earliest[j.reviewer].position:
            earliest[j.reviewer] = j
    return {name: not j.bare for name, j in earliest.items()}


def _measure(name: str, about: str, rows: Sequence[Observation], boot: Bootstrap, is_ratio: bool) -> Measure:
    arms = []
    for reasons in (True, False):
        chosen = [row for row in rows if row.reasons == reasons]
        arms.append(boot.mean([row.reviewer for row in chosen], [row.value for row in chosen]))
    effect, other_pairs = crossover_effect(rows), _two_way(rows, boot)
    if is_ratio:
        arms = [_exp(arm) for arm in arms]
        other_pairs = _exp(other_pairs)
        effect = ReasonsEffect(
            math.exp(effect.difference), math.exp(effect.low), math.exp(effect.high), effect.p_value, effect.reviewers
        )
    return Measure(name, about, arms[0], arms[1], effect, other_pairs, is_ratio)


def _exp(estimate: Estimate) -> Estimate:
    return Estimate(math.exp(estimate.value), math.exp(estimate.low), math.exp(estimate.high), estimate.n)


def crossover_effect(rows: Sequence[Observation]) -> ReasonsEffect:
    """The difference that reasons make, with its t interval and p value; see the head of this file."""
    undefined = ReasonsEffect(math.nan, math.nan, math.nan, math.nan, 0)
    if not rows:
        return undefined
    value = np.array([row.value for row in rows])
    reasons = np.array([row.reasons for row in rows])
    reviewer, names = _numbered([row.reviewer for row in rows])
    pair, pairs = _numbered([row.pair for row in rows])
    design = np.zeros((len(rows), len(names) + len(pairs) + 1))
    design[np.arange(len(rows)), reviewer] = 1
    design[np.arange(len(rows)), len(names) + pair] = 1
    design[:, -1] = reasons
    fitted, _, rank, _ = np.linalg.lstsq(design, value, rcond=None)  # the shortest solution: only differences are used
    if len(rows) - rank < len(names) / 2:
        return undefined  # pair effects would explain everything, and nothing would be left to test with
    adjusted = value - fitted[len(names) + pair]
    begins = {row.reviewer: row.reasons_first for row in rows}
    differences: dict[bool, list[float]] = {True: [], False: []}
    for number, name in enumerate(names):
        own = reviewer == number
        if reasons[own].any() and not reasons[own].all():
            shift = adjusted[own & reasons].mean() - adjusted[own & ~reasons].mean()
            differences[begins[name]].append(float(shift))
    return _t_test([np.array(group) for group in differences.values() if group]) or undefined


def _t_test(groups: Sequence[np.ndarray]) -> ReasonsEffect | None:
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
    return ReasonsEffect(difference, difference - reach, difference + reach, p_value, n)


def _numbered(names: Sequence[str]) -> tuple[np.ndarray, list[str]]:
    distinct = list(dict.fromkeys(names))
    number = {name: position for position, name in enumerate(distinct)}
    return np.array([number[name] for name in names]), distinct


def _two_way(rows: Sequence[Observation], boot: Bootstrap) -> Estimate:
    """The plain difference of means; its interval draws reviewers and pairs anew, each with all their answers."""
    if not rows:
        return Estimate(math.nan, math.nan, math.nan, 0)
    reviewer, names = _numbered([row.reviewer for row in rows])
    pair, pairs = _numbered([row.pair for row in rows])
    tables = np.zeros((4, len(names), len(pairs)))  # sum and count with reasons, sum and count without
    for row, r, p in zip(rows, reviewer, pair, strict=True):
        arm = 0 if row.reasons else 2
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
