"""Results of a study of sets: Table 3 of the paper, differences, agreement and trust."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cogstage.statistics import Bootstrap, Estimate, ratio, sign_flip_test, sign_test
from cogstage.study.effort import is_hasty, is_hasty_reviewer
from cogstage.study.judgements import Judgement, by_familiarity
from cogstage.study.protocol import OUTCOMES, Study
from cogstage.study.reliability import SCORE_LEVELS, Agreement, agreement

DRAWS = 2000


@dataclass(frozen=True)
class ReviewerSummary:
    """One reviewer's part in a study."""

    name: str
    complete: int
    total: int
    unanswered: int  # questions left open in cases that were begun
    cannot_judge: int
    minutes: float  # median per case
    hasty: bool

    @property
    def finished(self) -> bool:
        """Whether every question of every case was answered."""
        return self.complete == self.total


@dataclass(frozen=True)
class SetScores:
    """One column of the paper's Table 3. Averages are over reviewers and cases."""

    source: str
    ranking_score: Estimate  # judgements in which the set was ranked above all others
    average_sum: Estimate
    average_max: Estimate
    levels: tuple[int, ...]  # how often each score 0 ... 3 was given


@dataclass(frozen=True)
class SourceComparison:
    """Wins, ties and losses of one source against another, with the two-sided sign test over wins and losses."""

    first: str
    second: str
    who: str  # a reviewer, or all
    wins: int
    ties: int
    losses: int
    p_value: float
    win_share: Estimate  # of all judgements

    @property
    def total(self) -> int:
        """How many judgements or cases were compared."""
        return self.wins + self.ties + self.losses


@dataclass(frozen=True)
class Difference:
    """A paired difference between two sources: averaged over the reviewers of a case, then over cases."""

    measure: str
    first: str
    second: str
    estimate: Estimate
    p_value: float  # sign-flip test over cases


@dataclass(frozen=True)
class Comment:
    """What a reviewer wrote next to a case."""

    reviewer: str
    case: str
    text: str


@dataclass(frozen=True)
class Results:
    """Everything a report on sets shows. Main figures rest on ``counted`` reviewers alone."""

    study: Study
    reviewers: tuple[ReviewerSummary, ...]
    counted: tuple[str, ...]
    everyone_counts: bool  # unfinished reviewers were asked to be counted, too
    table: dict[str, tuple[SetScores, ...]]  # "all" and, where there are several, each outcome
    by_familiarity: dict[str, tuple[SetScores, ...]]
    differences: tuple[Difference, ...]
    comparisons: tuple[SourceComparison, ...]
    agreement: tuple[Agreement, ...]
    position: SourceComparison | None  # the set shown first against the one shown second: order should not matter
    trust: dict[str, Estimate]  # with and without rationales, and the difference
    familiarity: dict[str, int]
    comments: tuple[Comment, ...]


def analyse(
    study: Study, answered: Sequence[Judgement], draws: int = DRAWS, seed: int = 0, include_unfinished: bool = False
) -> Results:
    """All figures of a study. Repeated cases count for self-consistency alone."""
    reviewers = summaries(study, answered)
    counted = tuple(r.name for r in reviewers if r.finished or include_unfinished)
    counting = [j for j in answered if j.reviewer in counted]
    firsts = [j for j in counting if j.case.repeat_of is None]
    shown = [j for j in firsts if not j.bare]
    boot = Bootstrap(draws, seed)
    groups = {"all": shown}
    outcomes = [o for o in OUTCOMES if any(j.case.outcome == o for j in shown)]
    if len(outcomes) > 1:
        groups |= {outcome: [j for j in shown if j.case.outcome == outcome] for outcome in outcomes}
    known = by_familiarity(shown)
    return Results(
        study=study,
        reviewers=reviewers,
        counted=counted,
        everyone_counts=include_unfinished,
        table={name: tuple(_set_scores(s, group, boot) for s in study.sources) for name, group in groups.items()},
        by_familiarity={
            name: tuple(_set_scores(s, group, boot) for s in study.sources) for name, group in known.items() if group
        },
        differences=tuple(_differences(study, shown, boot)),
        comparisons=tuple(_comparisons(study, shown, counted, boot)),
        agreement=agreement(study, counting, counted, boot),
        position=_position(study, shown, boot),
        trust=_trust(firsts, boot),
        familiarity=familiarity(firsts),
        comments=comments(answered),
    )


def summaries(study: Study, answered: Sequence[Judgement]) -> tuple[ReviewerSummary, ...]:
    """Each reviewer's part, in the order of invitation."""
    made = []
    for name in dict.fromkeys(j.reviewer for j in answered):
        own = [j for j in answered if j.reviewer == name]
        complete = [j for j in own if not j.unanswered]
        hasty = sum(is_hasty(j.seconds, j.questions) for j in complete)
        made.append(
            ReviewerSummary(
                name,
                len(complete),
                len(study.cases),
                sum(j.unanswered for j in own),
                sum(j.cannot_judge for j in own),
                float(np.median([j.seconds for j in own])) / 60,
                is_hasty_reviewer(hasty, len(complete)),
            )
        )
    return tuple(made)


