"""The coded tables of MIMIC-III and MIMIC-IV as they lie: diagnoses, procedures, prescriptions, abnormal laboratory
results.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from cogstage.corpus.cohort import Person, as_sex
from cogstage.corpus.formats.omop import table_files
from cogstage.corpus.formats.table import NO_CODE, value_of
from cogstage.corpus.readers import Reader, ReaderOption, Sample
from cogstage.corpus.records import CODED_RECORD, Document, as_id, parse_date
from cogstage.errors import UsageError
from cogstage.input_files import bare_suffix, files_in
from cogstage.tables import FORMATS, BadRows, Row, read_rows

TABLES = ("diagnoses_icd", "procedures_icd", "prescriptions", "labevents")
_SYSTEMS = {"diagnoses_icd": ("icd9cm", "icd10cm"), "procedures_icd": ("icd9proc", "icd10pcs")}
_TYPES = {"diagnoses_icd": "disorder", "procedures_icd": "procedure", "prescriptions": "drug", "labevents": "finding"}
# the two releases call the same things differently
_RENAMES = {"icd9_code": "icd_code", "startdate": "date", "starttime": "date", "chartdate": "date", "charttime": "date"}


def _files(folder: Path, table: str) -> list[Path]:
    """The files of a table anywhere below the folder (``hosp/diagnoses_icd.csv.gz``)."""
    files = [file for file in files_in(folder) if file.name.split(".")[0].lower() == table]
    return [file for file in files if bare_suffix(file) in FORMATS] or table_files(folder, table)


class MimicCodesReader(Reader):
    """Diagnoses and procedures (``icd9cm:4019``, ``icd10pcs:02100Z9``), drugs (``drug:ASPIRIN``) and laboratory tests
    with an abnormal result (``lab:50912``), with the admission as visit and document.

    Diagnoses have the day of admission, and so have procedures without a date. Names come from the D_ tables.
    ``tables`` chooses among the tables. Notes are read as format ``mimic``.
    """

    format = "mimic-codes"
    title = "a folder of coded tables of MIMIC-III or MIMIC-IV"
    contents = CODED_RECORD
    takes_folder = True
    options: ClassVar = {"tables": ReaderOption("tables to read, comma-separated", lambda text: text.split(","))}

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """A folder or archive with DIAGNOSES_ICD."""
        return 2 * int(sample.is_folder and bool(_files(sample.path, "diagnoses_icd")))

    def __init__(
        self,
        files: Sequence[Path],
        bad: BadRows,
        tables: Iterable[str] | None = None,
        ids_across_files: bool = True,
    ) -> None:
        if len(files) != 1:
            raise UsageError("MIMIC input must be one folder with all tables")
        self.folder = files[0]
        chosen = [name.strip().lower() for name in tables] if tables is not None else list(TABLES)
        if unknown := set(chosen) - set(TABLES):
            raise UsageError(f"unknown MIMIC table {min(unknown)}; choose one of {', '.join(TABLES)}")
        self._table_of = {path: table for table in chosen for path in _files(self.folder, table)}
        if not self._table_of:
            raise UsageError(f"{self.folder} contains none of the tables {', '.join(chosen)}")
        self._admitted: Mapping[str, datetime.date | None] | None = None
        self._names: dict[str, dict[str, str]] = {}  # of each table that names codes
        super().__init__(list(self._table_of), bad, ids_across_files)

    def parts(self) -> list[list[Path]]:
        """The folder: its tables belong together."""
        return [[self.folder]]

    def people(self) -> dict[str, Person]:
        """Sex and birth of PATIENTS; MIMIC-IV gives an age in an anchor year, which is taken for 1 January."""
        found = {}
        for row in self._rows("patients", ["subject_id"], ["gender", "dob", "anchor_age", "anchor_year"]):
            birth = value_of(row, "dob", parse_date)
            if birth is None and row["anchor_year"] and row["anchor_age"]:
                birth = datetime.date(int(row["anchor_year"]) - int(row["anchor_age"]), 1, 1)
            found[as_id(row["subject_id"])] = Person(as_sex(row["gender"]), birth)
        return found

    def _rows(self, table: str, required: list[str], optional: list[str]) -> Iterator[Row]:
        files = _files(self.folder, table)
        return read_rows(files, required, optional, self.bad, _RENAMES) if files else iter(())

    def _read(self, path: Path) -> Iterator[Document]:
        table = self._table_of[path]
        optional = ["hadm_id", "icd_code", "icd_version", "date", "drug", "itemid", "flag"]
        for row in read_rows(path, ["subject_id"], optional, self.bad, _RENAMES, self.meter):
            if table == "labevents" and str(row["flag"] or "").strip().lower() != "abnormal":
                continue
            try:
                code = self._code(table, row)
                patient, visit = value_of(row, "subject_id", self._patient), value_of(row, "hadm_id", as_id)
                date = value_of(row, "date", parse_date)
            except ValueError as error:
                self.bad.report(str(error))
                continue
            if not code:
                self.bad.notice(NO_CODE)
                continue
            day = date or self._admission(visit)
            yield Document(visit or row.where(), "", patient, day, (code,), row.where(), visit or None, rows=True)

    def _code(self, table: str, row: Row) -> str:
        """The code of a row, whose name is noted; "" if there is none."""
        if table == "prescriptions":
            name = " ".join(str(row["drug"] or "").split())
            code, vocabulary = f"drug:{name.upper()}" if name else "", False
        elif table == "labevents":
            item = value_of(row, "itemid", as_id)
            code, vocabulary = f"lab:{item}" if item else "", True
            name = self._named("d_labitems", "itemid", "label").get(item, "")
        else:
            own = str(row["icd_code"] or "").strip()
            system = _SYSTEMS[table][as_id(row["icd_version"]) == "10"]
            code, vocabulary = f"{system}:{own}" if own else "", True
            listed = "d_icd_diagnoses" if table == "diagnoses_icd" else "d_icd_procedures"
            name = self._named(listed, "icd_code", "long_title").get(f"{as_id(row['icd_version']) or 9}:{own}", "")
        if code and name:
            self.code_names.add(code, name, _TYPES[table], str(row["subject_id"]), vocabulary=vocabulary)
        return code

    def _named(self, table: str, key: str, name: str) -> dict[str, str]:
        """The names in a D_ table; those of ICD codes by version and code."""
        if table not in self._names:
            names: dict[str, str] = {}
            for row in self._rows(table, [key], [name, "icd_version"]):
                own = str(row[key]).strip() if key == "icd_code" else as_id(row[key])
                names[f"{as_id(row['icd_version']) or 9}:{own}" if key == "icd_code" else own] = str(row[name] or "")
            self._names[table] = names
        return self._names[table]

    def _admission(self, visit: str) -> datetime.date | None:
        if self._admitted is None:
            rows: Iterator[Any] = self._rows("admissions", ["hadm_id"], ["admittime"])
            self._admitted = {as_id(row["hadm_id"]): value_of(row, "admittime", parse_date) for row in rows}
        return self._admitted.get(visit)
