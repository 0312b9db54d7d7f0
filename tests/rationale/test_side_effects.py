"""Which pairs count as indications when the effects of a drug are ranked."""

from __future__ import annotations

import numpy as np
import pytest

from cogstage.rationale.side_effects import is_indication
from cogstage.rationale.verdict import Profiles

RELATIONS = ("may_treat", "may_prevent", "causes")


@pytest.mark.parametrize(
    ("logits", "known", "expected"),
    [
        ((2.0, -1.0, 1.0), (), True),  # the predicted use is likelier
        ((1.0, -1.0, 2.0), (), False),  # the predicted effect is likelier
        ((1.0, 3.0, 2.0), (), False),  # likelier than the use, though a third relation contradicts it
        ((-1.0, -1.0, 3.0), ("may_treat",), True),  # a known use
        ((3.0, -1.0, -1.0), ("causes",), False),  # a known effect is never left out
        ((3.0, -1.0, 1.0), ("may_treat", "causes"), False),
        ((-1.0, -1.0, -2.0), (), False),  # neither
    ],
)
def test_a_known_or_likelier_effect_is_no_indication(
    logits: tuple[float, ...], known: tuple[str, ...], expected: bool
) -> None:
    flags = np.array([[name in known for name in RELATIONS]])
    every, none = np.ones((1, 3), bool), np.zeros((1, 3), bool)
    profiles = Profiles.judge(RELATIONS, np.array([logits]), flags, every, np.array([True]), none)
    assert is_indication(profiles).tolist() == [expected]
