"""A practice case; its answers are not stored."""

from __future__ import annotations

from cogstage.study.blind import BlindForm
from cogstage.study.placement import Placement
from cogstage.study.protocol import RationaleSet, ShownRationale, Study, StudyCase

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
