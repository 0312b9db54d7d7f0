"""OMOP folders and FHIR resources, written small by the tests."""

from __future__ import annotations

import base64
import datetime
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_files import DAY, put, read

from cogstage.corpus.readers import open_reader, recognise
from cogstage.errors import CogstageError, UsageError
from cogstage.tables import BadRows


def omop(folder: Path, parquet: bool = False, nlp: bool = True) -> Path:
    tables = {
        "NOTE": ["note_id,person_id,note_date,note_text", "1,7,2011-08-11,Has fever", "2,8,2011-08-11,Well"],
        "CONDITION_OCCURRENCE": [
            "condition_occurrence_id,person_id,condition_concept_id,condition_start_date",
            "5,7,100,2011-08-11",
            "6,7,0,2011-08-11",
        ],
        "DRUG_EXPOSURE": ["drug_exposure_id,person_id,drug_concept_id,drug_exposure_start_date", "1,7,200,2011-08-11"],
        "OBSERVATION": ["observation_id,person_id,observation_concept_id,observation_date", "1,7,300,2011-08-11"],
        "MEASUREMENT": ["measurement_id,person_id,measurement_concept_id,measurement_date", "1,7,400,2011-08-11"],
        "PROCEDURE_OCCURRENCE": [
            "procedure_occurrence_id,person_id,procedure_concept_id,procedure_date",
            "1,8,500,2011-08-11",
        ],
    }
    if nlp:
        tables["NOTE_NLP"] = [
            "note_nlp_id,note_id,note_nlp_concept_id,term_exists", "1,1,100,Y", "2,1,600,", "3,1,700,N", "4,2,100,Y",
            "5,3,100,Y",
        ]  # fmt: skip
    folder.mkdir(parents=True)
    for name, lines in tables.items():
        if parquet:
            header, *rows = [line.split(",") for line in lines]
            rows_by_name = [dict(zip(header, row, strict=True)) for row in rows]
            pq.write_table(pa.Table.from_pylist(rows_by_name), folder / f"{name.lower()}.parquet")
        else:
            put(folder / f"{name}.csv", "\n".join(lines) + "\n")
    # the vocabulary files come with tabs, whatever their name says
    put(
        folder / "CONCEPT.csv",
        "concept_id\tconcept_name\tdomain_id\n100\tFever\tCondition\n200\tAspirin\tDrug\n9\tx\ty\n",
    )
    return folder


@pytest.mark.parametrize("parquet", [False, True])
def test_omop(tmp_path: Path, parquet: bool) -> None:
    folder = omop(tmp_path / "cdm", parquet)
    assert recognise(folder) == "omop"
    reader = open_reader(folder)
    documents = {d.doc_id: d for d in reader}
    assert {d.codes for d in documents.values()} == {
        ("100", "600"), ("100",), ("200",), ("300",), ("400",), ("500",),
    }  # fmt: skip
    assert (documents["note:1"].patient_id, documents["note:1"].date) == ("7", DAY)
    assert (documents["note:3"].patient_id, documents["note:3"].date) == (None, None)
    assert documents["condition_occurrence:5"].patient_id == "7"
    assert "condition_occurrence:6" not in documents
    assert reader.names == {"100": ("Fever", "condition"), "200": ("Aspirin", "drug")}
    assert reader.names_of(["200"]) == {"200": ("Aspirin", "drug")}
    assert reader.position() <= reader.bytes_total
    assert [(d.doc_id, d.text) for d in open_reader(folder, tables=["note"])] == [
        ("note:1", "Has fever"),
        ("note:2", "Well"),
    ]


def test_omop_notes_are_read_where_nothing_was_found_in_them_yet(tmp_path: Path) -> None:
    documents = read(omop(tmp_path / "cdm", nlp=False))
    assert sum(bool(d.text) for d in documents) == 2


