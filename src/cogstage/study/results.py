"""What the reviewers said, in figures: the paper's Table 3, wins and losses, agreement, trust, time."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cogstage.study.agreement import (
    Estimate,
    alpha_of_coincidences,
    bootstrap,
    coincidences,
    disagreement,
    kappa_of_table,
    pair_tables,
    sign_test,
)
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import OUTCOMES, Case, Study

SCORE_LEVELS = 4
DRAWS = 2000


@dataclass(frozen=True)
class Judgement:
    """All that one reviewer said about one case; what was not answered is None or missing."""

    reviewer: str
    case: Case
    bare: bool
    set_order: tuple[str, ...]
    scores: dict[str, tuple[int | None, ...]]
    ranks: dict[str, int]
    familiar_head: str | None = None
    familiar_tail: str | None = None
    trust: int | None = None
    comment: str = ""
    seconds: float = 0.0

    def whole_scores(self, source: str) -> tuple[int, ...] | None:
        """The scores of a set if every rationale in it was scored."""
        given = [score for score in self.scores.get(source, ()) if score is not None]
        return tuple(given) if given and len(given) == len(self.scores[source]) else None

    def preference(self, first: str, second: str) -> int | None:
        """1 where ``first`` was ranked above ``second``, -1 below, 0 the same."""
        if first not in self.ranks or second not in self.ranks:
            return None
        difference = self.ranks[second] - self.ranks[first]
        return (difference > 0) - (difference < 0)

    @property
    def sole_winner(self) -> str | None:
        """The set that was ranked above all others."""
        best = min(self.ranks.values(), default=0)
        top = [source for source, rank in self.ranks.items() if rank == best]
        return top[0] if len(top) == 1 else None


def judgements(opened: OpenStudy) -> list[Judgement]:
    """Every judgement with at least one answer, by reviewer in the order of invitation, then as they met the cases."""
    given: dict[tuple[str, str], dict[str, str]] = {}
    for entry in opened.answers.all():
        given.setdefault((entry.reviewer_id, entry.case_key), {})[entry.item] = entry.value
    seconds = opened.answers.seconds()
    found = []
    for person in opened.access.reviewers():
        for placed in opened.answers.placements(person.id):
            items = given.get((person.id, placed.case_key))
            if not items:
                continue
            case = opened.study.case(placed.case_key)
            found.append(
                Judgement(
                    reviewer=person.name,
                    case=case,
                    bare=placed.bare,
                    set_order=placed.set_order,
                    scores={}
                    if placed.bare
                    else {s.source: _scores(items, s.source, len(s.rationales)) for s in case.sets},
                    ranks={s: int(items[f"rank:{s}"]) for s in opened.study.sources if f"rank:{s}" in items},
                    familiar_head=items.get("familiar:head"),
                    familiar_tail=items.get("familiar:tail"),
                    trust=_number(items.get("trust")),
                    comment=items.get("comment", ""),
                    seconds=seconds.get((person.id, placed.case_key), 0.0),
                )
            )
    return found


def _scores(items: dict[str, str], source: str, number: int) -> tuple[int | None, ...]:
    return tuple(_number(items.get(f"score:{source}:{n}")) for n in range(number))


def _number(value: str | None) -> int | None:
    return None if value is None else int(value)


@dataclass(frozen=True)
class SetScores:
    """One column of the paper's Table 3. Averages are over reviewers and cases."""

    source: str
    ranking_score: Estimate  # judgements in which the set was ranked above all others
    average_sum: Estimate
    average_max: Estimate
    levels: tuple[int, ...]  # how often each score 0 ... 3 was given


@dataclass(frozen=True)
class Comparison:
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
class Agreement:
    """One figure of agreement."""

    question: str
    measure: str
    who: str
    estimate: Estimate


