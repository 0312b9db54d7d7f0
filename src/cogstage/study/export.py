"""The raw answers as CSV, with the sets unblinded: for the administrator."""

from __future__ import annotations

import csv
import io
from datetime import datetime, timezone
from string import ascii_uppercase

from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import Case

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
    "rationale",
    "answer",
    "answered_at",
)


def answers_csv(opened: OpenStudy) -> str:
    """One row an answer."""
    names = {person.id: person.name for person in opened.access.reviewers()}
    placed = {
        (reviewer, placement.case_key): placement
        for reviewer in names
        for placement in opened.answers.placements(reviewer)
    }
    cases = {case.key: case for case in opened.study.cases}
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(COLUMNS)
    for entry in opened.answers.all():
        case, placement = cases[entry.case_key], placed[entry.reviewer_id, entry.case_key]
        question, source, number, rationale = _item(entry.item, case)
        shown_as = ascii_uppercase[placement.set_order.index(source)] if source else ""
        table.writerow(
            _safe(value)
            for value in (
                names[entry.reviewer_id],
                case.key,
                case.repeat_of or "",
                str(placement.position),
                case.head,
                case.relation,
                case.tail,
                str(case.label),
                case.outcome,
                "without rationales" if placement.bare else "with rationales",
                question,
                source,
                shown_as,
                number,
                rationale,
                entry.value,
                datetime.fromtimestamp(entry.answered_at, timezone.utc).isoformat(timespec="milliseconds"),
            )
        )
    return out.getvalue()


def times_csv(opened: OpenStudy) -> str:
    """Seconds that each reviewer looked at each case."""
    seconds = opened.answers.seconds()
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("reviewer", "case", "position", "seconds"))
    for person in opened.access.reviewers():
        for placement in opened.answers.placements(person.id):
            if (person.id, placement.case_key) in seconds:
                looked = seconds[person.id, placement.case_key]
                table.writerow((_safe(person.name), placement.case_key, placement.position, f"{looked:.1f}"))
    return out.getvalue()


def _item(item: str, case: Case) -> tuple[str, str, str, str]:
    """Question, source, number of the rationale (from 1) and its text, behind a stored item."""
    name, _, rest = item.partition(":")
    if name == "familiar":
        return f"familiar_{rest}", "", "", ""
    if name == "rank":
        return name, rest, "", ""
    if name == "score":
        source, _, number = rest.rpartition(":")
        return name, source, str(int(number) + 1), case.set_of(source).rationales[int(number)].text
    return name, "", "", ""


def _safe(value: str) -> str:
    """A cell that a spreadsheet does not take for a formula."""
    return "'" + value if value.startswith(("=", "+", "-", "@", "\t", "\r")) else value
