"""An OMOP CDM 5.x database as a folder of CSV or Parquet tables: notes as text, events as codes (concept ids)."""

from __future__ import annotations

import datetime
from array import array
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from cogstage.corpus.readers import Reader
from cogstage.corpus.records import Document, parse_date
from cogstage.corpus.table_reader import as_id, as_id_or_none
from cogstage.errors import UsageError
from cogstage.tables import FORMATS, BadRows, Row, bare_suffix, read_rows

# table -> (its identifier, its concept, its date)
_EVENTS = {
    "condition_occurrence": ("condition_occurrence_id", "condition_concept_id", "condition_start_date"),
    "drug_exposure": ("drug_exposure_id", "drug_concept_id", "drug_exposure_start_date"),
    "observation": ("observation_id", "observation_concept_id", "observation_date"),
    "measurement": ("measurement_id", "measurement_concept_id", "measurement_date"),
    "procedure_occurrence": ("procedure_occurrence_id", "procedure_concept_id", "procedure_date"),
}
TABLES = ("note", "note_nlp", *_EVENTS)


def table_files(folder: Path, table: str) -> list[Path]:
    """The files of a table, whatever the case of its name: ``NOTE.csv``, ``note.parquet``, ``note/part-0.parquet``."""
    found = []
    for path in sorted(folder.iterdir()):
        if path.name.split(".")[0].lower() != table:
            continue
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        found += [file for file in files if file.is_file() and bare_suffix(file) in FORMATS]
    return found


def is_omop_folder(folder: Path) -> bool:
    """Whether a folder holds OMOP tables."""
    return any(table_files(folder, table) for table in TABLES)


