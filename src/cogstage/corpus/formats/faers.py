"""Quarterly ASCII files of the FDA's adverse event reports (FAERS): a report's drugs and reactions as codes."""

from __future__ import annotations

import datetime
import re
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cogstage.corpus.cohort import Person, as_sex
from cogstage.corpus.readers import Reader, ReaderOption, Sample, truth
from cogstage.corpus.records import CODED_RECORD, Document, parse_date
from cogstage.errors import CogstageError, UsageError
from cogstage.input_files import files_in, is_clean, lines_of, open_text
from cogstage.tables import BadRows

_FILE = re.compile(r"(DEMO|DRUG|REAC|INDI|DELE)\w*\.txt", re.IGNORECASE)
_OLD_NAMES = {"isr": "primaryid", "case": "caseid"}  # before 2012
_YEARS = {"DEC": 10, "YR": 1, "MON": 1 / 12, "WK": 1 / 52.1775, "DY": 1 / 365.25, "HR": 1 / 8766}  # units of ages
ROLES = ("PS", "SS", "C", "I")  # primary suspect, secondary suspect, concomitant, interacting


def _kinds(folder: Path) -> dict[str, list[Path]]:
    """The files of a folder or archive by their kind."""
    kinds: dict[str, list[Path]] = {}
    for path in files_in(folder):
        if named := _FILE.fullmatch(path.name):
            kinds.setdefault(named[1].upper(), []).append(path)
    return kinds


class FaersReader(Reader):
    """Reports with their drugs (``drug:ASPIRIN``, by active ingredients if given) and reactions (``pt:NAUSEA``).

    The case is the patient. Only the last version of a case across all quarters in the folder counts, as the FDA
    recommends; deleted cases are left out. ``roles`` chooses drugs by their role (PS, SS, C, I; default the suspects
    PS and SS); ``indications`` adds what the drugs were given for (``indication:PAIN``).
    """

    format = "faers"
    title = "a folder of FAERS quarterly ASCII files (DEMO, DRUG, REAC, INDI)"
    contents = CODED_RECORD
    takes_folder = True
    options: ClassVar = {
        "roles": ReaderOption("roles of drugs, comma-separated: PS, SS, C, I", lambda text: text.split(",")),
        "indications": ReaderOption("true adds the indications of the drugs", truth),
    }

    @classmethod
    def recognises(cls, sample: Sample) -> int:
        """A folder or archive with DEMO and DRUG files."""
        return 2 * int(sample.is_folder and {"DEMO", "DRUG"} <= set(_kinds(sample.path)))

    def __init__(
        self,
        files: Sequence[Path],
        bad: BadRows,
        roles: Sequence[str] = ("PS", "SS"),
        indications: bool = False,
        ids_across_files: bool = True,  # a report's number means the report in every file
    ) -> None:
        if len(files) != 1:
            raise UsageError("FAERS input must be one folder with all quarterly files")
        self.folder = files[0]
        self.roles = frozenset(role.strip().upper() for role in roles)
        if unknown := self.roles - set(ROLES):
            raise UsageError(f"unknown role {sorted(unknown)[0]}; choose one of {', '.join(ROLES)}")
        kinds = _kinds(self.folder)
        self._demo, self._deleted = kinds.get("DEMO", []), kinds.get("DELE", [])
        if not self._demo:
            raise UsageError(f"{self.folder} contains no DEMO file")
        wanted = ("DRUG", "REAC", "INDI") if indications else ("DRUG", "REAC")
        self._kind_of = {path: kind for kind in wanted for path in kinds.get(kind, [])}
        self._reports: _Reports | None = None
        super().__init__(list(self._kind_of), bad, ids_across_files)

    def parts(self) -> list[list[Path]]:
        """The folder: its files belong together."""
        return [[self.folder]]

    def people(self) -> dict[str, Person]:
        """Sex and age in the report of each case that counts."""
        self._reports = self._reports or _Reports(self)
        found = {}
        for path in self._demo:
            for _, row in self.rows(path, ("primaryid", "caseid")):
                if (owner := self._reports.owner(row["primaryid"])) is not None:
                    found[owner[0]] = Person(as_sex(row.get("sex") or row.get("gndr_cod")), age=_age(row))
        return found

    def _read(self, path: Path) -> Iterator[Document]:
        if self._reports is None:
            self._reports = _Reports(self)
        kind = self._kind_of[path]
        column = {"DRUG": "drugname", "REAC": "pt", "INDI": "indi_pt"}[kind]
        for where, row in self.rows(path, ("primaryid", column)):
            report = row["primaryid"]
            owner = self._reports.owner(report)
            if owner is None or (kind == "DRUG" and row.get("role_cod", "PS").upper() not in self.roles):
                continue
            case, day = owner
            codes = tuple(self._codes(kind, row, column, case))
            if codes:
                yield Document(report, "", case, day, codes, where, rows=True)

    def _codes(self, kind: str, row: dict[str, str], column: str, case: str) -> Iterator[str]:
        ingredients = row.get("prod_ai", "") if kind == "DRUG" else ""
        names = ingredients.split("\\") if ingredients else [row[column]]
        if len(names) > 1:
            self.bad.notice("drugs with several active ingredients (A\\B), counted once for each ingredient")
        prefix, type = {"DRUG": ("drug", "drug"), "REAC": ("pt", "reaction"), "INDI": ("indication", "indication")}[
            kind
        ]
        for name in names:
            if name := " ".join(name.split()).rstrip("."):
                code = f"{prefix}:{name.upper()}"
                # ingredients and MedDRA's terms are a vocabulary; a drug's name is what the reporter wrote
                self.code_names.add(code, name, type, case, vocabulary=bool(ingredients) or kind != "DRUG")
                yield code

    def rows(self, path: Path, needed: Sequence[str]) -> Iterator[tuple[str, dict[str, str]]]:
        """Place and values of the rows of a file that have what is needed; columns are separated by ``$``."""
        with open_text(path, self.meter) as handle:
            header: list[str] | None = None
            for number, line in lines_of(handle, path, self.bad):
                cells = [cell.strip() for cell in line.rstrip("\r\n").split("$")]
                if header is None:
                    header = [_OLD_NAMES.get(cell.lower(), cell.lower()) for cell in cells]
                    if absent := [column for column in needed if column not in header]:
                        there = ", ".join(header)
                        raise CogstageError(f"{path}:1: no column {absent[0]}; the columns are {there}")
                    continue
                if not line.strip():
                    continue
                row = dict(zip(header, cells, strict=False))
                if len(cells) < len(header) or not is_clean(line) or not row["primaryid"]:
                    self.bad.report(f"{path}:{number}: expected {len(header)} columns with a report number")
                    continue
                yield f"{path}:{number}", row


