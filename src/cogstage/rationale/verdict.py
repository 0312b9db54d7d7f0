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

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cache

import numpy as np

from cogstage.rationale.evidence import ProfileEntry, VerdictWords
from cogstage.relations import RelationIndex


class Verdict(IntEnum):
    """What is said of one relation of a pair."""

    KNOWN_FACT = 0
    LIKELY = 1
    CONTRADICTED = 2
    UNLIKELY = 3
    DOES_NOT_APPLY = 4


WORDS: tuple[VerdictWords, ...] = ("known fact", "likely", "contradicted", "unlikely", "does not apply")  # by number


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
        contradicting = np.full(pairs, -1, np.int64)
        for earlier in range(step - 1, -1, -1):
            other = accepted[:, earlier]
            contradicting = np.where((other >= 0) & opposite[relation, other], other, contradicting)
        is_known = known[rows, relation]
        contradicted = stands & ~is_known & (contradicting >= 0)
        code[rows[contradicted], relation[contradicted]] = Verdict.CONTRADICTED
        against[rows[contradicted], relation[contradicted]] = contradicting[contradicted]
        called = stands & ~contradicted
        code[rows[called], relation[called]] = np.where(is_known[called], Verdict.KNOWN_FACT, Verdict.LIKELY)
        accepted[called, step] = relation[called]
    return Verdicts(code, against)


@dataclass(frozen=True)
class Profiles:
    """All Q relations of B pairs, and the verdict on each."""

    relations: tuple[str, ...]  # (Q,)
    logit: np.ndarray  # float64 (B, Q), calibrated, at the base rate that is asked for
    known: np.ndarray  # bool (B, Q)
    fits: np.ndarray  # bool (B, Q), whether the relation joins terms of these types
    typed: np.ndarray  # bool (B,), whether both terms have a type
    wrong: np.ndarray  # bool (B, Q), marked wrong by a reader
    code: np.ndarray  # int8 (B, Q), values of Verdict
    against: np.ndarray  # int64 (B, Q), the relation that contradicts, -1 for none

    @classmethod
    def judge(
        cls,
        relations: Sequence[str],
        logit: np.ndarray,
        known: np.ndarray,
        fits: np.ndarray,
        typed: np.ndarray,
        wrong: np.ndarray,
    ) -> Profiles:
        """Judge all relations of pairs."""
        names = tuple(relations)
        judged = verdicts(logit, known, fits, _opposite(names), wrong)
        return cls(names, logit, known & ~wrong, fits, typed, wrong, judged.code, judged.against)

    def verdict(self, relation: str) -> np.ndarray:
        """The codes of one relation. int8 (B,)."""
        codes: np.ndarray = self.code[:, self.relations.index(relation)]
        return codes

    def holds(self, relation: str) -> np.ndarray:
        """Whether one relation is a known fact or likely. bool (B,)."""
        holds: np.ndarray = self.verdict(relation) <= Verdict.LIKELY
        return holds

    def contradicted(self, relation: str) -> np.ndarray:
        """Whether one relation is contradicted. bool (B,)."""
        contradicted: np.ndarray = self.verdict(relation) == Verdict.CONTRADICTED
        return contradicted

    def likeliest(self) -> list[str]:
        """The relation of each pair with the strongest verdict: known facts first, then by log-odds."""
        return [self.relations[first] for first in self._order()[:, 0].tolist()]

    def _order(self) -> np.ndarray:
        order: np.ndarray = np.lexsort((-self.logit, self.code), axis=1)
        return order

    def entries(self) -> list[tuple[ProfileEntry, ...]]:
        """The profile of each pair as records, the strongest verdict first."""
        names, size = self.relations, np.exp(-np.abs(self.logit))
        probability = np.where(self.logit >= 0, 1.0, size) / (1.0 + size)
        columns = (self.logit, probability, self.known, self.fits, self.wrong, self.code, self.against)
        rows = zip(*(column.tolist() for column in columns), self.typed.tolist(), self._order().tolist(), strict=True)
        return [
            tuple(
                ProfileEntry(
                    names[k],
                    logit[k],
                    probability[k],
                    known[k],
                    fits[k] if typed else None,
                    wrong[k],
                    WORDS[code[k]],
                    None if against[k] < 0 else names[against[k]],
                )
                for k in order
            )
            for logit, probability, known, fits, wrong, code, against, typed, order in rows
        ]


def judge_again(profile: Sequence[ProfileEntry], shift: float) -> tuple[ProfileEntry, ...]:
    """The profile of one pair with all log-odds shifted, as another base rate does, and judged anew."""
    if not profile:
        return ()
    logit, known, fits, wrong = (
        np.array([values])
        for values in zip(
            *((e.logit + shift, e.known_fact, e.types_fit is not False, e.marked_wrong) for e in profile), strict=True
        )
    )
    typed = np.array([profile[0].types_fit is not None])
    names = [entry.relation for entry in profile]
    return Profiles.judge(names, logit, known, fits, typed, wrong).entries()[0]


@cache
def _opposite(names: tuple[str, ...]) -> np.ndarray:
    """Which relations contradict which. bool (Q, Q)."""
    return RelationIndex(names).opposite[: len(names), : len(names)]


def sigmoid(logit: float) -> float:
    """σ of one number, without overflow."""
    small = math.exp(-abs(logit))
    return 1.0 / (1.0 + small) if logit >= 0 else small / (1.0 + small)


def log_odds(rate: float) -> float:
    """The log-odds of a probability."""
    return math.log(rate / (1.0 - rate))
