"""The raw answers as CSV, with the sets unblinded: for the administrator."""

from __future__ import annotations

from datetime import datetime, timezone
from string import ascii_uppercase

from cogstage.reporting import csv_text
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import StudyCase

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


def _item(item: str, case: StudyCase) -> tuple[str, str, str, str, str]:
    """Question, source, number of the rationale (from 1), its side and its text, behind a stored item."""
    name, _, rest = item.partition(":")
    if name == "familiar":
        return f"familiar_{rest}", "", "", "", ""
    if name == "rank":
        return name, rest, "", "", ""
    if name == "score":
        source, _, number = rest.rpartition(":")
        triple = case.set_of(source).rationales[int(number)]
        return name, source, str(int(number) + 1), "against" if triple.against else "for", triple.text
    return name, "", "", "", ""
