"""An OMOP CDM 5.x database as a folder of CSV or Parquet tables: notes as text, events as codes (concept ids)."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cogstage.corpus.cohort import Person, as_sex
from cogstage.corpus.formats.table import DATE_FORMAT, EMPTY, NO_CODE, as_given_id, value_of
from cogstage.corpus.names import CodeNames
from cogstage.corpus.readers import Reader, ReaderOption, Sample
from cogstage.corpus.records import Document, as_concept, as_id, parse_date
from cogstage.errors import UsageError
from cogstage.input_files import bare_suffix, files_in
from cogstage.tables import FORMATS, BadRows, Row, read_rows

# table -> (its identifier, its concept, its date)
_EVENTS = {
    "condition_occurrence": ("condition_occurrence_id", "condition_concept_id", "condition_start_date"),
    "drug_exposure": ("drug_exposure_id", "drug_concept_id", "drug_exposure_start_date"),
    "observation": ("observation_id", "observation_concept_id", "observation_date"),
    "measurement": ("measurement_id", "measurement_concept_id", "measurement_date"),
    "procedure_occurrence": ("procedure_occurrence_id", "procedure_concept_id", "procedure_date"),
    "device_exposure": ("device_exposure_id", "device_concept_id", "device_exposure_start_date"),
    "condition_era": ("condition_era_id", "condition_concept_id", "condition_era_start_date"),
    "drug_era": ("drug_era_id", "drug_concept_id", "drug_era_start_date"),
}
_DERIVED = {"condition_era": "condition_occurrence", "drug_era": "drug_exposure"}  # tables made from others
TABLES = ("note", "note_nlp", *_EVENTS)


def table_files(folder: Path, table: str) -> list[Path]:
    """The files of a table, whatever the case of its name: ``NOTE.csv``, ``note.parquet``, ``note/part-0.parquet``."""
    files = files_in(folder)
    named = [file for file in files if file.relative_to(folder).parts[0].split(".")[0].lower() == table]
    return [file for file in named if bare_suffix(file) in FORMATS]


def is_omop_folder(folder: Path) -> bool:
    """Whether a folder holds OMOP tables."""
    return any(table_files(folder, table) for table in TABLES)


class OmopReader(Reader):
    """Notes, and conditions, drugs, observations, measurements, procedures and devices as coded records of patients.

    ``tables`` chooses among the tables that are there; by default all, but of NOTE and NOTE_NLP (which holds the
    concepts already recognised in the notes) only one: NOTE_NLP where it has concepts, else NOTE; and eras only where
    the table that they are made from is missing. Concept 0 (no matching concept) is left out. Names come from CONCEPT.
    """

    format = "omop"
    title = "a folder of OMOP CDM 5.x tables"
    takes_folder = True
    options: ClassVar = {
        "tables": ReaderOption("tables to read, comma-separated", lambda text: text.split(",")),
        "date_format": DATE_FORMAT,
    }

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """A folder or archive with OMOP tables."""
        return 2 * int(sample.is_folder and is_omop_folder(sample.path))

    def __init__(
        self,
        files: Sequence[Path],
        bad: BadRows,
        tables: Iterable[str] | None = None,
        date_format: str | None = None,
        ids_across_files: bool = True,  # they are keys of tables, however many files a table has
    ) -> None:
        if len(files) != 1 or (files[0].is_file() and bare_suffix(files[0]) != ".zip"):
            raise UsageError("OMOP input must be one folder with all tables")
        self.folder = files[0]
        there = {table: table_files(self.folder, table) for table in TABLES}
        if tables is None:
            chosen = self._without_repeated(there, bad)
        else:
            chosen = [table.strip().lower() for table in ([tables] if isinstance(tables, str) else tables)]
        for table in chosen:
            if table not in TABLES:
                raise UsageError(f"unknown OMOP table {table}; choose one of {', '.join(TABLES)}")
            if not there[table]:
                raise UsageError(f"{self.folder} contains no table {table} (as .csv, .tsv or .parquet)")
        if not chosen:
            raise UsageError(f"{self.folder} contains no OMOP table; expected one of {', '.join(TABLES)}")
        self._table_of = {path: table for table in chosen for path in there[table]}
        self._concepts: set[str] = set()
        self._as_date = partial(parse_date, format=date_format)
        super().__init__(list(self._table_of), bad, ids_across_files)

    def _without_repeated(self, there: Mapping[str, list[Path]], bad: BadRows) -> list[str]:
        """The tables that are there, but for those that repeat what others hold."""
        chosen = [table for table in TABLES if there[table]]
        for era, source in _DERIVED.items():
            if there[era] and there[source]:
                chosen.remove(era)
                bad.notice(f"{era.upper()} was left out: it is derived from {source.upper()}; see tables", 0)
        if there["note"] and there["note_nlp"]:
            chosen.remove(self._unused_notes(there["note_nlp"], bad))
        return chosen

    def _unused_notes(self, files: list[Path], bad: BadRows) -> str:
        """Which of NOTE and NOTE_NLP is left out: NOTE, unless NOTE_NLP holds no concept that could be used."""
        columns = ["note_nlp_concept_id", "term_exists"]
        if any(_asserted(row) for row in read_rows(files, [], columns, BadRows(skip=True))):
            bad.notice("NOTE_NLP was read and NOTE left out; set tables to change this", 0)
            return "note"
        bad.notice("NOTE was read because NOTE_NLP contains no concepts; set tables to change this", 0)
        return "note_nlp"

    def parts(self) -> list[list[Path]]:
        """The folder: its tables belong together."""
        return [[self.folder]]

    @property
    def names(self) -> dict[str, tuple[str, str]]:
        """Names of the concepts seen so far, looked up in CONCEPT."""
        return dict(self.names_of(self._concepts))

    def people(self) -> dict[str, Person]:
        """Sex and birth of the patients in PERSON."""
        files, found = table_files(self.folder, "person"), {}
        columns = ["gender_concept_id", "year_of_birth", "month_of_birth", "day_of_birth"]
        for row in read_rows(files, ["person_id"], columns, self.bad) if files else ():
            year, month, day = (int(as_id(row[column]) or 0) for column in columns[1:])
            birth = datetime.date(year, month or 1, day or 1) if year else None
            found[as_id(row["person_id"])] = Person(as_sex(row["gender_concept_id"]), birth)
        return found

    def all_names_of(self, codes: Iterable[str]) -> CodeNames:
        """Names of these concepts from CONCEPT and CONCEPT_SYNONYM; none if the folder has no CONCEPT."""
        from cogstage.corpus.concept_names import read_concept_names

        codes = list(codes)
        missing = [code for code in codes if code not in self.code_names]
        if missing and table_files(self.folder, "concept"):
            self.code_names.merge(read_concept_names(self.folder, missing, self.bad))
        return self.code_names.only(codes)

    def _read(self, path: Path) -> Iterator[Document]:
        table = self._table_of[path]
        if table == "note":
            return self._notes(path)
        if table == "note_nlp":
            return self._note_concepts(path)
        return self._events(path, table)

    def _notes(self, path: Path) -> Iterator[Document]:
        optional = ["person_id", "note_date", "visit_occurrence_id"]
        for row in read_rows(path, ["note_id"], optional, self.bad, None, self.meter, ["note_text"]):
            if row["note_text"] is None:
                self.bad.notice(EMPTY)
                continue
            try:
                note, date = value_of(row, "note_id", as_given_id), value_of(row, "note_date", self._as_date)
                visit = value_of(row, "visit_occurrence_id", as_id) or None
                patient = value_of(row, "person_id", self._patient)
            except ValueError as error:
                self.bad.report(str(error))
                continue
            yield Document(f"note:{note}", str(row["note_text"]), patient, date, (), row.where(), visit)

    def _events(self, path: Path, table: str) -> Iterator[Document]:
        identifier, concept, date_column = _EVENTS[table]
        optional = [identifier, "person_id", "visit_occurrence_id"]
        for row in read_rows(path, [concept, date_column], optional, self.bad, meter=self.meter):
            try:
                code = value_of(row, concept, as_concept)
                if not code:
                    self.bad.notice(NO_CODE)
                    continue
                date, key = value_of(row, date_column, self._as_date), value_of(row, identifier, as_id)
                visit = value_of(row, "visit_occurrence_id", as_id) or None
                patient = value_of(row, "person_id", self._patient)
            except ValueError as error:
                self.bad.report(str(error))
                continue
            self._concepts.add(code)
            doc_id = f"{table}:{key}" if key else row.where()
            yield Document(doc_id, "", patient, date, (code,), row.where(), visit, rows=True)

    def _note_concepts(self, path: Path) -> Iterator[Document]:
        """Neighbouring rows of one note are one document; what the annotator denied (term_exists N) is left out."""
        owners = NoteOwners(self.folder, self.bad, self._as_date)
        held: Document | None = None
        codes: dict[str, None] = {}
        columns = ["note_nlp_concept_id", "term_exists"]
        for row in read_rows(path, ["note_id"], columns, self.bad, meter=self.meter):
            try:
                note, code = f"note:{value_of(row, 'note_id', as_given_id)}", _asserted(row)
            except ValueError as error:
                self.bad.report(str(error))
                continue
            if not code:
                continue
            if held is None or held.doc_id != note:
                if held is not None:
                    held.codes, codes = tuple(codes), {}
                    yield held
                patient, date = owners.owner(note)
                held = Document(note, "", self._patient(patient), date, (), row.where(), rows=True)
            self._concepts.add(code)
            codes[code] = None
        if held is not None:
            held.codes = tuple(codes)
            yield held


def _asserted(row: Row) -> str:
    """The concept of a row of NOTE_NLP; "" if there is none, or where the annotator denied it."""
    denied = str(row["term_exists"] or "Y").strip().upper() in ("N", "NO", "FALSE", "0", "0.0")
    return "" if denied else value_of(row, "note_nlp_concept_id", as_concept)


class NoteOwners:
    """Patient and day of each note, from NOTE; 24 bytes per note."""

    def __init__(self, folder: Path, bad: BadRows, as_date: Callable[[Any], datetime.date | None]) -> None:
        files = table_files(folder, "note")
        notes, people, days = array("Q"), array("q"), array("q")
        numbers: dict[str, int] = {}
        for row in read_rows(files, ["note_id"], ["person_id", "note_date"], bad) if files else ():
            try:
                note, date = value_of(row, "note_id", as_given_id), value_of(row, "note_date", as_date)
                person = value_of(row, "person_id", as_id)
            except ValueError as error:
                bad.report(str(error))
                continue
            notes.append(_hashed(f"note:{note}"))
            people.append(numbers.setdefault(person, len(numbers)))
            days.append(date.toordinal() if date else 0)
        order = np.argsort(np.array(notes, np.uint64), kind="stable")
        self._notes = np.array(notes, np.uint64)[order]
        self._people = np.array(people, np.int64)[order]
        self._days = np.array(days, np.int64)[order]
        self._patients = list(numbers)

    def owner(self, note: str) -> tuple[str | None, datetime.date | None]:
        """Patient and day of a note; None if NOTE does not have it."""
        key = np.uint64(_hashed(note))
        position = int(np.searchsorted(self._notes, key))
        if position == len(self._notes) or self._notes[position] != key:
            return None, None
        day = int(self._days[position])
        return self._patients[self._people[position]] or None, datetime.date.fromordinal(day) if day else None


def _hashed(note: str) -> int:
    return int.from_bytes(blake2b(note.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little")