def test_omop_mistakes(tmp_path: Path) -> None:
    folder = omop(tmp_path / "cdm")
    with pytest.raises(UsageError, match="unknown OMOP table"):
        open_reader(folder, tables=["visits"])
    (folder / "OBSERVATION.csv").unlink()
    with pytest.raises(UsageError, match="contains no table observation"):
        open_reader(folder, tables=["observation"])
    put(folder / "MEASUREMENT.csv", "person_id,measurement_concept_id,measurement_date\n1,2,3rd of May\n")
    with pytest.raises(CogstageError, match=r"MEASUREMENT\.csv:2, column measurement_date: '3rd of May'"):
        read(folder)
    put(folder / "MEASUREMENT.csv", "person_id,measurement_date\n1,2011\n")
    with pytest.raises(CogstageError, match=r"MEASUREMENT\.csv:1: no column measurement_concept_id"):
        read(folder)
    with pytest.raises(UsageError, match="one folder"):
        open_reader(folder / "NOTE.csv", "omop")


def coded(kind: str, code: str, system: str = "http://snomed.info/sct", **more: Any) -> dict[str, Any]:
    concept = {"coding": [{"system": system, "code": code, "display": f"D{code}"}, {"system": "s", "code": "2nd"}]}
    element = "medicationCodeableConcept" if kind.startswith("Medication") else "code"
    holder = "patient" if kind == "AllergyIntolerance" else "subject"
    return {"resourceType": kind, "id": code, element: concept, holder: {"reference": "Patient/7"}, **more}


RESOURCES = [
    {"resourceType": "Patient", "id": "7"},
    coded("Condition", "1", onsetDateTime="2011-08-11T01:00:00Z"),
    coded("Condition", "2", verificationStatus={"coding": [{"code": "refuted"}]}),
    coded("MedicationRequest", "3", "http://www.nlm.nih.gov/research/umls/rxnorm", authoredOn="2011-08"),
    coded("MedicationStatement", "4", "urn:x", effectivePeriod={"start": "2011-08-11"}),
    coded("AllergyIntolerance", "5", recordedDate="2011"),
    coded("Observation", "6", "http://loinc.org", valueCodeableConcept={"coding": [{"code": "v"}]}),
    coded("Procedure", "7", status="not-done"),
    coded("Procedure", "8", performedDateTime="2011-08-11"),
    {
        "resourceType": "MedicationRequest", "id": "9", "subject": {"reference": "urn:uuid:7"},
        "contained": [{"resourceType": "Medication", "id": "m", "code": {"text": "Iron  pills"}}],
        "medicationReference": {"reference": "#m"},
    },
    {
        "resourceType": "DocumentReference", "id": "10", "subject": {"reference": "https://h/Patient/7"},
        "date": "2011-08-11T00:00:00Z",
        "content": [
            {"attachment": {"contentType": "text/plain; charset=latin-1", "data": "bmHvdmU="}},
            {"attachment": {"contentType": "text/html", "data": base64.b64encode(b"<p>a &amp; <b>b</b></p>").decode()}},
            {"attachment": {"contentType": "application/pdf", "data": "AAAA"}},
        ],
    },
]  # fmt: skip
FHIR_EXPECTED = {
    "Condition/1": ("7", DAY, ("snomed:1",)),
    "MedicationRequest/3": ("7", datetime.date(2011, 8, 1), ("rxnorm:3",)),
    "MedicationStatement/4": ("7", DAY, ("urn:x|4",)),
    "AllergyIntolerance/5": ("7", datetime.date(2011, 1, 1), ("allergy:snomed:5",)),
    "Observation/6": ("7", None, ("loinc:6", "v")),
    "Procedure/8": ("7", DAY, ("snomed:8",)),
    "MedicationRequest/9": ("7", None, ("text:iron pills",)),
    "DocumentReference/10": ("7", DAY, ()),
}


def test_fhir(tmp_path: Path) -> None:
    bundle = {"resourceType": "Bundle", "type": "collection", "entry": [{"resource": each} for each in RESOURCES]}
    files = [
        put(tmp_path / "a.json", json.dumps(bundle, indent=2)),
        put(tmp_path / "b.ndjson.gz", "\n".join(json.dumps(each) for each in RESOURCES)),
        put(tmp_path / "c.ndjson", json.dumps(bundle)),
    ]
    for path in files:
        assert recognise(path) == "fhir"
        reader = open_reader(path)
        documents = {d.doc_id: d for d in reader}
        assert {key: (d.patient_id, d.date, d.codes) for key, d in documents.items()} == FHIR_EXPECTED
        assert documents["DocumentReference/10"].text.split() == ["naïve", "a", "&", "b"]
        assert reader.names["snomed:1"] == ("D1", "condition")
        assert reader.names["text:iron pills"] == ("Iron pills", "medicationrequest")
    assert ("snomed:1", "s|2nd") in {d.codes for d in open_reader(files[0], codings="all")}
    (single,) = read(put(tmp_path / "one.json", json.dumps(RESOURCES[1])))
    assert single.codes == ("snomed:1",)


