"""Progress of a study, for the administrator; independent of the source of any set."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cogstage.statistics import krippendorff_alpha, sign_test
from cogstage.study.answers import ReviewProgress
from cogstage.study.effort import is_hasty, is_hasty_reviewer
from cogstage.study.folder import OpenStudy
from cogstage.study.judgements import Judgement, judgements
from cogstage.study.reliability import FEWEST_UNITS


@dataclass(frozen=True)
class ReviewerStatus:
    """Progress, time and open questions of one reviewer."""

    name: str
    progress: ReviewProgress
    minutes: float | None  # median per complete case
    unanswered: int  # questions left open in cases that were begun
    cannot_judge: int
    hasty: bool


@dataclass(frozen=True)
class StudyStatus:
    """Current state of the study."""

    people: tuple[ReviewerStatus, ...]
    agreement: float | None
    shared: int  # answers that two or more reviewers gave to the same question
    minutes: float | None
    complete: int
    position_first: int
    position_total: int | None  # None: there are no two sets to prefer one of
    position_p: float
    unanswered: int
    cannot_judge: int


def watch(opened: OpenStudy) -> StudyStatus:
    """Return the current figures of a study, without unblinding it."""
    answered = judgements(opened)
    people = []
    done_seconds: list[float] = []
    for person in opened.access.reviewers():
        own = [j for j in answered if j.reviewer == person.name]
        complete = [j for j in own if not j.unanswered]
        seconds = [j.seconds for j in complete if j.seconds > 0]
        done_seconds += seconds
        hasty = sum(is_hasty(j.seconds, j.questions) for j in complete)
        people.append(
            ReviewerStatus(
                person.name,
                opened.answers.progress(person.id),
                float(np.median(seconds)) / 60 if seconds else None,
                sum(j.unanswered for j in own),
                sum(j.cannot_judge for j in own),
                is_hasty_reviewer(hasty, len(complete)),
            )
        )
    agreement, shared = _agreement(opened, answered)
    signs = [sign for j in answered if (sign := _first_preferred(j)) is not None]
    first, second = sum(s > 0 for s in signs), sum(s < 0 for s in signs)
    has_two_sets = len(opened.study.sources) == 2 and not opened.study.is_crossover
    return StudyStatus(
        people=tuple(people),
        agreement=agreement,
        shared=shared,
        minutes=float(np.median(done_seconds)) / 60 if done_seconds else None,
        complete=sum(not j.unanswered for j in answered),
        position_first=first,
        position_total=first + second if has_two_sets else None,
        position_p=sign_test(first, second),
        unanswered=sum(person.unanswered for person in people),
        cannot_judge=sum(person.cannot_judge for person in people),
    )


def _first_preferred(judgement: Judgement) -> int | None:
    if len(judgement.set_order) != 2 or judgement.case.repeat_of is not None:
        return None
    return judgement.preference(*judgement.set_order)


def _agreement(opened: OpenStudy, answered: list[Judgement]) -> tuple[float | None, int]:
    """Krippendorff's α over all reviewers: of scores, or of verdicts in a crossover."""
    raters: dict[str, dict[tuple[str, str, int], float]] = {}
    for j in answered:
        if j.case.repeat_of is not None:
            continue
        mine = raters.setdefault(j.reviewer, {})
        if j.verdict is not None:
            mine[j.case.key, "verdict", 0] = float(j.verdict)
        for source, scores in j.scores.items():
            mine.update({(j.case.key, source, n): float(s) for n, s in enumerate(scores) if s is not None})
    every = [unit for mine in raters.values() for unit in mine]
    units = sorted({unit for unit in every if sum(unit in mine for mine in raters.values()) > 1})
    if len(units) < FEWEST_UNITS:
        return None, len(units)
    rows = [[mine.get(unit, math.nan) for unit in units] for mine in raters.values()]
    alpha = krippendorff_alpha(np.array(rows), 2 if opened.study.is_crossover else 4)
    return None if math.isnan(alpha) else alpha, len(units)
