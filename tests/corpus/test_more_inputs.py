"""Inputs of many kinds through readers and command line, against counts with pandas or plain Python alone."""

from __future__ import annotations

import datetime
import itertools
import json
import random
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from corpus_files import put, read
from typer.testing import CliRunner

from cogstage.cli.graph import app
from cogstage.corpus.readers import READERS, Reader, Sample, open_reader, reader_options, recognise
from cogstage.corpus.records import Document
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows

EVER = BuildOptions(unit="patient-window", window=None, per="patient")


def edges_of(folder: Path) -> dict[tuple[str, str], int]:
    graph = Graph.load(folder)
    upper, term = graph.matrix.tocoo(), graph.vocabulary.term
    return {(term[i], term[j]): int(n) for i, j, n in zip(upper.row, upper.col, upper.data, strict=True) if i < j}


def pair_counts(rows: pd.DataFrame, unit: list[str], code: str) -> dict[tuple[str, str], int]:
    """How many units hold each pair of codes, by a join of the table with itself."""
    distinct = rows[[*unit, code]].drop_duplicates()
    joined = distinct.merge(distinct, on=unit)
    joined = joined[joined[f"{code}_x"] < joined[f"{code}_y"]]
    sizes = joined.groupby([f"{code}_x", f"{code}_y"]).size()
    return {(str(a), str(b)): int(n) for (a, b), n in sizes.items()}


OMOP = {
    "condition_occurrence": ("condition_concept_id", "condition_start_date", 100),
    "drug_exposure": ("drug_concept_id", "drug_exposure_start_date", 200),
    "device_exposure": ("device_concept_id", "device_exposure_start_date", 300),
    "drug_era": ("drug_concept_id", "drug_era_start_date", 400),
    "condition_era": ("condition_concept_id", "condition_era_start_date", 500),
}


def omop_tables(tables: list[str]) -> dict[str, pd.DataFrame]:
    """Random events; 0 and gaps among the concepts, so that pandas writes floats."""
    random = np.random.default_rng(4)
    found = {}
    for table in tables:
        concept, date, base = OMOP[table]
        concepts = (base + random.integers(0, 6, 80)).astype(float)
        concepts[random.random(80) < 0.1] = 0
        found[table] = pd.DataFrame(
            {
                f"{table}_id": np.arange(80),
                "person_id": random.integers(1, 12, 80).astype(float),
                concept: concepts,
                date: [f"2020-01-{1 + d:02d}" for d in random.integers(0, 28, 80)],
            }
        )
    return found


@pytest.mark.parametrize("tables", [["condition_occurrence", "drug_exposure", "device_exposure"],
                                    ["drug_era", "condition_era"], ["device_exposure", "drug_era"]])  # fmt: skip
def test_omop_against_pandas(tmp_path: Path, tables: list[str]) -> None:
    frames = omop_tables(tables)
    events = []
    for table, frame in frames.items():
        concept, date, _ = OMOP[table]
        (tmp_path / "cdm").mkdir(exist_ok=True)
        frame.to_csv(tmp_path / "cdm" / f"{table.upper()}.csv", index=False)
        events.append(frame.rename(columns={concept: "code", date: "date"})[["person_id", "code", "date"]])
    all_events = pd.concat(events)
    all_events = all_events[all_events["code"] != 0]
    all_events["code"] = all_events["code"].astype(int).astype(str)
    build_graph(tmp_path / "cdm", tmp_path / "graph", options=EVER)
    assert edges_of(tmp_path / "graph") == pair_counts(all_events, ["person_id"], "code")
    days = (pd.to_datetime(all_events["date"]) - pd.Timestamp("1970-01-01")).dt.days
    all_events["bin"] = days // 7
    build_graph(tmp_path / "cdm", tmp_path / "graph", options=BuildOptions(unit="patient-window", window=7))
    assert edges_of(tmp_path / "graph") == pair_counts(all_events, ["person_id", "bin"], "code")


