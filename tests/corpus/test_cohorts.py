"""Cohort filters: the same conditions over all formats of records, against a filter in plain Python."""

from __future__ import annotations

import datetime
import json
import random
from pathlib import Path

import pytest
from corpus_files import put

from cogstage.cli.main import run
from cogstage.corpus.readers import open_reader
from cogstage.errors import CogstageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows

Event = tuple[int, datetime.date, int]  # patient, day, code
People = dict[int, tuple[str, datetime.date]]


def world() -> tuple[People, list[Event]]:
    chance = random.Random(3)
    day = datetime.date(1920, 1, 1)
    people = {
        patient: (chance.choice(["female", "male"]), day + datetime.timedelta(days=chance.randrange(36_000)))
        for patient in range(1, 30)
    }
    events = [
        (chance.randint(1, 31), datetime.date(2010, 1, 1) + datetime.timedelta(days=chance.randrange(4000)), n)
        for n in range(1, 300)
    ]
    return people, events  # patients 30 and 31 are unknown


def write_omop(folder: Path, people: People, events: list[Event]) -> Path:
    rows = [f"{p},{8532 if sex == 'female' else 8507},{b.year},{b.month},{b.day}" for p, (sex, b) in people.items()]
    put(folder / "person.csv", "\n".join(
        ["person_id,gender_concept_id,year_of_birth,month_of_birth,day_of_birth", *rows]))  # fmt: skip
    rows = [f"{p},{code},{day}" for p, day, code in events]
    put(folder / "condition_occurrence.csv", "\n".join(
        ["person_id,condition_concept_id,condition_start_date", *rows]))  # fmt: skip
    return folder


def write_fhir(folder: Path, people: People, events: list[Event]) -> Path:
    resources: list[dict[str, object]] = [
        {"resourceType": "Patient", "id": str(p), "gender": sex, "birthDate": str(birth)}
        for p, (sex, birth) in people.items()
    ]
    resources += [
        {"resourceType": "Condition", "id": f"c{code}", "subject": {"reference": f"Patient/{p}"},
         "onsetDateTime": str(day), "code": {"coding": [{"code": str(code)}]}}
        for p, day, code in events
    ]  # fmt: skip
    return put(folder / "all.ndjson", "\n".join(map(json.dumps, resources)))


def write_mimic(folder: Path, people: People, events: list[Event]) -> Path:
    rows = [f"{p},{sex[0].upper()},{birth} 00:00:00" for p, (sex, birth) in people.items()]
    put(folder / "PATIENTS.csv", "\n".join(["SUBJECT_ID,GENDER,DOB", *rows]))
    rows = [f"{p},{code},{code}" for p, _, code in events]
    put(folder / "DIAGNOSES_ICD.csv", "\n".join(["SUBJECT_ID,HADM_ID,ICD9_CODE", *rows]))
    rows = [f"{p},{code},{day} 12:00:00" for p, day, code in events]
    put(folder / "ADMISSIONS.csv", "\n".join(["SUBJECT_ID,HADM_ID,ADMITTIME", *rows]))
    return folder


def write_table(folder: Path, people: People, events: list[Event]) -> Path:
    rows = [f"{p},{day},{code}" for p, day, code in events]
    rows_of_people = [f"{p},{sex[0]},{birth}" for p, (sex, birth) in people.items()]
    put(folder.parent / "people.csv", "\n".join(["patient_id,sex,birth_date", *rows_of_people]))
    return put(folder / "events.csv", "\n".join(["patient_id,date,code", *rows]))


WRITERS = {"omop": write_omop, "fhir": write_fhir, "mimic": write_mimic, "table": write_table}


def codes(path: Path, **options: str) -> set[str]:
    bad = BadRows()
    found = {code.rpartition(":")[2] for document in open_reader(path, bad=bad, **options) for code in document.codes}
    assert len(found) + sum(n for what, n in bad.notices.items() if "cohort" in what) == 299
    return found


def years(birth: datetime.date, day: datetime.date) -> int:
    """Birthdays that were, one by one; that of 29 February is on 1 March in other years."""
    count = 0
    while True:
        try:
            birthday = birth.replace(year=birth.year + count + 1)
        except ValueError:
            birthday = datetime.date(birth.year + count + 1, 3, 1)
        if birthday > day:
            return count
        count += 1


