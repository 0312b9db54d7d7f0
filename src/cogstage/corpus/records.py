"""What every reader yields: a document with its text, or a coded record without one."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass

_PARTIAL = re.compile(r"(\d{4})(?:-(\d{1,2}))?")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})")
_LEADING_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?=[T ]|$)")


@dataclass(frozen=True, slots=True)
class Document:
    """A document (``text``), a coded record (``codes`` alone), or a document that came with its annotations (both)."""

    doc_id: str
    text: str = ""
    patient_id: str | None = None
    date: datetime.date | None = None
    codes: tuple[str, ...] = ()
    where: str = ""  # file and line, for messages


def parse_date(value: object) -> datetime.date | None:
    """A day from ``2011-08-11``, a time stamp, ``20110811``, a month or a year (their first day); None if empty.

    Raises ValueError where the value is no date.
    """
    if value is None:
        return None
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    text = str(value).strip()
    if not text:
        return None
    if _LEADING_DAY.match(text):
        return datetime.date.fromisoformat(text[:10])
    if compact := _COMPACT.fullmatch(text):
        return datetime.date(*map(int, compact.groups()))
    if partial := _PARTIAL.fullmatch(text):
        return datetime.date(int(partial[1]), int(partial[2] or 1), 1)
    raise ValueError(f"{text[:40]!r} is not a date (expected like 2011-08-11)")