def test_eras_are_read_where_their_source_is_missing(tmp_path: Path) -> None:
    for table, frame in omop_tables(["drug_exposure", "drug_era"]).items():
        (tmp_path / "cdm").mkdir(exist_ok=True)
        frame.to_csv(tmp_path / "cdm" / f"{table}.csv", index=False)
    bad = BadRows()
    assert {d.doc_id.split(":")[0] for d in open_reader(tmp_path / "cdm", bad=bad)} == {"drug_exposure"}
    assert any("DRUG_ERA was left out" in line for line in bad.summary())
    chosen = open_reader(tmp_path / "cdm", tables=["drug_era"])
    assert {d.doc_id.split(":")[0] for d in chosen} == {"drug_era"}


def resource(kind: str, code: str, patient: int, **more: Any) -> dict[str, Any]:
    element = {"Immunization": "vaccineCode", "Encounter": "reasonCode"}.get(kind, "code")
    concept: Any = {"coding": [{"system": "http://loinc.org", "code": code}]}
    if kind.startswith("Medication"):
        element = "medicationCodeableConcept"
    holder = "patient" if kind in ("Immunization", "AllergyIntolerance") else "subject"
    return {"resourceType": kind, "id": f"{kind}{code}{patient}{random.random()}",
            element: [concept] if kind == "Encounter" else concept,
            holder: {"reference": f"Patient/{patient}"}, **more}  # fmt: skip


FHIR_DATES = {"Condition": "onsetDateTime", "MedicationAdministration": "effectiveDateTime", "Encounter": "period",
              "Immunization": "occurrenceDateTime", "DiagnosticReport": "effectiveDateTime",
              "Observation": "effectiveDateTime", "Procedure": "performedDateTime"}  # fmt: skip


def test_fhir_against_a_plain_count(tmp_path: Path) -> None:
    chance = random.Random(9)
    rows, resources = [], []
    for _ in range(150):
        kind, code, patient = chance.choice(list(FHIR_DATES)), f"{chance.randrange(9)}", chance.randrange(12)
        day = f"2020-02-{chance.randint(1, 28):02d}"
        denied = chance.random() < 0.1
        date: Any = {"start": day} if kind == "Encounter" else day
        more = {"status": "entered-in-error"} if denied else {}
        resources.append(resource(kind, code, patient, **{FHIR_DATES[kind]: date}, **more))
        if not denied:
            rows.append((patient, f"loinc:{code}"))
    bundle = {"resourceType": "Bundle", "entry": [{"resource": each} for each in resources]}
    put(tmp_path / "a.json", json.dumps(bundle))
    build_graph(tmp_path / "a.json", tmp_path / "graph", options=EVER)
    by_patient: dict[int, set[str]] = {}
    for patient, code in rows:
        by_patient.setdefault(patient, set()).add(code)
    expected = Counter(p for codes in by_patient.values() for p in itertools.combinations(sorted(codes), 2))
    assert edges_of(tmp_path / "graph") == expected


