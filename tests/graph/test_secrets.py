"""One patient's words planted wherever a record can hold some; none of them may reach what is shared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from planted_secrets import SECRET, folder_holds

from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions, PrivacyOptions

PRIVATE = PrivacyOptions(8.0, 0.01, 3)


def coded_table(folder: Path) -> Path:
    """E11 and I10 of 300 patients; the first patient's records hold the secret in every field."""
    path = folder / f"{SECRET}-mary.csv"
    rows = [
        f"{SECRET}-mary,2020-01-01,E11,Diabetes {SECRET},type {SECRET},{SECRET}-1",
        f"{SECRET}-mary,2020-01-01,I10,Hypertension,{SECRET} type,{SECRET}-2",
        f"{SECRET}-mary,2020-01-01,{SECRET}-code,A {SECRET} bit her,injury,{SECRET}-3",
    ]
    for patient in range(300):
        rows += [
            f"p{patient},2020-01-01,{c},{n},disorder,{c}{patient}" for c, n in (("E11", "Diabetes"), ("I10", "High"))
        ]
    path.write_text("patient_id,date,code,name,type,doc_id\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def fhir(folder: Path) -> Path:
    path = folder / "records.ndjson"
    with path.open("w", encoding="utf-8") as handle:
        for patient in range(300):
            mine = patient == 0
            for code in ("1", "2"):
                concept = {"coding": [{"system": "http://snomed.info/sct", "code": code}], "text": f"finding {code}"}
                if mine:
                    concept["text"] = f"HTN - pt was bitten by a {SECRET}"
                    concept["coding"][0]["display"] = f"display {SECRET} {code}"  # type: ignore[index]
                resource = {
                    "resourceType": "Condition",
                    "id": f"{SECRET if mine else 'c'}-{patient}-{code}",
                    "subject": {"reference": f"Patient/{SECRET if mine else patient}"},
                    "onsetDateTime": "2020-01-01",
                    "code": concept,
                }
                handle.write(json.dumps(resource) + "\n")
    return path


def pubtator(folder: Path) -> Path:
    path = folder / "abstracts.pubtator"
    with path.open("w", encoding="utf-8") as handle:
        for number in range(300):
            words = (f"{SECRET} pain", f"{SECRET} drug") if number == 0 else ("pain", "drug")
            title = f"{words[0]} and {words[1]}"
            handle.write(f"{number}|t|{title}\n{number}|a|\n")
            handle.write(f"{number}\t0\t{len(words[0])}\t{words[0]}\tDisease\tD1\n")
            handle.write(f"{number}\t{len(words[0]) + 5}\t{len(title)}\t{words[1]}\tChemical\tD2\n\n")
    return path


@pytest.mark.parametrize("source", [coded_table, fhir, pubtator])
@pytest.mark.parametrize("kind", ["suppressed", "private"])
def test_no_word_of_one_patient_reaches_a_shared_graph(tmp_path: Path, source: object, kind: str) -> None:
    path = source(tmp_path)  # type: ignore[operator]
    options = BuildOptions(private=PRIVATE) if kind == "private" else BuildOptions(suppress_below=11)
    build_graph(path, tmp_path / "open")
    assert folder_holds(tmp_path / "open", SECRET)  # the plant is there, and the search finds it
    build_graph(path, tmp_path / "shared", options=options)
    assert Graph.load(tmp_path / "shared").n_edges == 1
    assert folder_holds(tmp_path / "shared", SECRET) == []


def test_names_that_enough_patients_share_stay_and_others_are_the_code(tmp_path: Path) -> None:
    path = coded_table(tmp_path)
    build_graph(path, tmp_path / "suppressed", options=BuildOptions(suppress_below=11))
    assert Graph.load(tmp_path / "suppressed").vocabulary.name == ("Diabetes", "High")
    build_graph(path, tmp_path / "many", options=BuildOptions(suppress_below=101))  # counted up to 100 only
    assert Graph.load(tmp_path / "many").vocabulary.name == ("E11", "I10")
    build_graph(path, tmp_path / "private", options=BuildOptions(private=PRIVATE))
    assert Graph.load(tmp_path / "private").vocabulary.name == ("E11", "I10")
    text = (tmp_path / "suppressed" / "meta.json").read_text(encoding="utf-8")
    assert "sha256" in text
    assert path.name not in text


def test_mentions_are_synonyms(tmp_path: Path) -> None:
    build_graph(pubtator(tmp_path), tmp_path / "graph")
    vocabulary = Graph.load(tmp_path / "graph").vocabulary
    assert vocabulary.name == ("pain", "drug")
    assert vocabulary.find(f"{SECRET} drug") == vocabulary.index["D2"]
