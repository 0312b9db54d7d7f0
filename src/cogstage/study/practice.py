"""Practice cases: one for everybody, or the administrator's own with known answers. Answers are not stored."""

from __future__ import annotations

from pathlib import Path

from cogstage.errors import UsageError
from cogstage.study.blind import BlindForm
from cogstage.study.draw import forward_reasons
from cogstage.study.placement import Placement
from cogstage.study.protocol import RationaleSet, ShownRationale, Study, StudyCase
from cogstage.study.sources import REASON_COLUMNS, Pair, read_reasons
from cogstage.tables import read_rows

_SHARED = ShownRationale("ibuprofen", "may_treat", "migraine")
_CASE = StudyCase(
    key="practice",
    head="aspirin",
    relation="may_treat",
    tail="headache",
    label=1,
    outcome="true_positive",
    sets=(
        RationaleSet(
            "first",
            (
                _SHARED,
                ShownRationale("aspirin", "may_treat", "pain"),
                ShownRationale("aspirin", "causes", "stomach bleeding", against=True),
            ),
        ),
        RationaleSet(
            "second",
            (
                ShownRationale("aspirin", "may_prevent", "stroke"),
                _SHARED,
                ShownRationale("tablet", "causes", "blurred vision", against=True),
            ),
        ),
    ),
)


def practice_form(study: Study) -> BlindForm:
    """The practice case, with the questions of the study."""
    order = ("first",) if study.is_crossover else ("first", "second")
    return BlindForm(study, _CASE, Placement(0, _CASE.key, order))


def gold_form(study: Study, number: int) -> BlindForm | None:
    """The practice case with a known answer at a position, from 1; None beyond the last."""
    if not 1 <= number <= len(study.practice):
        return None
    case = study.practice[number - 1]
    return BlindForm(study, case, Placement(0, case.key, (case.sets[0].source,)))


def read_practice(path: Path, per_set: int) -> tuple[StudyCase, ...]:
    """Practice cases from a table of reasons that also has the columns ``label`` and ``feedback``."""
    source = read_reasons("practice", path)
    feedback: dict[Pair, str] = {}
    for row in read_rows(path, (*REASON_COLUMNS, "feedback")):
        feedback.setdefault((str(row["head"]), str(row["relation"]), str(row["tail"])), str(row["feedback"]).strip())
    cases = []
    for number, (pair, explained) in enumerate(source.predictions.items(), 1):
        if pair not in source.labels:
            raise UsageError(f"{path}: practice needs the `label` of {' / '.join(pair)}: 1 if it holds, otherwise 0")
        label, predicted = source.labels[pair], explained.probability >= 0.5
        outcome = f"{'true' if predicted == bool(label) else 'false'}_{'positive' if predicted else 'negative'}"
        shown = RationaleSet("practice", forward_reasons(explained)[:per_set])
        ends = explained.head, explained.relation, explained.tail
        cases.append(StudyCase(f"p{number:03}", *ends, label, outcome, (shown,), feedback=feedback[pair]))
    return tuple(cases)