def test_a_bulk_export_with_foreign_files(tmp_path: Path) -> None:
    folder = tmp_path / "bulk"
    request = {"resourceType": "MedicationRequest", "id": "r", "subject": {"reference": "Patient/1"},
               "medicationReference": {"reference": "Medication/m"}, "authoredOn": "2020-01-01"}  # fmt: skip
    medication = {"resourceType": "Medication", "id": "m", "code": {"coding": [{"code": "42", "display": "Iron"}]}}
    document = {"resourceType": "DocumentReference", "id": "d", "subject": {"reference": "Patient/1"},
                "context": {"encounter": [{"reference": "Encounter/e"}]},
                "content": [{"attachment": {"contentType": "application/pdf", "data": "AAAA"}},
                            {"attachment": {"contentType": "text/plain", "url": "Binary/9"}},
                            {"attachment": {"contentType": "text/plain", "data": "ZmV2ZXI="}}]}  # fmt: skip
    report = {"resourceType": "DiagnosticReport", "id": "p", "subject": {"reference": "Patient/1"},
              "code": {"coding": [{"code": "7"}]}, "conclusion": "cough",
              "encounter": {"reference": "Encounter/e"}}  # fmt: skip
    put(
        folder / "Document.ndjson",
        json.dumps(document) + "\n" + json.dumps({"resourceType": "Binary", "id": "9"}) + "\n",
    )
    put(folder / "MedicationRequest.ndjson", json.dumps(request) + "\n")
    put(folder / "Report.ndjson", json.dumps(report) + "\n")
    put(folder / "ZMedication.ndjson", json.dumps(medication) + "\n")
    put(folder / "log.ndjson", '{"level": "info"}\n')
    put(folder / "README.md", "about")
    bad = BadRows()
    reader = open_reader(folder, "fhir", bad=bad)
    documents = {d.doc_id: d for d in reader}
    assert documents["MedicationRequest/r"].codes == ("42",)
    assert reader.names["42"] == ("Iron", "medicationrequest")
    assert (documents["DocumentReference/d"].text, documents["DocumentReference/d"].visit_id) == ("fever", "e")
    assert (documents["DiagnosticReport/p"].text, documents["DiagnosticReport/p"].codes) == ("cough", ("7",))
    said = "\n".join(bad.summary())
    for part in ("log.ndjson contains no FHIR resources", "application/pdf, not read: 1", "given by url, not read: 1",
                 "Binary resources, not read: 1", "not in the format fhir, not read: 1"):  # fmt: skip
        assert part in said
    behind = put(tmp_path / "one.ndjson", json.dumps(request) + "\n" + json.dumps(medication) + "\n")
    assert [d.codes for d in read(behind)] == [("42",)]


MEDLINE = """<PubmedArticleSet><PubmedArticle><MedlineCitation><PMID>1</PMID>
<Article><ArticleTitle>T</ArticleTitle></Article>
<ChemicalList><Chemical><RegistryNumber>0</RegistryNumber>
<NameOfSubstance UI="C000605">ticagrelor</NameOfSubstance></Chemical>
</ChemicalList><SupplMeshList><SupplMeshName Type="Disease" UI="C538">Rare Disease</SupplMeshName></SupplMeshList>
<MeshHeadingList><MeshHeading>
<DescriptorName UI="D001" MajorTopicYN="N">A</DescriptorName></MeshHeading></MeshHeadingList>
</MedlineCitation></PubmedArticle></PubmedArticleSet>"""


def test_medline_chemicals_and_supplementary_concepts(tmp_path: Path) -> None:
    path = put(tmp_path / "p.xml", MEDLINE)
    assert [d.codes for d in read(path)] == [("D001",)]
    reader = open_reader(path, chemicals=True, supplementary=True)
    assert [d.codes for d in reader] == [("D001", "C000605", "C538")]
    assert reader.names["C538"] == ("Rare Disease", "mesh")


def test_medline_headings_against_a_plain_count(tmp_path: Path) -> None:
    chance = random.Random(2)
    articles = {str(n): chance.sample([f"D{d}" for d in range(9)], chance.randint(0, 5)) for n in range(60)}
    xml = "".join(
        f"<PubmedArticle><MedlineCitation><PMID>{pmid}</PMID><Article/><MeshHeadingList>"
        + "".join(
            f'<MeshHeading><DescriptorName UI="{d}" MajorTopicYN="N">name {d}</DescriptorName></MeshHeading>'
            for d in codes
        )
        + "</MeshHeadingList></MedlineCitation></PubmedArticle>"
        for pmid, codes in articles.items()
    )
    put(tmp_path / "p.xml.gz", f"<PubmedArticleSet>{xml}</PubmedArticleSet>")
    build_graph(tmp_path / "p.xml.gz", tmp_path / "graph", options=BuildOptions(unit="document"))
    assert edges_of(tmp_path / "graph") == Counter(
        pair for codes in articles.values() for pair in itertools.combinations(sorted(codes), 2)
    )
    assert (
        Graph.load(tmp_path / "graph").vocabulary.find("name D3")
        == Graph.load(tmp_path / "graph").vocabulary.index["D3"]
    )


