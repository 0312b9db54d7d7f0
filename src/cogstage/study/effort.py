"""Duration of a study, and detection of answers that were given too fast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median

from cogstage.study.blind import BlindForm

PER_CASE, PER_REASON = 25.0, 8.0  # seconds that careful reviewers take, for the first estimate
OWN_PACE = 3  # complete cases from which a reviewer's own pace is the estimate
HASTY = 1.0  # seconds per answer: nobody reads a statement and judges it in less
HASTY_SHARE = 0.25  # of a reviewer's cases that may be hasty before the reviewer is flagged


def expected_seconds(form: BlindForm) -> float:
    """Time to read a case and answer its questions, before anything is known of the reviewer."""
    return PER_CASE + PER_REASON * len({triple for entry in form.sets for triple in entry.rationales})


def minutes_left(forms: Sequence[BlindForm], complete: Sequence[bool], seconds: Sequence[float]) -> int:
    """Minutes that the open cases will take, rounded up to fives above ten: at the reviewer's own pace once known."""
    own = [looked for looked, done in zip(seconds, complete, strict=True) if done and looked > 0]
    expected = [expected_seconds(form) for form, done in zip(forms, complete, strict=True) if not done]
    total = median(own) * len(expected) if len(own) >= OWN_PACE else sum(expected)
    minutes = math.ceil(total / 60)
    return minutes if minutes <= 10 else 5 * math.ceil(minutes / 5)


def is_hasty(seconds: float, answers: int) -> bool:
    """Whether a case was answered faster than it can be read. Without a measured time the answer is no."""
    return 0 < seconds < HASTY * answers


def is_hasty_reviewer(hasty_cases: int, cases: int) -> bool:
    """Whether so many cases were hasty that the reviewer is flagged."""
    return cases > 0 and hasty_cases > HASTY_SHARE * cases