@dataclass(frozen=True)
class Results:
    """Everything a report shows."""

    study: Study
    reviewers: tuple[str, ...]
    complete: dict[str, int]  # judgements with every set scored and ranked, by reviewer
    table: dict[str, tuple[SetScores, ...]]  # "all" and, where there are several, each outcome
    comparisons: tuple[Comparison, ...]
    agreement: tuple[Agreement, ...]
    position: Comparison | None  # the set shown first against the one shown second: order should not matter
    trust: dict[str, Estimate]  # with and without rationales, and the difference
    familiarity: dict[str, int]
    minutes: dict[str, float]  # median time a case, by reviewer


def analyse(study: Study, found: Sequence[Judgement], draws: int = DRAWS, seed: int = 0) -> Results:
    """All figures of a study. Repeated cases count for self-consistency alone."""
    firsts = [j for j in found if j.case.repeat_of is None]
    shown = [j for j in firsts if not j.bare]
    reviewers = tuple(dict.fromkeys(j.reviewer for j in found))
    boot = _Bootstrap(draws, seed)
    groups = {"all": shown}
    outcomes = [o for o in OUTCOMES if any(j.case.outcome == o for j in shown)]
    if len(outcomes) > 1:
        groups |= {outcome: [j for j in shown if j.case.outcome == outcome] for outcome in outcomes}
    return Results(
        study=study,
        reviewers=reviewers,
        complete={name: sum(_is_complete(j, study) for j in shown if j.reviewer == name) for name in reviewers},
        table={name: tuple(_set_scores(s, group, boot) for s in study.sources) for name, group in groups.items()},
        comparisons=tuple(_comparisons(study, shown, reviewers, boot)),
        agreement=tuple(_agreement(study, found, reviewers, boot)),
        position=_position(study, shown, boot),
        trust=_trust(firsts, boot),
        familiarity=_familiarity(firsts),
        minutes={name: float(np.median([j.seconds for j in found if j.reviewer == name])) / 60 for name in reviewers},
    )


@dataclass(frozen=True)
class _Bootstrap:
    draws: int
    seed: int

    def __call__(
        self, clusters: Sequence[object], statistics: np.ndarray, figure: Callable[[np.ndarray], float]
    ) -> Estimate:
        return bootstrap(clusters, statistics, figure, self.draws, self.seed)

    def mean(self, clusters: Sequence[object], values: Sequence[float]) -> Estimate:
        array = np.asarray(values, dtype=float)
        return self(clusters, np.stack([array, np.ones_like(array)], axis=1), lambda s: _ratio(s[0], s[1]))


def _ratio(total: float, count: float) -> float:
    return float(total / count) if count else math.nan


def _is_complete(judgement: Judgement, study: Study) -> bool:
    return len(judgement.ranks) == len(study.sources) and all(judgement.whole_scores(s) for s in study.sources)


def _set_scores(source: str, group: Sequence[Judgement], boot: _Bootstrap) -> SetScores:
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


def _compare(
    first: str, second: str, who: str, cases: Sequence[str], signs: Sequence[int], boot: _Bootstrap
) -> Comparison:
    wins, losses = sum(s > 0 for s in signs), sum(s < 0 for s in signs)
    share = boot.mean(cases, [float(s > 0) for s in signs])
    return Comparison(first, second, who, wins, len(signs) - wins - losses, losses, sign_test(wins, losses), share)


def _comparisons(
    study: Study, shown: Sequence[Judgement], reviewers: Sequence[str], boot: _Bootstrap
) -> list[Comparison]:
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


def _position(study: Study, shown: Sequence[Judgement], boot: _Bootstrap) -> Comparison | None:
    if len(study.sources) != 2:
        return None
    signs = [(j.case.key, sign) for j in shown if (sign := j.preference(*j.set_order)) is not None]
    return _compare("shown first", "shown second", "all", [c for c, _ in signs], [s for _, s in signs], boot)


Unit = tuple[str, str, int]  # case, source, rationale


def _score_units(found: Sequence[Judgement]) -> dict[Unit, float]:
    return {
        (j.case.repeat_of or j.case.key, source, n): float(score)
        for j in found
        for source, scores in j.scores.items()
        for n, score in enumerate(scores)
        if score is not None
    }