WORDS = ["fever", "cough", "rash", "aspirin", "chest pain"]


@pytest.mark.parametrize("unit", ["document", "sentence"])
def test_notes_against_a_plain_count(tmp_path: Path, unit: str) -> None:
    """Sentences of plain mentions, written and counted without the annotator."""
    chance = random.Random(6)
    notes = [[chance.sample(WORDS, chance.randint(0, 3)) for _ in range(chance.randint(1, 4))] for _ in range(80)]
    frame = pd.DataFrame({
        "doc_id": range(len(notes)),
        "text": ["\n".join(f"Patient has {' and '.join(terms) or 'nothing'}." for terms in note) for note in notes],
    })  # fmt: skip
    frame.to_csv(tmp_path / "n.csv", index=False)
    lexicon = put(tmp_path / "l.tsv", "term\n" + "\n".join(WORDS) + "\n")
    build_graph(tmp_path / "n.csv", tmp_path / "graph", lexicon, BuildOptions(unit=unit))  # type: ignore[arg-type]
    units = [set(itertools.chain(*note)) for note in notes] if unit == "document" else list(itertools.chain(*notes))
    assert edges_of(tmp_path / "graph") == Counter(p for u in units for p in itertools.combinations(sorted(set(u)), 2))


def test_annotated_text_is_found_by_its_mentions(tmp_path: Path) -> None:
    mentions = [("dopamine", "D004298"), ("low blood pressure", "D007022"), ("hypotension", "D007022"),
                ("DA", "D004298"), ("dopamine", "D004298"), ("hypotension", "D007022")]  # fmt: skip
    lines = "".join(f"1\t0\t3\t{mention}\tDisease\t{code}\n" for mention, code in mentions)
    put(tmp_path / "a.pubtator", f"1|t|Title\n1|a|Text\n{lines}")
    build_graph(tmp_path / "a.pubtator", tmp_path / "graph", options=BuildOptions(unit="document"))
    vocabulary = Graph.load(tmp_path / "graph").vocabulary
    assert vocabulary.name == ("dopamine", "hypotension")
    assert vocabulary.find("low blood pressure") == vocabulary.find("Hypotension") == vocabulary.index["D007022"]


def faers(folder: Path) -> dict[tuple[str, str], int]:
    """Two quarters with versions and a deleted case; the expected drug-reaction pairs per case."""
    chance = random.Random(5)
    demo: dict[str, list[str]] = {"24Q1": [], "24Q2": []}
    drug: dict[str, list[str]] = {"24Q1": [], "24Q2": []}
    reac: dict[str, list[str]] = {"24Q1": [], "24Q2": []}
    kept: dict[int, set[str]] = {}
    for case in range(1, 25):
        for version, quarter in enumerate(["24Q1", "24Q2"][: chance.randint(1, 2)], start=1):
            report = f"{case}{version}"
            demo[quarter].append(f"{report}${case}${version}$202401$20240315")
            codes = set()
            for role in ("PS", "SS", "C"):
                ingredients = chance.choice(["ASPIRIN", "IRON\\ZINC", "", "ASPIRIN."])
                drug[quarter].append(f"{report}${case}$1${role}$brand {role}${ingredients}")
                if role != "C":
                    names = ingredients.rstrip(".").split("\\") if ingredients else [f"BRAND {role}"]
                    codes |= {f"drug:{name}" for name in names}
            for term in chance.sample(["Nausea", "Rash", "Death"], 2):
                reac[quarter].append(f"{report}${case}${term}$")
                codes.add(f"pt:{term.upper()}")
            kept[case] = codes  # the later version replaces the earlier one
    for quarter in demo:
        put(
            folder / f"DEMO{quarter}.txt",
            "primaryid$caseid$caseversion$event_dt$fda_dt\n" + "\n".join(demo[quarter]) + "\n",
        )
        put(
            folder / f"DRUG{quarter}.txt",
            "primaryid$caseid$drug_seq$role_cod$drugname$prod_ai\r\n" + "\r\n".join(drug[quarter]),
        )
        put(folder / f"REAC{quarter}.txt", "primaryid$caseid$pt$drug_rec_act\n" + "\n".join(reac[quarter]) + "\n")
    put(folder / "deleted" / "DELE24Q2.txt", "3\n4\n")
    return Counter(
        pair for case, codes in kept.items() if case not in (3, 4) for pair in itertools.combinations(sorted(codes), 2)
    )


