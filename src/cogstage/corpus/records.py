"""What every reader yields: a document with its text, or a coded record without one; identifiers and dates."""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass, field
from typing import Any

_PARTIAL = re.compile(r"(\d{4})(?:-(\d{1,2}))?")
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})")
_LEADING_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?=[T ]|$)")
_OTHER_DATE = re.compile(r"\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}(?: .*)?")
_WHOLE = re.compile(r"([+-]?\d+)\.0*")
_LONG_WHOLE = re.compile(r"(\d{4,})\.0+")
_MISSING = {"", "null", "nan", "none", "nat", "<na>", "\\n"}  # how databases, pandas and R write missing values
_NO_PATIENT_ID = _MISSING | {"na", "n/a"}
CODED_RECORD, PATIENT_NOTE = "coded records of patients", "notes of patients"  # kinds of documents
NO_PATIENT = "documents without a patient"


@dataclass(slots=True)
class Document:
    """A document (``text``), a coded record (``codes`` alone), or a document that came with its annotations (both).

    ``doc_id`` is unique within ``scope``: a file, or "" where identifiers hold across all files. Coded records that
    are ``rows`` of one document share its ``doc_id`` and may come apart.
    """

    doc_id: str
    text: str = ""
    patient_id: str | None = None
    date: datetime.date | None = None
    codes: tuple[str, ...] = ()
    where: str = ""  # file and line, for messages
    visit_id: str | None = None
    rows: bool = False
    scope: str = field(default="", compare=False)  # set by the reader

    @property
    def kind(self) -> str:
        """Whether it is a coded record or a note of a patient, or has no patient."""
        return NO_PATIENT if self.patient_id is None else PATIENT_NOTE if self.text else CODED_RECORD


def as_id(value: Any) -> str:
    """An identifier as text, "" for nothing; 12.0, as pandas writes a 12 in a column with gaps, is 12.

    Raises ValueError for what cannot be one (a list, an object).
    """
    if value is None:
        return ""
    if isinstance(value, str):
        text = value.strip()
        if text.isdecimal():
            return text
        if text.lower() in _MISSING:
            return ""
        whole = _WHOLE.fullmatch(text)
        return whole[1] if whole else text
    return _number_as_id(value)


def as_patient(value: Any) -> str | None:
    """As :func:`as_id`; None if there is no patient."""
    text = as_id(value)
    return text if text.isdecimal() or text.lower() not in _NO_PATIENT_ID else None


def as_code(value: Any) -> str:
    """A code as text, "" for nothing and for concept 0 ("no matching concept").

    250.0 is a code of its own in ICD-9, so a code loses its ".0" only behind four digits or more.
    """
    if isinstance(value, str):
        text = value.strip()
        if text.lower() in _MISSING or _is_zero(text):
            return ""
        whole = _LONG_WHOLE.fullmatch(text) if "." in text else None
        return whole[1] if whole else text
    text = _number_as_id(value)
    return "" if text == "0" else text


def as_concept(value: Any) -> str:
    """A concept identifier of OMOP, which is a whole number; "" for nothing and for concept 0."""
    text = as_id(value)
    return "" if _is_zero(text) else text


def _is_zero(text: str) -> bool:
    return text.startswith(("0", "+0", "-0")) and not text.strip("+-0.")


def _number_as_id(value: Any) -> str:
    if value is None or value != value:  # NaN is not itself
        return ""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, (dict, list, tuple, set)):
        raise ValueError(f"expected an identifier, not {type(value).__name__}")
    return str(value).strip()


def parse_date(value: object, format: str | None = None) -> datetime.date | None:
    """A day from ``2011-08-11``, a time stamp, ``20110811``, a month or a year (their first day); None if empty.

    ``format`` (like ``%d/%m/%Y``) says how dates are written otherwise. Raises ValueError where the value is no date.
    """
    if value is None or value != value:
        return None
    if isinstance(value, datetime.datetime):
        return value.date()
    if isinstance(value, datetime.date):
        return value
    text = str(value).strip()
    if format is None and _LEADING_DAY.match(text):
        return datetime.date.fromisoformat(text[:10])
    if text.lower() in _MISSING:
        return None
    if format is not None:
        try:
            return datetime.datetime.strptime(text, format).date()
        except ValueError:
            raise ValueError(f"{text[:40]!r} is not a date in the format {format}") from None
    if text.endswith(".0"):  # a year or a compact day in a column of floats
        text = text[:-2]
    if compact := _COMPACT.fullmatch(text):
        return datetime.date(*map(int, compact.groups()))
    if partial := _PARTIAL.fullmatch(text):
        return datetime.date(int(partial[1]), int(partial[2] or 1), 1)
    if _OTHER_DATE.fullmatch(text):
        raise ValueError(f"{text!r}: is this day or month first? Set `date_format`, such as %d/%m/%Y or %m/%d/%Y")
    raise ValueError(f"{text[:40]!r} is not a date (expected a date such as 2011-08-11)")
