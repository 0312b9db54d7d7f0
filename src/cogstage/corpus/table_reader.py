"""Tables of documents (``doc_id, text``) or of coded records (``patient_id, date, code``), and MIMIC's note table."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from cogstage.corpus.readers import Reader
from cogstage.corpus.records import Document, parse_date
from cogstage.errors import CogstageError
from cogstage.tables import BadRows, Row, column_names, read_rows, table_kind

_LIST_MARKS = re.compile(r"\s*[;|,]\s*")


class TableReader(Reader):
    """Documents ``doc_id, text`` (optional ``patient_id, date, codes``), or coded records ``patient_id, date, code``
    (optional ``doc_id, name, type``; neighbouring rows with the same ``doc_id`` are one record).

    ``codes`` is a list, or text separated by ``;``, ``|``, commas or spaces.
    """

    renames: ClassVar[dict[str, str]] = {}

    def __init__(self, files: Sequence[Path], bad: BadRows) -> None:
        super().__init__(files, bad)

    def _read(self, path: Path) -> Iterator[Document]:
        columns = {self.renames.get(name, name) for name in column_names(path)}
        if "text" in columns or ("doc_id" in columns and "codes" in columns):
            return self._documents(path, with_codes="codes" in columns)
        if "code" in columns:
            return self._records(path)
        if not columns and table_kind(path) == "json":  # no line could be read: say why
            return self._documents(path, with_codes=False)
        there = ", ".join(sorted(columns)) or "none"
        raise CogstageError(
            f"{path}:1: no column text (documents: doc_id, text) and no column code "
            f"(coded records: patient_id, date, code); the columns are {there}"
        )

    def _rows(self, path: Path, required: list[str], optional: list[str]) -> Iterator[Row]:
        return read_rows(path, required, optional, self.bad, self.renames, self.meter)

    def _documents(self, path: Path, with_codes: bool) -> Iterator[Document]:
        required, optional = ["doc_id"], ["patient_id", "date", "iserror"]
        (optional if with_codes else required).append("text")
        optional.append("codes")
        for row in self._rows(path, required, optional):
            if row["text"] is None and row["codes"] is None:
                self.bad.report(f"{row.where('text')}: no value")
                continue
            if as_id(row["iserror"]) == "1":  # MIMIC: a note that its author withdrew
                continue
            text = row["text"] or ""
            if not isinstance(text, str):
                self.bad.report(f"{row.where('text')}: not a text but {type(text).__name__}")
                continue
            try:
                date = parse_date(row["date"])
            except ValueError as error:
                self.bad.report(f"{row.where('date')}: {error}")
                continue
            yield Document(
                as_id(row["doc_id"]), text, as_id_or_none(row["patient_id"]), date, as_codes(row["codes"]), row.where()
            )

    def _records(self, path: Path) -> Iterator[Document]:
        held: Document | None = None
        held_id: str | None = None
        for row in self._rows(path, ["patient_id", "date", "code"], ["doc_id", "name", "type"]):
            try:
                date = parse_date(row["date"])
            except ValueError as error:
                self.bad.report(f"{row.where('date')}: {error}")
                continue
            code, patient, doc_id = as_id(row["code"]), as_id(row["patient_id"]), as_id_or_none(row["doc_id"])
            self._name(code, row["name"] and str(row["name"]), row["type"] and str(row["type"]))
            same = doc_id is not None and doc_id == held_id
            if held is not None and same and (patient, date) == (held.patient_id, held.date):
                held = Document(held.doc_id, "", patient, date, (*held.codes, code), held.where)
                continue
            if held is not None:
                yield held
            held, held_id = Document(doc_id or row.where(), "", patient, date, (code,), row.where()), doc_id
        if held is not None:
            yield held


class MimicReader(TableReader):
    """MIMIC's notes by their column names: NOTEEVENTS of MIMIC-III, the note tables of MIMIC-IV."""

    renames: ClassVar[dict[str, str]] = {
        "row_id": "doc_id",
        "note_id": "doc_id",
        "subject_id": "patient_id",
        "chartdate": "date",
        "charttime": "date",
    }


def as_id(value: Any) -> str:
    """An identifier as text; 12.0, as tables with gaps write a 12, is 12."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return "" if value is None else str(value).strip()


def as_id_or_none(value: Any) -> str | None:
    """As :func:`as_id`, None for nothing."""
    return as_id(value) or None


def as_codes(value: Any) -> tuple[str, ...]:
    """Codes from a list or from separated text, each once, in order."""
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        parts = [as_id(part) for part in value]
    else:
        text = as_id(value)
        parts = _LIST_MARKS.split(text) if _LIST_MARKS.search(text) else text.split()
    return tuple(dict.fromkeys(part for part in parts if part))