def familiarity(firsts: Sequence[Judgement]) -> dict[str, int]:
    """How often terms were familiar, kind of familiar, or not."""
    given = Counter(answer for j in firsts for answer in (j.familiar_head, j.familiar_tail))
    return {answer: given[answer] for answer in ("yes", "kind_of", "no")}


def comments(answered: Sequence[Judgement]) -> tuple[Comment, ...]:
    """Everything that was written, by reviewer."""
    return tuple(Comment(j.reviewer, j.case.text, j.comment) for j in answered if j.comment)


def _set_scores(source: str, group: Sequence[Judgement], boot: Bootstrap) -> SetScores:
    scored = [(j.case.key, scores) for j in group if (scores := j.whole_scores(source))]
    ranked = [j for j in group if j.ranks]
    wins = np.array([j.sole_winner == source for j in ranked], dtype=float)
    cases = [case for case, _ in scored]
    return SetScores(
        source=source,
        ranking_score=boot([j.case.key for j in ranked], wins, float),
        average_sum=boot.mean(cases, [sum(scores) for _, scores in scored]),
        average_max=boot.mean(cases, [max(scores) for _, scores in scored]),
        levels=tuple(sum(scores.count(level) for _, scores in scored) for level in range(SCORE_LEVELS)),
    )


def _differences(study: Study, shown: Sequence[Judgement], boot: Bootstrap) -> list[Difference]:
    """Each pair of sources by ranking, sum and maximum. Reviewers of one case are not independent: a case is a unit."""
    made = []
    for first, second in combinations(study.sources, 2):
        by_case: dict[str, dict[str, list[float]]] = {"ranking score": {}, "sum": {}, "maximum": {}}
        for j in shown:
            if j.ranks:
                sign = float(j.sole_winner == first) - float(j.sole_winner == second)
                by_case["ranking score"].setdefault(j.case.key, []).append(sign)
            a, b = j.whole_scores(first), j.whole_scores(second)
            if a and b:
                by_case["sum"].setdefault(j.case.key, []).append(sum(a) - sum(b))
                by_case["maximum"].setdefault(j.case.key, []).append(max(a) - max(b))
        for measure, cases in by_case.items():
            means = [float(np.mean(values)) for values in cases.values()]
            p_value = sign_flip_test(means, seed=boot.seed)
            made.append(Difference(measure, first, second, boot.mean(list(cases), means), p_value))
    return made


def _compare(
    first: str, second: str, who: str, cases: Sequence[str], signs: Sequence[int], boot: Bootstrap
) -> SourceComparison:
    wins, losses = sum(s > 0 for s in signs), sum(s < 0 for s in signs)
    share = boot.mean(cases, [float(s > 0) for s in signs])
    return SourceComparison(
        first, second, who, wins, len(signs) - wins - losses, losses, sign_test(wins, losses), share
    )


def _comparisons(
    study: Study, shown: Sequence[Judgement], reviewers: Sequence[str], boot: Bootstrap
) -> list[SourceComparison]:
    """Each pair of sources: every reviewer alone and, of several, their majority case by case.

    Judgements of one case by several reviewers are not independent, so the joint test counts a case once.
    """
    made = []
    for first, second in combinations(study.sources, 2):
        by_case: dict[str, int] = {}
        judges = 0
        for name in reviewers:
            signs = {
                j.case.key: sign
                for j in shown
                if j.reviewer == name and (sign := j.preference(first, second)) is not None
            }
            if signs:
                judges += 1
                made.append(_compare(first, second, name, list(signs), list(signs.values()), boot))
            for case, sign in signs.items():
                by_case[case] = by_case.get(case, 0) + sign
        if judges > 1:
            majority = [int(np.sign(total)) for total in by_case.values()]
            made.append(_compare(first, second, "majority", list(by_case), majority, boot))
    return made


def _position(study: Study, shown: Sequence[Judgement], boot: Bootstrap) -> SourceComparison | None:
    if len(study.sources) != 2:
        return None
    signs = [(j.case.key, sign) for j in shown if (sign := j.preference(*j.set_order)) is not None]
    return _compare("shown first", "shown second", "all", [c for c, _ in signs], [s for _, s in signs], boot)


def _trust(firsts: Sequence[Judgement], boot: Bootstrap) -> dict[str, Estimate]:
    asked = [j for j in firsts if j.trust is not None]
    if not asked or not any(j.bare for j in asked):
        return {}
    cases = [j.case.key for j in asked]
    trust = np.array([float(j.trust or 0) for j in asked])
    bare = np.array([float(j.bare) for j in asked])
    sums = np.stack([trust * (1 - bare), 1 - bare, trust * bare, bare], axis=1)  # sum and count: with, without
    arms = {
        name: [j for j in asked if j.bare == is_bare]
        for name, is_bare in (("with reasons", False), ("without reasons", True))
    }
    return {
        **{name: boot.mean([j.case.key for j in arm], [j.trust or 0 for j in arm]) for name, arm in arms.items()},
        "difference": boot(cases, sums, lambda s: ratio(s[0], s[1]) - ratio(s[2], s[3])),
    }