def _preference_units(study: Study, found: Sequence[Judgement]) -> dict[Unit, float]:
    return {
        (j.case.repeat_of or j.case.key, f"{a}/{b}", 0): float(sign + 1)
        for j in found
        for a, b in combinations(study.sources, 2)
        if (sign := j.preference(a, b)) is not None
    }


def _agreement(study: Study, found: Sequence[Judgement], reviewers: Sequence[str], boot: _Bootstrap) -> list[Agreement]:
    made: list[Agreement] = []
    for question, levels, units_of in (
        ("score of a rationale", SCORE_LEVELS, _score_units),
        ("preference between sets", 3, lambda some: _preference_units(study, some)),
    ):
        first = {
            name: units_of([j for j in found if j.reviewer == name and j.case.repeat_of is None]) for name in reviewers
        }
        again = {
            name: units_of([j for j in found if j.reviewer == name and j.case.repeat_of is not None])
            for name in reviewers
        }
        if len(reviewers) > 1:
            made.append(_alpha(question, f"all {len(reviewers)} reviewers", list(first.values()), levels, boot))
        for a, b in combinations(reviewers, 2):
            made.append(_kappa(question, f"{a} and {b}", first[a], first[b], levels, boot))
        for name in reviewers:
            if again[name]:
                once = {unit: value for unit, value in first[name].items() if unit in again[name]}
                who = f"{name} with themselves"
                made.append(_kappa(question, who, once, again[name], levels, boot))
                made.append(_alpha(question, who, [once, again[name]], levels, boot))
    return made


def _matrix(raters: Sequence[dict[Unit, float]]) -> tuple[list[Unit], np.ndarray]:
    units = sorted(unit for unit in set().union(*raters) if sum(unit in rater for rater in raters) > 1)
    rows = [[rater.get(unit, math.nan) for unit in units] for rater in raters]
    return units, np.array(rows, dtype=float).reshape(len(raters), len(units))


def _alpha(question: str, who: str, raters: Sequence[dict[Unit, float]], levels: int, boot: _Bootstrap) -> Agreement:
    units, matrix = _matrix(raters)
    estimate = boot([unit[0] for unit in units], coincidences(matrix, levels), alpha_of_coincidences)
    return Agreement(question, "Krippendorff's α, ordinal", who, estimate)


def _kappa(
    question: str, who: str, a: dict[Unit, float], b: dict[Unit, float], levels: int, boot: _Bootstrap
) -> Agreement:
    units, matrix = _matrix([a, b])
    weight = disagreement(levels)
    tables = pair_tables(matrix[0], matrix[1], levels)
    estimate = boot([unit[0] for unit in units], tables, lambda table: kappa_of_table(table, weight))
    return Agreement(question, "Cohen's κ, quadratic weights", who, estimate)


def _trust(firsts: Sequence[Judgement], boot: _Bootstrap) -> dict[str, Estimate]:
    asked = [j for j in firsts if j.trust is not None]
    if not asked or not any(j.bare for j in asked):
        return {}
    cases = [j.case.key for j in asked]
    trust = np.array([float(j.trust or 0) for j in asked])
    bare = np.array([float(j.bare) for j in asked])
    # sums and counts: with rationales, without
    sums = np.stack([trust * (1 - bare), 1 - bare, trust * bare, bare], axis=1)
    return {
        "with rationales": boot(cases, sums, lambda s: _ratio(s[0], s[1])),
        "without rationales": boot(cases, sums, lambda s: _ratio(s[2], s[3])),
        "difference": boot(cases, sums, lambda s: _ratio(s[0], s[1]) - _ratio(s[2], s[3])),
    }


def _familiarity(firsts: Sequence[Judgement]) -> dict[str, int]:
    given = [answer for j in firsts for answer in (j.familiar_head, j.familiar_tail) if answer is not None]
    return {answer: given.count(answer) for answer in ("yes", "kind_of", "no")}