class _Reports:
    """Which reports count, with their case and day: 24 bytes per report."""

    def __init__(self, reader: FaersReader) -> None:
        deleted = {line for path in reader._deleted for line in _deleted_cases(path, reader.bad)}
        reports, cases, days, order = array("q"), array("q"), array("q"), array("q")
        for path in reader._demo:
            for where, row in reader.rows(path, ("primaryid", "caseid")):
                try:
                    numbers = [int(row["primaryid"]), int(row["caseid"]), int(row.get("caseversion") or 0)]
                    day = _day(row)
                except ValueError as error:
                    reader.bad.report(f"{where}: {error}")
                    continue
                if row["caseid"] not in deleted:
                    reports.append(numbers[0])
                    cases.append(numbers[1])
                    order.append(numbers[2])
                    days.append(day)
        table = np.array([cases, order, reports, days], np.int64)
        table = table[:, np.lexsort((table[2], table[1], table[0]))]
        last = np.append(table[0, 1:] != table[0, :-1], True)[: table.shape[1]]
        table = table[:, last]
        self._cases, _, self._reports, self._days = table[:, np.argsort(table[2], kind="stable")]

    def owner(self, report: str) -> tuple[str, datetime.date | None] | None:
        """Case and day of a report; None for one that does not count."""
        if not report.isdecimal() or len(report) > 18:
            return None
        position = int(np.searchsorted(self._reports, int(report)))
        if position == len(self._reports) or self._reports[position] != int(report):
            return None
        day = int(self._days[position])
        return str(self._cases[position]), datetime.date.fromordinal(day) if day else None


def _age(row: dict[str, str]) -> int | None:
    """The age in completed years; None if it is missing, or its unit is unknown."""
    try:
        return int(float(row.get("age") or "") * _YEARS[row.get("age_cod") or ""])
    except (KeyError, ValueError):
        return None


def _day(row: dict[str, Any]) -> int:
    """The day of the event, or else of the report; 0 if there is none. Months and years are their first day."""
    for column in ("event_dt", "fda_dt"):
        value = row.get(column) or ""
        if re.fullmatch(r"\d{6}", value):
            value = f"{value[:4]}-{value[4:]}"
        try:
            if (day := parse_date(value)) is not None:
                return day.toordinal()
        except ValueError:  # such dates are as reported; the next column is more reliable
            continue
    return 0


def _deleted_cases(path: Path, bad: BadRows) -> Iterator[str]:
    with open_text(path) as handle:
        for _, line in lines_of(handle, path, bad):
            if (case := line.strip()).isdecimal():
                yield case
