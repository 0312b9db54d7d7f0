"""The order of cases and sets for each reviewer, which cannot be predicted from outside the server.

Every order follows from a secret in the database and the reviewer's number: the administrator can have it checked, a
reviewer who knows the study's seed, its cases and this code cannot.
"""

from __future__ import annotations

import hashlib
import hmac
import random
from dataclasses import dataclass

from cogstage.study.protocol import EVIDENCE, WITH, WITHOUT, Study, StudyCase

ORDERS = (  # of the arms, for six reviewers
    (WITH, WITHOUT, EVIDENCE),
    (WITHOUT, EVIDENCE, WITH),
    (EVIDENCE, WITH, WITHOUT),
    (EVIDENCE, WITHOUT, WITH),
    (WITHOUT, WITH, EVIDENCE),
    (WITH, EVIDENCE, WITHOUT),
)


@dataclass(frozen=True)
class Placement:
    """The position of a case for one reviewer with the order of its sets.

    ``bare`` cases show no reasons, and ``evidence_only`` ones no prediction.
    """

    position: int  # from 1
    case_key: str
    set_order: tuple[str, ...]  # sources in the order shown: Set A, Set B, ...
    bare: bool = False
    evidence_only: bool = False

    @property
    def arm(self) -> str:
        """What is shown beside the pair."""
        return EVIDENCE if self.evidence_only else WITHOUT if self.bare else WITH


def place_cases(study: Study, reviewer_number: int, secret: str) -> tuple[Placement, ...]:
    """The cases of a reviewer in order, from the secret of the study and the number of the reviewer."""
    if study.evidence_arm:
        return _three_arms(study, reviewer_number, secret)
    if study.is_crossover:
        return _crossover(study, reviewer_number, secret)
    return _sets(study, _random(secret, f"reviewer {reviewer_number}"))


def _random(secret: str, purpose: str) -> random.Random:
    return random.Random(hmac.new(secret.encode(), purpose.encode(), hashlib.sha256).hexdigest())


def _sets(study: Study, rng: random.Random) -> tuple[Placement, ...]:
    """Cases in random order with their sets in random order.

    A repeated case is met first in the first half and again in the last part, so that memory helps little. The cases
    without rationales are drawn for each reviewer anew, so that over reviewers each case is judged both ways.
    """
    firsts = [case for case in study.cases if case.repeat_of is None]
    repeats = [case for case in study.cases if case.repeat_of is not None]
    repeated = {case.repeat_of for case in repeats}
    early = [case for case in firsts if case.key in repeated]
    others = [case for case in firsts if case.key not in repeated]
    rng.shuffle(others)
    bare = {case.key for case in others[: study.without_rationales]}
    rng.shuffle(others)
    half = max(0, len(firsts) // 2 - len(early))
    third = min(len(others) - half, len(firsts) // 3)
    blocks = [early + others[:half], others[half : len(others) - third], others[len(others) - third :] + repeats]
    placements: list[Placement] = []
    for block in blocks:
        rng.shuffle(block)
        for case in block:
            order = list(study.sources)
            rng.shuffle(order)
            placements.append(Placement(len(placements) + 1, case.key, tuple(order), case.key in bare))
    return tuple(placements)


def _crossover(study: Study, number: int, secret: str) -> tuple[Placement, ...]:
    """Two periods, one with reasons and one without, with half of the right and of the wrong predictions in each.

    Reviewers are assigned in pairs: what one judges with reasons, the other judges without, with the periods in
    opposite order. So after every second reviewer each pair was judged both ways, and each period held both.
    """
    couple, second = divmod(number - 1, 2)
    shared, own = _random(secret, f"couple {couple}"), _random(secret, f"reviewer {number}")
    one: list[StudyCase] = []
    other: list[StudyCase] = []
    for correct in (True, False):
        stratum = [case for case in study.cases if case.correct == correct]
        shared.shuffle(stratum)
        half = len(stratum) // 2
        one += stratum[:half]
        other += stratum[half:]
    reasons_first = (shared.random() < 0.5) != bool(second)
    with_reasons, without = (other, one) if second else (one, other)
    own.shuffle(with_reasons)
    own.shuffle(without)
    periods = [(case, False) for case in with_reasons], [(case, True) for case in without]
    order = [*periods[0], *periods[1]] if reasons_first else [*periods[1], *periods[0]]
    return tuple(Placement(n, case.key, study.sources, bare) for n, (case, bare) in enumerate(order, 1))


def _three_arms(study: Study, number: int, secret: str) -> tuple[Placement, ...]:
    """Three periods, one for each arm, with a third of the right and of the wrong predictions in each.

    Reviewers are assigned in threes: after every third reviewer each pair was judged in all arms. The periods of six
    reviewers have the six possible orders, so that each arm stands twice in each period.
    """
    triple, within = divmod(number - 1, 3)
    shared, own = _random(secret, f"triple {triple}"), _random(secret, f"reviewer {number}")
    thirds: list[list[StudyCase]] = [[], [], []]
    for correct in (True, False):
        stratum = [case for case in study.cases if case.correct == correct]
        shared.shuffle(stratum)
        for n, part in enumerate(thirds):
            part += stratum[n * len(stratum) // 3 : (n + 1) * len(stratum) // 3]
    placements: list[Placement] = []
    for arm in ORDERS[(number - 1) % 6]:
        cases = thirds[(study.arms.index(arm) + within) % 3]
        own.shuffle(cases)
        for case in cases:
            placed = Placement(len(placements) + 1, case.key, study.sources, arm == WITHOUT, arm == EVIDENCE)
            placements.append(placed)
    return tuple(placements)
