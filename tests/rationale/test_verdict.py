"""The verdict on a pair, against a literal version that judges one pair at a time."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cogstage.rationale.verdict import Verdict, verdicts
from cogstage.relations import RELATIONS, RelationIndex

OPPOSITE = RelationIndex(RELATIONS).opposite[:5, :5]


def literal(logit, known, applies, wrong):
    """One pair, relation by relation, in plain Python."""
    known = [k and not w for k, w in zip(known, wrong, strict=True)]
    strength = {}
    for r in range(len(logit)):
        if wrong[r] or not (applies[r] or known[r]):
            strength[r] = -math.inf
        else:
            strength[r] = math.inf if known[r] else logit[r]
    said, called = {}, []
    for r in sorted(strength, key=lambda r: (-strength[r], r)):
        if not applies[r] and not known[r]:
            said[r] = ("DOES_NOT_APPLY", -1)
            continue
        if strength[r] < 0:
            said[r] = ("UNLIKELY", -1)
            continue
        opposites = [other for other in called if OPPOSITE[r, other]]
        if opposites and not known[r]:
            said[r] = ("CONTRADICTED", opposites[0])
            continue
        said[r] = ("KNOWN_FACT" if known[r] else "LIKELY", -1)
        called.append(r)
    return [said[r] for r in range(len(logit))]


PAIR = st.tuples(
    st.lists(st.sampled_from([-2.0, -0.1, 0.0, 0.3, 1.0, 4.0]), min_size=5, max_size=5),
    *(st.lists(st.booleans(), min_size=5, max_size=5) for _ in range(3)),
)


@given(st.lists(PAIR, min_size=1, max_size=8))
def test_agrees_with_the_literal_version(pairs):
    logit, known, applies, wrong = (np.array([pair[part] for pair in pairs]) for part in range(4))
    judged = verdicts(logit, known, applies, OPPOSITE, wrong)
    for row, pair in enumerate(pairs):
        said = [(Verdict(c).name, int(a)) for c, a in zip(judged.code[row], judged.against[row], strict=True)]
        assert said == literal(*pair)


@given(PAIR)
def test_two_opposites_are_never_both_called_likely(pair):
    logit, known, applies, wrong = (np.array([part]) for part in pair)
    code = verdicts(logit, known, applies, OPPOSITE, wrong).code[0]
    likely = np.flatnonzero(code == Verdict.LIKELY)
    assert not OPPOSITE[np.ix_(likely, likely)].any()


def test_a_known_fact_is_never_called_unlikely():
    logit = np.array([[-5.0, -5.0, -5.0, -5.0, -5.0]])
    known = np.ones((1, 5), bool)
    code = verdicts(logit, known, np.zeros((1, 5), bool), OPPOSITE).code
    assert (code == Verdict.KNOWN_FACT).all()


def test_a_known_fact_contradicts_a_likelier_opposite():
    treat, cause = RELATIONS.index("may_treat"), RELATIONS.index("causes")
    logit, known = np.full((1, 5), -1.0), np.zeros((1, 5), bool)
    logit[0, treat], logit[0, cause], known[0, treat] = -3.0, 4.0, True
    judged = verdicts(logit, known, np.ones((1, 5), bool), OPPOSITE)
    assert judged.code[0, cause] == Verdict.CONTRADICTED
    assert judged.against[0, cause] == treat
