"""Tables of documents (``doc_id, text``) or of coded records (``patient_id, date, code``), and MIMIC's note table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from cogstage.corpus.readers import Reader, ReaderOption, Sample
from cogstage.corpus.records import Document, as_code, as_id, as_patient, parse_date
from cogstage.errors import CogstageError, UsageError
from cogstage.tables import FORMATS, BadRows, Row, column_names, read_rows, table_kind

T = TypeVar("T")
_LIST_MARKS = re.compile(r"[;|,]")
EMPTY = "documents without text, left out"
NO_CODE = "coded records without a concept (0 or nothing) left out"


def parse_columns(text: str) -> dict[str, str]:
    """``text=note_text,date=seen`` as our columns and what a table calls them."""
    pairs = [pair.partition("=") for pair in text.split(",")]
    if not all(ours.strip() and theirs.strip() for ours, _, theirs in pairs):
        raise UsageError(f"{text!r} is not a column name; write it as text=note_text")
    return {ours.strip().lower(): theirs.strip() for ours, _, theirs in pairs}


def renames_of(columns: Mapping[str, str]) -> dict[str, str]:
    """Their names to ours; a column that has our name but was not chosen is hidden."""
    hidden = {ours.lower(): f"not {ours}" for ours in columns}
    return {**hidden, **{theirs.lower(): ours.lower() for ours, theirs in columns.items()}}


COLUMNS = ReaderOption("column names in your table, such as text=note_text,date=seen", parse_columns)
DATE_FORMAT = ReaderOption("date format, such as %d/%m/%Y")


class TableReader(Reader):
    """Documents ``doc_id, text`` (optional ``patient_id, date, codes``), or coded records ``patient_id, date, code``
    (optional ``doc_id, name, type``; neighbouring rows with the same ``doc_id`` are one record).

    ``codes`` is a list, or text separated by ``;``, ``|``, commas or spaces. ``columns`` says what our columns are
    called in the table (``{"text": "note_text"}``), ``date_format`` how its dates are written (``%d/%m/%Y``).
    """

    format = "table"
    title = "tables of documents (doc_id, text) or of coded records (patient_id, date, code)"
    suffixes = tuple(FORMATS)
    renames: ClassVar[dict[str, str]] = {}

    options: ClassVar = {"columns": COLUMNS, "date_format": DATE_FORMAT}

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        return int(sample.suffix in FORMATS)

    def __init__(
        self,
        files: Sequence[Path],
        bad: BadRows,
        columns: Mapping[str, str] | None = None,
        date_format: str | None = None,
        ids_across_files: bool = False,
    ) -> None:
        super().__init__(files, bad, ids_across_files)
        self._renames = {**self.renames, **renames_of(columns or {})}
        self._as_date = partial(parse_date, format=date_format)

    def _read(self, path: Path) -> Iterator[Document]:
        columns = self._columns(path)
        if "text" in columns or ("doc_id" in columns and "codes" in columns):
            return self._documents(path, with_codes="codes" in columns)
        if "code" in columns:
            return self._records(path)
        if not columns and table_kind(path) == "json":  # no line could be read: say why
            return self._documents(path, with_codes=False)
        if not columns:
            raise CogstageError(f"{path}: the file is empty")
        there = ", ".join(sorted(columns))
        raise CogstageError(
            f"{path}:1: no column text (documents: doc_id, text) and no column code "
            f"(coded records: patient_id, date, code); the columns are {there}"
        )

    def _columns(self, path: Path) -> set[str]:
        return {self._renames.get(name, name) for name in column_names(path)}

    def _documents(self, path: Path, with_codes: bool) -> Iterator[Document]:
        optional, text_column = ["patient_id", "visit_id", "date", "iserror", "codes"], ["text"]
        if with_codes:
            optional, text_column = ["text", *optional], []
        has_patients = "patient_id" in self._columns(path)
        for row in read_rows(path, ["doc_id"], optional, self.bad, self._renames, self.meter, text_column):
            if row["text"] is None and row["codes"] is None:
                self.bad.notice(EMPTY)
                continue
            text = row["text"] or ""
            if not isinstance(text, str):
                self.bad.report(f"{row.where('text')}: expected text, not {type(text).__name__}")
                continue
            try:
                if value_of(row, "iserror", as_id) == "1":  # MIMIC: a note that its author withdrew
                    continue
                yield Document(
                    value_of(row, "doc_id", as_given_id),
                    text,
                    date=value_of(row, "date", self._as_date),
                    codes=value_of(row, "codes", as_codes),
                    where=row.where(),
                    visit_id=value_of(row, "visit_id", as_id) or None,
                    patient_id=value_of(row, "patient_id", self._patient if has_patients else as_patient),
                )
            except ValueError as error:
                self.bad.report(str(error))

    def _records(self, path: Path) -> Iterator[Document]:
        held: Document | None = None
        codes: list[str] = []
        columns = self._columns(path)
        if "patient_id" not in columns:  # a row may lack its value, but not the table the column
            raise CogstageError(f"{path}:1: no column patient_id; the columns are {', '.join(sorted(columns))}")
        columns_read = ["patient_id", "date", "code", "visit_id", "doc_id", "name", "type"]
        for row in read_rows(path, [], columns_read, self.bad, self._renames, self.meter):
            try:
                record = self._record(row)
            except ValueError as error:
                self.bad.report(str(error))
                continue
            if record is None:
                continue
            same = held is not None and record.rows and held.doc_id == record.doc_id
            if held is not None and same and (record.patient_id, record.date) == (held.patient_id, held.date):
                codes.extend(record.codes)
                continue
            if held is not None:
                held.codes = tuple(codes)
                yield held
            held, codes = record, list(record.codes)
        if held is not None:
            held.codes = tuple(codes)
            yield held

    def _record(self, row: Row) -> Document | None:
        code = value_of(row, "code", as_code)
        if not code:
            self.bad.notice(NO_CODE)
            return None
        date, visit = value_of(row, "date", self._as_date), value_of(row, "visit_id", as_id) or None
        doc_id = value_of(row, "doc_id", as_id)
        patient = value_of(row, "patient_id", self._patient)
        self.code_names.add(code, row["name"], row["type"], patient or doc_id or row.where())
        return Document(doc_id or row.where(), "", patient, date, (code,), row.where(), visit, rows=True)


class MimicReader(TableReader):
    """MIMIC's notes by their column names: NOTEEVENTS of MIMIC-III, the note tables of MIMIC-IV."""

    format = "mimic"
    title = "NOTEEVENTS of MIMIC-III, note tables of MIMIC-IV"
    renames: ClassVar[dict[str, str]] = {
        "row_id": "doc_id",
        "note_id": "doc_id",
        "subject_id": "patient_id",
        "hadm_id": "visit_id",
        "chartdate": "date",
        "charttime": "date",
    }

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """A table with MIMIC's columns."""
        return 2 * int({"subject_id", "text"} <= sample.columns)


def value_of(row: Row, column: str, convert: Callable[[Any], T]) -> T:
    """A value of a row, converted; what goes wrong is a ValueError that names file, line and column."""
    try:
        return convert(row[column])
    except ValueError as error:
        raise ValueError(f"{row.where(column)}: {error}") from None


def as_given_id(value: Any) -> str:
    """An identifier that must be there."""
    if not (identifier := as_id(value)):
        raise ValueError("no value")
    return identifier


def as_codes(value: Any) -> tuple[str, ...]:
    """Codes from a list or from separated text, each once, in order."""
    if value is None:
        return ()
    if isinstance(value, (list, tuple)):
        parts = [as_code(part) for part in value]
    else:
        text = as_code(value)
        parts = [as_code(part) for part in (_LIST_MARKS.split(text) if _LIST_MARKS.search(text) else text.split())]
    return tuple(dict.fromkeys(part for part in parts if part))
