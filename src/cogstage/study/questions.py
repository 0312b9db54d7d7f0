"""Questions of one's own, from a table: choices, scales and free text, conditions, and attention checks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cogstage.errors import UsageError
from cogstage.tables import Row, read_rows

NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
TYPES = ("choice", "scale", "text")
EARLIER = ("verdict", "confidence", "trust")  # questions of the protocol that a condition may name
CHECK_EVERY = 6  # an attention check stands beside every sixth case, from the third on
CHECK_FIRST = 3
MOST = 30


@dataclass(frozen=True)
class Question:
    """A question that stands beside every case, or an attention check beside some."""

    name: str
    type: str
    text: str
    choices: tuple[tuple[str, str], ...] = ()  # value, label
    shown_if: tuple[str, ...] = ()  # name of an earlier question, then the values that show this one
    expected: str = ""  # the answer that an attention check asks for

    @property
    def item(self) -> str:
        """The name under which answers are stored."""
        return f"ask:{self.name}"

    @property
    def is_check(self) -> bool:
        """Whether this is an attention check."""
        return bool(self.expected)

    def stands_at(self, position: int) -> bool:
        """Whether the question belongs to the case that a reviewer meets at a position."""
        return not self.is_check or (position >= CHECK_FIRST and (position - CHECK_FIRST) % CHECK_EVERY == 0)

    def applies(self, stored: Mapping[str, str]) -> bool:
        """Whether the earlier answers say that the question is asked."""
        if not self.shown_if:
            return True
        name, *values = self.shown_if
        return stored.get(name if name in EARLIER else f"ask:{name}") in values


def read_questions(path: Path) -> tuple[Question, ...]:
    """The questions of a table with the columns ``name``, ``type``, ``text`` and, where needed, further ones.

    ``choices`` reads "0, never | 1, often". ``shown_if`` reads "name=value" or "name=value|value" and names an earlier
    question. ``expected`` is the value that makes a choice an attention check.
    """
    questions: list[Question] = []
    for row in read_rows(path, ("name", "type", "text"), ("choices", "shown_if", "expected")):
        questions.append(_question(row, {question.name: question for question in questions}))
    if len(questions) > MOST:
        raise UsageError(f"{path} has {len(questions)} questions; at most {MOST} can stand beside a case")
    return tuple(questions)


def _question(row: Row, earlier: Mapping[str, Question]) -> Question:
    name, kind, text = (str(row[column] or "").strip() for column in ("name", "type", "text"))
    if not NAME.fullmatch(name) or name in earlier:
        raise UsageError(f"{row.where('name')}: {name[:40]!r} must be a new name of small letters, digits and _")
    if kind not in TYPES or not text:
        raise UsageError(f"{row.where('type')}: give a text and one of the types {', '.join(TYPES)}")
    choices = _choices(row)
    if (kind == "text") == bool(choices):
        raise UsageError(f"{row.where('choices')}: a choice or scale needs at least two choices, a text none")
    values = [value for value, _ in choices]
    expected = str(row["expected"] or "").strip()
    if expected and expected not in values:
        raise UsageError(f"{row.where('expected')}: {expected[:40]!r} is not among the choices")
    return Question(name, kind, text, choices, _condition(row, earlier), expected)


def _choices(row: Row) -> tuple[tuple[str, str], ...]:
    text = str(row["choices"] or "").strip()
    if not text:
        return ()
    pairs = []
    for part in text.split("|"):
        value, separator, label = (piece.strip() for piece in part.partition(","))
        pairs.append((value, label if separator else value))
    values = [value for value, _ in pairs]
    if len(set(values)) < max(2, len(values)) or not all(0 < len(value) <= 40 for value in values):
        raise UsageError(f"{row.where('choices')}: write two or more different choices as value, label | value, label")
    return tuple(pairs)


def _condition(row: Row, earlier: Mapping[str, Question]) -> tuple[str, ...]:
    text = str(row["shown_if"] or "").strip()
    if not text:
        return ()
    name, _, values = (piece.strip() for piece in text.partition("="))
    named = tuple(value.strip() for value in values.split("|") if value.strip())
    possible = {value for value, _ in earlier[name].choices} if name in earlier else None
    if not named or (possible is None and name not in EARLIER) or (possible is not None and not possible >= set(named)):
        raise UsageError(f"{row.where('shown_if')}: write name=value with an earlier question and one of its values")
    return (name, *named)
