"""What reviewers answered case by case, where they disagree, and what was decided there; without sources."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from sqlalchemy import select

from cogstage.errors import UsageError
from cogstage.reporting import csv_text
from cogstage.study.blind import CANNOT_JUDGE, SCORES, VERDICT
from cogstage.study.export import moment_text
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import StudyCase
from cogstage.study.schema import adjudication

LONGEST_NOTE = 1000


@dataclass(frozen=True)
class Adjudication:
    """What was decided on one question of one case."""

    value: str
    note: str
    decided_at: float


@dataclass(frozen=True)
class CaseQuestion:
    """One question of a case, with all answers to it."""

    item: str  # as it is stored; it can name a source and is never shown
    name: str
    text: str
    choices: Mapping[str, str]
    answers: Mapping[str, str]  # by reviewer
    decision: Adjudication | None = None

    @property
    def disagreed(self) -> bool:
        """Whether reviewers gave different answers; neighbouring scores count as the same."""
        values = {value for value in self.answers.values() if value != CANNOT_JUDGE}
        if self.name == "score":
            numbers = [int(value) for value in values]
            return bool(numbers) and max(numbers) - min(numbers) > 1
        return len(values) > 1


@dataclass(frozen=True)
class CaseOverview:
    """A case as the administrator sees it."""

    case: StudyCase
    reviewers: int
    questions: tuple[CaseQuestion, ...]
    comments: Mapping[str, str] = field(default_factory=dict)  # by reviewer

    @property
    def disagreed(self) -> int:
        """Number of questions on which reviewers disagree and nothing was decided."""
        return sum(question.disagreed and question.decision is None for question in self.questions)


def case_overviews(opened: OpenStudy) -> list[CaseOverview]:
    """Every case of a study, with all answers to questions that can be decided, and comments."""
    names = {person.id: person.name for person in opened.access.reviewers()}
    given: dict[str, dict[str, dict[str, str]]] = {}
    for entry in opened.answers.all():
        of_case = given.setdefault(entry.case_key, {})
        of_case.setdefault(entry.item, {})[names[entry.reviewer_id]] = entry.value
    decisions = _decisions(opened)
    made = []
    for case in opened.study.cases:
        answers = given.get(case.key, {})
        questions = _questions(opened, case, answers, decisions)
        reviewers = len({name for by_name in answers.values() for name in by_name})
        made.append(CaseOverview(case, reviewers, questions, answers.get("comment", {})))
    return made


def _questions(
    opened: OpenStudy,
    case: StudyCase,
    answers: Mapping[str, Mapping[str, str]],
    decisions: Mapping[tuple[str, str], Adjudication],
) -> tuple[CaseQuestion, ...]:
    asked: dict[str, tuple[str, str, Mapping[str, str]]] = {}  # by item: name, text, choices
    if opened.study.is_crossover:
        asked["verdict"] = ("verdict", f"Does it hold: {case.text}?", VERDICT)
    else:  # in the order of their texts, which says nothing of the source
        items = {t.text: f"score:{one.source}:{n}" for one in case.sets for n, t in enumerate(one.rationales)}
        asked |= {item: ("score", text, SCORES) for text, item in sorted(items.items())}
    for question in opened.study.questions:
        if question.choices and not question.is_check:
            asked[question.item] = (question.name, question.text, dict(question.choices))
    return tuple(
        CaseQuestion(item, *about, answers.get(item, {}), decisions.get((case.key, item)))
        for item, about in asked.items()
    )


def _decisions(opened: OpenStudy) -> dict[tuple[str, str], Adjudication]:
    with opened.database.reading() as connection:
        rows = connection.execute(select(adjudication).where(adjudication.c.study_id == opened.study.id))
        return {(r.case_key, r.item): Adjudication(r.value, r.note, r.decided_at) for r in rows}


def decide(opened: OpenStudy, case_key: str, number: int, value: str, note: str) -> None:
    """Keep a decision on the question at a position of a case, from 0; a later one replaces it."""
    overview = next((one for one in case_overviews(opened) if one.case.key == case_key), None)
    if overview is None or not 0 <= number < len(overview.questions):
        raise UsageError("there is no such question")
    question = overview.questions[number]
    if value not in question.choices:
        raise UsageError("choose one of the answers")
    note = "".join(c for c in " ".join(note.split()) if c.isprintable())[:LONGEST_NOTE]
    row = {"value": value, "note": note, "decided_at": time.time()}
    with opened.database.writing() as connection:
        keys = {"study_id": opened.study.id, "case_key": case_key, "item": question.item}
        statement = opened.database.upsert(adjudication).values(**keys, **row)
        connection.execute(statement.on_conflict_do_update(index_elements=list(keys), set_=row))


def decisions_csv(opened: OpenStudy) -> str:
    """One row per decision, with how often each answer was given."""
    rows = []
    for overview in case_overviews(opened):
        for question in overview.questions:
            if question.decision is not None:
                values = list(question.answers.values())
                counts = ", ".join(f"{value}: {values.count(value)}" for value in question.choices if value in values)
                about = (overview.case.key, question.name, question.text, question.decision.value, counts)
                rows.append((*about, question.decision.note, moment_text(question.decision.decided_at)))
    return csv_text(("case", "question", "text", "decision", "answers", "note", "decided_at"), rows)