def test_faers_against_a_plain_count(tmp_path: Path) -> None:
    expected = faers(tmp_path / "faers")
    assert recognise(tmp_path / "faers") == "faers"
    for options in (EVER, BuildOptions(unit="document")):
        build_graph(tmp_path / "faers", tmp_path / "graph", options=options)
        assert edges_of(tmp_path / "graph") == expected
    with zipfile.ZipFile(tmp_path / "faers.zip", "w") as archive:
        for path in sorted((tmp_path / "faers").rglob("*.txt")):
            archive.write(path, f"ascii/{path.name}")
    build_graph(tmp_path / "faers.zip", tmp_path / "graph", options=EVER)
    assert edges_of(tmp_path / "graph") == expected
    (first, *_) = open_reader(tmp_path / "faers", roles=["C"])
    assert first.date == datetime.date(2024, 1, 1)
    with pytest.raises(UsageError, match="unknown role X"):
        open_reader(tmp_path / "faers", roles=["X"])


def test_combinations_of_ingredients_are_counted_in_faers(tmp_path: Path) -> None:
    put(tmp_path / "f/DEMO24Q1.txt", "primaryid$caseid$caseversion\n1$1$1\n")
    put(tmp_path / "f/DRUG24Q1.txt", "primaryid$role_cod$drugname$prod_ai\n1$PS$X$IRON\\ZINC\n1$PS$Y$TIN\n")
    put(tmp_path / "f/REAC24Q1.txt", "primaryid$pt\n1$NAUSEA\n")
    bad = BadRows()
    codes = {code for document in open_reader(tmp_path / "f", bad=bad) for code in document.codes}
    assert codes == {"drug:IRON", "drug:ZINC", "drug:TIN", "pt:NAUSEA"}
    assert [count for what, count in bad.notices.items() if "several active ingredients" in what] == [1]


NOTES = [{"doc_id": "1", "text": "fever; cough"}, {"doc_id": "2", "text": 'a "rash"'}]


def test_tables_however_they_are_written(tmp_path: Path) -> None:
    files = [
        put(tmp_path / "semicolon.csv", 'doc_id;text\n1;"fever; cough"\n2;"a ""rash"""\n'),
        put(tmp_path / "pipe.csv", 'doc_id|text\n1|fever; cough\n2|"a ""rash"""\n'),
        put(tmp_path / "array.json", json.dumps(NOTES)),
        put(tmp_path / "array.jsonl", json.dumps(NOTES, indent=1)),
        put(tmp_path / "bom.csv", b"\xef\xbb\xbf" + b'doc_id,text\n1,fever; cough\n2,"a ""rash"""\n'),
        put(tmp_path / "one_after_the_other.json", "\n".join(json.dumps(note) for note in NOTES)),
    ]
    with zipfile.ZipFile(tmp_path / "packed.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(files[0], "folder/a.csv")
        archive.writestr("__MACOSX/._a.csv", "junk")
    for path in [*files, tmp_path / "packed.zip"]:
        reader = open_reader(path)
        assert [(d.doc_id, d.text) for d in reader] == [(n["doc_id"], n["text"]) for n in NOTES], path
        assert reader.position() == reader.bytes_total


def test_folders_of_text(tmp_path: Path) -> None:
    for name in ("b", "a"):
        put(tmp_path / "notes" / f"{name}.txt", f"fever of {name}")
    put(tmp_path / "notes" / "empty.txt", "")
    assert recognise(tmp_path / "notes") == "text"
    bad = BadRows()
    assert [(d.doc_id, d.text) for d in open_reader(tmp_path / "notes", bad=bad)] == [
        ("a", "fever of a"),
        ("b", "fever of b"),
    ]
    assert bad.notices == {"files without text": 1}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["n.csv", "n.tsv", "n.jsonl", "n.txt", "n.pubtator"])