@pytest.mark.parametrize(
    ("resource", "said"),
    [
        ({"id": "1"}, "column resourceType: no value"),
        ({"resourceType": "Condition", "subject": {"reference": "Patient/7"}}, "column code: no code"),
        (coded("Condition", "1", onsetDateTime="soon"), "column onsetDateTime: 'soon' is not a date"),
        ({**coded("Condition", "1"), "code": "x"}, "not a FHIR R4 Condition"),
        (
            {"resourceType": "DocumentReference", "content": [{"attachment": {"data": "?"}}]},
            "attachment.data: not base64",
        ),
        ({"resourceType": "DocumentReference", "content": [{"attachment": {"data": "/w=="}}]}, "not UTF-8 text"),
    ],
)
def test_fhir_mistakes(tmp_path: Path, resource: dict[str, Any], said: str) -> None:
    path = put(tmp_path / "r.ndjson", json.dumps(RESOURCES[0]) + "\n" + json.dumps(resource) + "\n")
    with pytest.raises(CogstageError, match=rf"r\.ndjson:2.*{said}"):
        read(path, "fhir")
    bad = BadRows(skip=True)
    assert read(path, "fhir", bad=bad) == []
    assert bad.count == 1


def test_broken_fhir_lines(tmp_path: Path) -> None:
    path = put(tmp_path / "r.ndjson", json.dumps(RESOURCES[1]) + "\n{broken\n" + json.dumps(RESOURCES[3]) + "\n")
    with pytest.raises(CogstageError, match=r"r\.ndjson:2, column 2: not JSON"):
        read(path)
    bad = BadRows(skip=True)
    assert len(read(path, bad=bad)) == 2
    assert bad.count == 1


def test_an_allergy_is_not_the_drug(tmp_path: Path) -> None:
    """Allergies and values of observations as codes of their own; what is not read is counted."""
    penicillin = {"coding": [{"system": "http://www.nlm.nih.gov/research/umls/rxnorm", "code": "7980",
                              "display": "Penicillin"}]}  # fmt: skip
    latex = {"text": "Latex allergy"}
    positive = {"coding": [{"system": "http://snomed.info/sct", "code": "10828004", "display": "Positive"}]}
    pressure = {"coding": [{"system": "http://loinc.org", "code": "85354-9"}]}
    about = {"patient": {"reference": "Patient/1"}, "subject": {"reference": "Patient/1"}}
    resources = [
        {"resourceType": "AllergyIntolerance", "id": "a", "code": penicillin, **about},
        {"resourceType": "AllergyIntolerance", "id": "l", "code": latex, **about},
        {"resourceType": "MedicationRequest", "id": "m", "medicationCodeableConcept": penicillin, **about},
        {"resourceType": "Observation", "id": "o", "code": {"coding": [{"code": "1"}]},
         "valueCodeableConcept": positive, **about},
        {"resourceType": "Observation", "id": "p", "code": pressure,
         "component": [{"code": pressure}, {"code": pressure}], **about},
    ]  # fmt: skip
    bad = BadRows()
    reader = open_reader(put(tmp_path / "a.ndjson", "\n".join(map(json.dumps, resources))), bad=bad)
    codes = {document.doc_id: document.codes for document in reader}
    assert codes == {
        "AllergyIntolerance/a": ("allergy:rxnorm:7980",),
        "AllergyIntolerance/l": ("allergy:text:latex allergy",),
        "MedicationRequest/m": ("rxnorm:7980",),
        "Observation/o": ("1", "snomed:10828004"),
        "Observation/p": ("loinc:85354-9",),
    }
    assert reader.names["allergy:rxnorm:7980"][0] == "Allergy to Penicillin"
    assert reader.names["allergy:text:latex allergy"][0] == "Latex allergy"
    assert bad.notices["values of observations that are codes, counted as codes of their own"] == 1
    assert bad.notices["components of observations, not read"] == 2