class OmopReader(Reader):
    """Notes, and conditions, drugs, observations, measurements and procedures as coded records of their patient.

    ``tables`` chooses among the tables that are there; by default all, but NOTE only where there is no NOTE_NLP, which
    holds the concepts already found in the notes. Concept 0 (no matching concept) is left out. Names come from CONCEPT.
    """

    def __init__(self, files: Sequence[Path], bad: BadRows, tables: Iterable[str] | None = None) -> None:
        if len(files) != 1 or not files[0].is_dir():
            raise UsageError("OMOP is read from one folder that holds its tables")
        self.folder = files[0]
        there = {table: table_files(self.folder, table) for table in TABLES}
        if tables is None:
            wanted = [t for t in TABLES if there[t] and not (t == "note" and there["note_nlp"])]
        else:
            wanted = [table.lower() for table in tables]
        for table in wanted:
            if table not in TABLES:
                raise UsageError(f"unknown OMOP table {table}; known are {', '.join(TABLES)}")
            if not there[table]:
                raise UsageError(f"{self.folder} holds no table {table} (as .csv, .tsv or .parquet)")
        if not wanted:
            raise UsageError(f"{self.folder} holds no OMOP table; looked for {', '.join(TABLES)}")
        self._table_of = {path: table for table in wanted for path in there[table]}
        self._seen: set[str] = set()
        super().__init__(list(self._table_of), bad)

    @property
    def names(self) -> dict[str, tuple[str, str]]:
        """Names of the concepts met so far, looked up in CONCEPT."""
        return self.names_of(self._seen)

    def names_of(self, codes: Iterable[str]) -> dict[str, tuple[str, str]]:
        """Names of these concepts from CONCEPT: one pass over it, only what is asked for is kept."""
        missing = {code for code in codes if code not in self._names}
        files = table_files(self.folder, "concept")
        if missing and files:
            for row in read_rows(files, ["concept_id", "concept_name"], ["domain_id"], self.bad):
                if (code := as_id(row["concept_id"])) in missing:
                    self._name(code, str(row["concept_name"]), str(row["domain_id"] or "").lower())
        return {code: self._names[code] for code in codes if code in self._names}

    def _read(self, path: Path) -> Iterator[Document]:
        table = self._table_of[path]
        if table == "note":
            return self._notes(path)
        if table == "note_nlp":
            return self._note_concepts(path)
        return self._events(path, table)

    def _notes(self, path: Path) -> Iterator[Document]:
        for row in read_rows(path, ["note_id", "person_id", "note_text"], ["note_date"], self.bad, meter=self.meter):
            try:
                date = parse_date(row["note_date"])
            except ValueError as error:
                self.bad.report(f"{row.where('note_date')}: {error}")
                continue
            patient = as_id(row["person_id"])
            yield Document(f"note:{as_id(row['note_id'])}", str(row["note_text"]), patient, date, (), row.where())

    def _events(self, path: Path, table: str) -> Iterator[Document]:
        identifier, concept, date_column = _EVENTS[table]
        rows = read_rows(path, ["person_id", concept, date_column], [identifier], self.bad, meter=self.meter)
        for row in rows:
            code = as_id(row[concept])
            if code == "0":
                continue
            try:
                date = parse_date(row[date_column])
            except ValueError as error:
                self.bad.report(f"{row.where(date_column)}: {error}")
                continue
            self._seen.add(code)
            doc_id = f"{table}:{as_id_or_none(row[identifier]) or row.line}"
            yield Document(doc_id, "", as_id(row["person_id"]), date, (code,), row.where())

    def _note_concepts(self, path: Path) -> Iterator[Document]:
        """Neighbouring rows of one note are one document; what the annotator denied (term_exists N) is left out."""
        owners = NoteOwners(self.folder, self.bad)
        held: tuple[str, Row] | None = None
        codes: list[str] = []
        rows = read_rows(path, ["note_id", "note_nlp_concept_id"], ["term_exists"], self.bad, meter=self.meter)
        for row in rows:
            code, note = as_id(row["note_nlp_concept_id"]), as_id(row["note_id"])
            if code == "0" or str(row["term_exists"] or "Y").upper() in ("N", "FALSE", "0"):
                continue
            if held is not None and held[0] != note:
                yield from self._note_document(held, codes, owners)
                codes = []
            if held is None or held[0] != note:
                held = (note, row)
            self._seen.add(code)
            codes.append(code)
        if held is not None:
            yield from self._note_document(held, codes, owners)

    def _note_document(self, held: tuple[str, Row], codes: list[str], owners: NoteOwners) -> Iterator[Document]:
        note, row = held
        patient, date = owners.find(note)
        yield Document(f"note:{note}", "", patient, date, tuple(dict.fromkeys(codes)), row.where())


class NoteOwners:
    """Whose note it is and of which day, from NOTE; 24 bytes a note, so that hospitals fit."""

    def __init__(self, folder: Path, bad: BadRows) -> None:
        files = table_files(folder, "note")
        notes, people, days = array("q"), array("q"), array("q")
        for row in read_rows(files, ["note_id", "person_id"], ["note_date"], bad) if files else ():
            try:
                note, person = int(as_id(row["note_id"])), int(as_id(row["person_id"]))
                date = parse_date(row["note_date"])
            except ValueError as error:
                bad.report(f"{row.where()}: {error}")
                continue
            notes.append(note)
            people.append(person)
            days.append(date.toordinal() if date else 0)
        order = np.argsort(np.array(notes, np.int64), kind="stable")
        self._notes = np.array(notes, np.int64)[order]
        self._people = np.array(people, np.int64)[order]
        self._days = np.array(days, np.int64)[order]

    def find(self, note: str) -> tuple[str | None, datetime.date | None]:
        """Patient and day of a note; None where NOTE does not tell."""
        if not note.lstrip("-").isdigit():
            return None, None
        place = int(np.searchsorted(self._notes, int(note)))
        if place == len(self._notes) or self._notes[place] != int(note):
            return None, None
        day = int(self._days[place])
        return str(self._people[place]), datetime.date.fromordinal(day) if day else None