def test_utf_16_is_named(tmp_path: Path, name: str, encoding: str) -> None:
    path = put(tmp_path / name, "doc_id,text\n1,fever\n".encode(encoding))
    with pytest.raises(CogstageError, match=rf"{name}: UTF-16 text; convert it to UTF-8"):
        read(path)


def test_columns_and_dates_can_be_mapped(tmp_path: Path) -> None:
    path = put(tmp_path / "n.csv", "id,note_text,text,seen\n1,fever,ignored,11/08/2011\n")
    options = reader_options(["columns=doc_id=id,text=note_text,date=seen", "date-format=%d/%m/%Y"])
    (document,) = read(path, **options)
    assert (document.doc_id, document.text, document.date) == ("1", "fever", datetime.date(2011, 8, 11))
    with pytest.raises(CogstageError, match=r"n\.csv:2, column date: '11/08/2011' is not a date in the format %Y"):
        read(path, **{**options, "date_format": "%Y"})
    for wrong in (["columns=text"], ["depth=3"], ["codings"]):
        with pytest.raises(UsageError):
            reader_options(wrong)


RUNNER = CliRunner()


def test_switches_of_the_command_line(tmp_path: Path) -> None:
    notes = put(tmp_path / "n.csv", "id;note_text;seen\n1;fever and cough, MS;11/08/2011\n")
    lexicon = put(tmp_path / "l.tsv", "term\nfever\ncough\nms\n")
    arguments = ["build", str(notes), "--lexicon", str(lexicon), "--column", "doc_id=id", "--column", "text=note_text",
                 "--column", "date=seen", "--date-format", "%d/%m/%Y", "--out", str(tmp_path / "graph")]  # fmt: skip
    result = RUNNER.invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert len(edges_of(tmp_path / "graph")) == 3
    faers(tmp_path / "faers")
    arguments = ["build", str(tmp_path / "faers"), "--reader-option", "roles=C", "--out", str(tmp_path / "graph")]
    assert RUNNER.invoke(app, [*arguments, "--unit", "document"]).exit_code == 0
    assert any(term == "drug:BRAND C" for pair in edges_of(tmp_path / "graph") for term in pair)
    listed = RUNNER.invoke(app, ["formats", "--json"])
    assert set(json.loads(listed.stdout)) >= {"table", "omop", "fhir", "faers", "medline", "pubtator", "bioc", "text"}


def test_a_new_reader_is_one_class(tmp_path: Path) -> None:
    class PairReader(Reader):
        """Lines of words; each is a document."""

        format = "pairs"
        title = "lines of words"

        @classmethod
        def recognises(cls, sample: Sample) -> int:
            return 2 * int(sample.suffix == ".pairs")

        def _read(self, path: Path) -> Iterator[Document]:
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                yield Document(str(number), codes=tuple(line.split()), where=f"{path}:{number}")

    try:
        path = put(tmp_path / "x.pairs", "a b\na b c\n")
        result = RUNNER.invoke(app, ["build", str(path), "--unit", "document", "--out", str(tmp_path / "graph")])
        assert result.exit_code == 0, result.output
        assert edges_of(tmp_path / "graph") == {("a", "b"): 2, ("a", "c"): 1, ("b", "c"): 1}
        assert "pairs: lines of words" in RUNNER.invoke(app, ["formats"]).stdout
    finally:
        del READERS["pairs"]