@pytest.mark.parametrize("format", WRITERS)
def test_conditions_mean_the_same_in_every_format(tmp_path: Path, format: str) -> None:
    people, events = world()
    path = WRITERS[format](tmp_path / "in", people, events)
    of_people = {"patients": str(tmp_path / "people.csv")} if format == "table" else {}
    put(tmp_path / "list.txt", "\n".join(map(str, range(5, 15))) + "\n")
    known = [event for event in events if event[0] in people]
    assert codes(path, since="2015", **of_people) == {
        str(c) for p, day, c in (known if of_people else events) if day >= datetime.date(2015, 1, 1)
    }
    assert codes(path, sex="female", **of_people) == {str(c) for p, _, c in known if people[p][0] == "female"}
    for ages, low, high in (("18-65", 18, 65), ("65-", 65, 200), ("-64", 0, 64)):
        expected = {str(c) for p, day, c in known if day >= people[p][1] and low <= years(people[p][1], day) <= high}
        assert codes(path, ages=ages, **of_people) == expected
    assert codes(path, patients=str(tmp_path / "list.txt")) == {str(c) for p, _, c in events if 5 <= p < 15}


def test_faers_has_ages_in_its_reports(tmp_path: Path) -> None:
    demo = ["primaryid$caseid$caseversion$age$age_cod$sex", "11$1$1$70$YR$F", "21$2$1$840$MON$F", "31$3$1$7$DEC$M",
            "41$4$1$$$F", "51$5$1$600$WK$F"]  # fmt: skip
    put(tmp_path / "f/DEMO24Q1.txt", "\n".join(demo))
    drug = ["primaryid$role_cod$drugname$prod_ai", *(f"{n}1$PS$D{n}$" for n in range(1, 6))]
    put(tmp_path / "f/DRUG24Q1.txt", "\n".join(drug))
    documents = open_reader(tmp_path / "f", ages="65-", sex="female")
    assert {code for document in documents for code in document.codes} == {"drug:D1", "drug:D2"}


def test_the_command_line_records_the_cohort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    people, events = world()
    write_omop(tmp_path / "cdm", people, events)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        run(
            [
                "graph",
                "build",
                "cdm",
                "--window",
                "ever",
                "--sex",
                "male",
                "--ages",
                "18-",
                "--since",
                "2012",
                "--out",
                "g",
            ]
        )
    assert ended.value.code == 0
    graph = Graph.load("g")
    assert graph.made_with["reader"] == {"sex": "male", "ages": "18-", "since": "2012"}
    first, adult = datetime.date(2012, 1, 1), 18
    by_patient: dict[int, set[int]] = {}
    for p, day, code in events:
        if p in people and people[p][0] == "male" and day >= first and years(people[p][1], day) >= adult:
            by_patient.setdefault(p, set()).add(code)
    assert graph.n_edges == sum(len(found) * (len(found) - 1) // 2 for found in by_patient.values())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"ages": "old"}, "`ages` must be a range"),
        ({"ages": "65-18"}, "the first age is above"),
        ({"sex": "x"}, "`sex` must be female or male"),
        ({"since": "soon"}, "`since` must be a year or a day"),
        ({"patients": "missing.csv"}, "no such file"),
        ({"patients": "events.csv"}, "no column patient_id"),
    ],
)
def test_conditions_that_make_no_sense(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "n.csv", "patient_id,date,code\n1,2020-01-01,A\n")
    put(tmp_path / "events.csv", "person\n1\n")
    with pytest.raises(CogstageError, match=message):
        list(open_reader("n.csv", **options))


def test_a_year_of_birth_alone_counts_from_january(tmp_path: Path) -> None:
    put(tmp_path / "n.csv", "patient_id,date,code\n1,2020-01-01,A\n1,2019-12-31,B\n")
    put(tmp_path / "p.csv", "patient_id,birth_year\n1,2000\n")
    (document,) = open_reader(tmp_path / "n.csv", patients=str(tmp_path / "p.csv"), ages="20-")
    assert document.codes == ("A",)


def test_a_visit_needs_no_date(tmp_path: Path) -> None:
    put(tmp_path / "n.csv", "patient_id,visit_id,code\n1,v1,A\n1,v1,B\n1,v2,C\n")
    build_graph(tmp_path / "n.csv", tmp_path / "g", options=BuildOptions(unit="visit"))
    assert Graph.load(tmp_path / "g").n_edges == 1
    with pytest.raises(CogstageError, match="column date: no value, but the unit patient-window needs one"):
        build_graph(tmp_path / "n.csv", tmp_path / "g2")
