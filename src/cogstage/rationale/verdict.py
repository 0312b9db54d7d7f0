"""The verdict on a pair: what is said of each of its relations, given all of them.

    known fact      the triple is a training fact, or a reader called it right
    likely          log-odds of at least 0
    contradicted    log-odds of at least 0, but an opposite relation is a known fact or likelier
    unlikely        log-odds below 0, or a reader called the triple wrong
    does not apply  the relation does not join terms of these types

Relations are judged in the order of their strength, known facts first. A relation is contradicted by the strongest
opposite relation that was called known or likely before it, so at most one of two opposites is called likely. Two
known facts never contradict each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np


class Verdict(IntEnum):
    """What is said of one relation of a pair."""

    KNOWN_FACT = 0
    LIKELY = 1
    CONTRADICTED = 2
    UNLIKELY = 3
    DOES_NOT_APPLY = 4

    @property
    def words(self) -> str:
        """The verdict as it is printed: "known fact", "likely", ..."""
        return self.name.lower().replace("_", " ")


@dataclass(frozen=True)
class Verdicts:
    """The verdicts on all Q relations of B pairs."""

    code: np.ndarray  # int8 (B, Q), values of Verdict
    against: np.ndarray  # int64 (B, Q), the relation that contradicts, -1 for none


def verdicts(
    logit: np.ndarray,
    known: np.ndarray,
    applies: np.ndarray,
    opposite: np.ndarray,
    wrong: np.ndarray | None = None,
) -> Verdicts:
    """Judge all relations of pairs.

    ``logit``, ``known``, ``applies`` and ``wrong`` (called wrong by a reader) are (B, Q), ``opposite`` is (Q, Q).
    Log-odds are calibrated and at the base rate that is asked for.
    """
    known = known if wrong is None else known & ~wrong
    strength = np.where(known, np.inf, logit)
    if wrong is not None:
        strength = np.where(wrong, -np.inf, strength)
    strength = np.where(applies | known, strength, -np.inf)
    pairs, count = strength.shape
    code = np.full((pairs, count), Verdict.UNLIKELY, np.int8)
    code[~applies & ~known] = Verdict.DOES_NOT_APPLY
    against = np.full((pairs, count), -1, np.int64)
    order = np.argsort(-strength, axis=1, kind="stable")
    accepted = np.full((pairs, count), -1, np.int64)  # relations called known or likely so far, strongest first
    rows = np.arange(pairs)
    for step in range(count):
        relation = order[:, step]
        stands = strength[rows, relation] >= 0
        found = np.full(pairs, -1, np.int64)
        for earlier in range(step - 1, -1, -1):
            other = accepted[:, earlier]
            found = np.where((other >= 0) & opposite[relation, other], other, found)
        is_known = known[rows, relation]
        contradicted = stands & ~is_known & (found >= 0)
        code[rows[contradicted], relation[contradicted]] = Verdict.CONTRADICTED
        against[rows[contradicted], relation[contradicted]] = found[contradicted]
        called = stands & ~contradicted
        code[rows[called], relation[called]] = np.where(is_known[called], Verdict.KNOWN_FACT, Verdict.LIKELY)
        accepted[called, step] = relation[called]
    return Verdicts(code, against)
