"""Cohorts: which records count, by date, age, sex, or a list of patients; the same for all formats."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cogstage.corpus.records import Document, as_patient, parse_date
from cogstage.errors import CogstageError, UsageError
from cogstage.tables import BadRows, column_names, expand, read_rows

_SEXES = {"f": "female", "female": "female", "8532": "female", "m": "male", "male": "male", "8507": "male"}


def as_sex(value: Any) -> str:
    """``female`` or ``male`` in any of the ways that sources write them; "" otherwise."""
    return _SEXES.get(str(value or "").strip().lower().removesuffix(".0"), "")


@dataclass(frozen=True, slots=True)
class Person:
    """What a source knows of a patient; ``age`` in years at the record, if it says that instead of a day of birth."""

    sex: str = ""
    birth: datetime.date | None = None
    age: int | None = None

    def age_on(self, day: datetime.date | None) -> int | None:
        """Completed years; None if unknown."""
        if self.age is not None or self.birth is None or day is None:
            return self.age
        return day.year - self.birth.year - ((day.month, day.day) < (self.birth.month, self.birth.day))


@dataclass
class Cohort:
    """Records that count: from the day ``since`` on, of patients of these ``ages`` and this ``sex`` in ``patients``.

    ``patients`` is a table with a column patient_id (and, where the source does not have them, birth_date or
    birth_year, and sex), or a text file with one patient per line. Ages are those on the day of the record; a patient
    of whom the year of birth alone is known is as old as on 31 December. Records for which a condition cannot be
    checked do not count.
    """

    since: datetime.date | None = None
    ages: tuple[int, int] | None = None
    sex: str | None = None
    patients: str | None = None

    @classmethod
    def parse(
        cls, since: str | None = None, ages: str | None = None, sex: str | None = None, patients: str | None = None
    ) -> Cohort | None:
        """From texts such as ``2015``, ``18-65`` and ``female``; None if there is no condition."""
        if since is None and ages is None and sex is None and patients is None:
            return None
        if sex is not None and not as_sex(sex):
            raise UsageError(f"`sex` must be female or male, not {sex}")
        try:
            first = None if since is None else parse_date(since)
        except ValueError:
            raise UsageError(f"`since` must be a year or a day, such as 2015 or 2015-06-30, not {since}") from None
        return cls(first, None if ages is None else _ages(ages), None if sex is None else as_sex(sex), patients)

    @cached_property
    def _listed(self) -> dict[str, Person]:
        """The patients of the list, with what it says of them."""
        (path,) = expand(str(self.patients))
        if path.suffix.lower() == ".txt":
            lines = path.read_text(encoding="utf-8-sig").splitlines()
            return {line.strip(): Person() for line in lines if line.strip()}
        if "patient_id" not in column_names(path):
            raise CogstageError(f"{path}:1: no column patient_id; a list of patients without a header must be .txt")
        people = {}
        for row in read_rows(path, ["patient_id"], ["birth_date", "birth_year", "sex"]):
            patient = as_patient(row["patient_id"])
            if patient is not None:
                try:
                    birth = parse_date(row["birth_date"]) or parse_date(row["birth_year"])
                except ValueError as error:
                    raise CogstageError(f"{row.where('birth_date')}: {error}") from None
                people[patient] = Person(as_sex(row["sex"]), birth)
        return people

    def has(self, document: Document, people: Callable[[], Mapping[str, Person]], bad: BadRows) -> bool:
        """Whether a record counts; why others do not is counted. ``people`` gives what the source knows of patients."""
        reason = self._why_not(document, people)
        if reason:
            bad.notice(f"records left out by the cohort: {reason}")
        return not reason

    def _why_not(self, document: Document, people: Callable[[], Mapping[str, Person]]) -> str | None:
        if self.since is not None and (document.date is None or document.date < self.since):
            return f"before {self.since} or without a date"
        patient = document.patient_id
        if self.patients is not None and (patient is None or patient not in self._listed):
            return "patients who are not in the list"
        if self.ages is None and self.sex is None:
            return None
        person = Person() if patient is None else self._person(patient, people())
        if self.sex is not None and person.sex != self.sex:
            return "patients of another sex" if person.sex else "patients of unknown sex"
        if self.ages is not None:
            age = person.age_on(document.date)
            if age is None:
                return "patients of unknown age"
            if not self.ages[0] <= age <= self.ages[1]:
                return f"patients not of {self.ages[0]} to {self.ages[1]} years"
        return None

    def _person(self, patient: str, people: Mapping[str, Person]) -> Person:
        """What the list says of a patient, and for the rest the source."""
        given, own = self._listed.get(patient, Person()) if self.patients else Person(), people.get(patient, Person())
        return Person(given.sex or own.sex, given.birth or own.birth, None if given.birth else own.age)


def _ages(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,3})?-(\d{1,3})?", text.strip())
    if match is None or not (match[1] or match[2]):
        raise UsageError(f"`ages` must be a range of years, such as 18-65, 65- or -17, not {text}")
    low, high = int(match[1] or 0), int(match[2] or 999)
    if low > high:
        raise UsageError(f"`ages` {text}: the first age is above the second")
    return low, high
