"""The raw answers as CSV, with the sets unblinded: for the administrator."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timezone
from string import ascii_uppercase

from cogstage.reporting import csv_text
from cogstage.study.blind import CANNOT_JUDGE, CONFIDENCE, FAMILIARITY, SCORES, TRUST, VERDICT
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import Study, StudyCase

COLUMNS = (
    "reviewer",
    "case",
    "repeat_of",
    "position",
    "head",
    "relation",
    "tail",
    "label",
    "outcome",
    "arm",
    "question",
    "source",
    "shown_as",
    "rationale_number",
    "side",
    "rationale",
    "answer",
    "answered_at",
)


def reviewer_names(opened: OpenStudy, pseudonyms: bool) -> dict[str, str]:
    """What reviewers are called in files, by id."""
    return {p.id: f"R{p.number}" if pseudonyms else p.name for p in opened.access.reviewers()}


def answers_csv(opened: OpenStudy, pseudonyms: bool = True) -> str:
    """One row per answer."""
    names = reviewer_names(opened, pseudonyms)
    placed = {
        (reviewer, placement.case_key): placement
        for reviewer in names
        for placement in opened.answers.placements(reviewer)
    }
    cases = {case.key: case for case in opened.study.cases}
    rows = []
    for entry in opened.answers.all():
        case, placement = cases[entry.case_key], placed[entry.reviewer_id, entry.case_key]
        question, source, number, side, rationale = _item(entry.item, case)
        rows.append(
            (
                names[entry.reviewer_id],
                case.key,
                case.repeat_of or "",
                placement.position,
                case.head,
                case.relation,
                case.tail,
                case.label,
                case.outcome,
                placement.arm.replace("reasons", "rationales"),
                question,
                source,
                ascii_uppercase[placement.set_order.index(source)] if source else "",
                number,
                side,
                rationale,
                entry.value,
                datetime.fromtimestamp(entry.answered_at, timezone.utc).isoformat(timespec="milliseconds"),
            )
        )
    return csv_text(COLUMNS, rows)


def times_csv(opened: OpenStudy, pseudonyms: bool = True) -> str:
    """Seconds that each reviewer looked at each case."""
    seconds = opened.answers.seconds()
    rows = [
        (name, placement.case_key, placement.position, f"{seconds[reviewer, placement.case_key]:.1f}")
        for reviewer, name in reviewer_names(opened, pseudonyms).items()
        for placement in opened.answers.placements(reviewer)
        if (reviewer, placement.case_key) in seconds
    ]
    return csv_text(("reviewer", "case", "position", "seconds"), rows)


def codebook_csv(study: Study) -> str:
    """What each question of the exported answers asks, and what its values mean."""
    built_in: list[tuple[str, str, str, Mapping[str, str]]] = [
        ("familiar_head", "choice", "Are you familiar with the first term?", FAMILIARITY),
        ("familiar_tail", "choice", "Are you familiar with the second term?", FAMILIARITY),
    ]
    if study.is_crossover:
        built_in += [("verdict", "choice", "Does the relation hold?", VERDICT)]
        built_in += [("confidence", "scale", "How sure are you?", CONFIDENCE)]
    else:
        ranks = {str(rank): f"rank {rank}" for rank in range(1, len(study.sources) + 1)}
        built_in += [("score", "scale", "How much does this reason help?", SCORES)]
        built_in += [("rank", "scale", "Rank of the set; sets may share one", {**ranks, CANNOT_JUDGE: "cannot judge"})]
    if study.asks_trust:
        built_in += [("trust", "scale", "How much do you trust the prediction?", TRUST)]
    rows = [(*entry[:3], _values(entry[3]), "", "") for entry in [*built_in, ("comment", "text", "Comment", {})]]
    for question in study.questions:
        name, *values = question.shown_if or ("",)
        condition = f"{name}={'|'.join(values)}" if name else ""
        of_question = (question.name, question.type, question.text, _values(dict(question.choices)))
        rows.append((*of_question, condition, question.expected))
    return csv_text(("question", "type", "text", "values", "shown_if", "expected"), rows)


def _values(choices: Mapping[str, str]) -> str:
    return " | ".join(f"{value}, {label}" for value, label in choices.items())


def reminders_csv(opened: OpenStudy) -> str:
    """A table for mail merge: how far each reviewer is. Links are stored as hashes and are not in it."""
    rows = []
    for person in opened.access.reviewers():
        progress = opened.answers.progress(person.id)
        done = "yes" if progress.done == progress.total else "no"
        minutes, last = opened.answers.minutes_left(person.id), progress.last_answer_at
        figures = (progress.done, progress.total, progress.total - progress.done, minutes)
        rows.append((person.name, person.state(), done, *figures, moment_text(last), moment_text(person.expires_at)))
    columns = ("name", "link", "finished", "complete", "total", "open", "minutes_left", "last_answer", "link_expires")
    return csv_text(columns, rows)


def moment_text(seconds: float | None) -> str:
    """A time in ISO form, UTC; nothing for None."""
    return "" if seconds is None else datetime.fromtimestamp(seconds, timezone.utc).isoformat(timespec="minutes")


def _item(item: str, case: StudyCase) -> tuple[str, str, str, str, str]:
    """Question, source, number of the rationale (from 1), its side and its text, behind a stored item."""
    name, _, rest = item.partition(":")
    if name == "ask":
        return rest, "", "", "", ""
    if name == "familiar":
        return f"familiar_{rest}", "", "", "", ""
    if name == "rank":
        return name, rest, "", "", ""
    if name == "score":
        source, _, number = rest.rpartition(":")
        triple = case.set_of(source).rationales[int(number)]
        return name, source, str(int(number) + 1), "against" if triple.against else "for", triple.text
    return name, "", "", "", ""
