"""Names from an OMOP vocabulary folder: every code of the graph has its name, type and synonyms."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from cogstage.errors import UsageError
from cogstage.graph.build import build_graph
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.options import BuildOptions
from cogstage.tables import BadRows

CONCEPTS = [
    ("11", "Aspirin 81 MG tablet", "Drug", "RxNorm", "243670"),
    ("12", "Aspirin", "Drug", "RxNorm", "1191"),
    ("13", "Headache", "Condition", "SNOMED", "25064002"),
    ("14", "Pain", "Observation", "SNOMED", "22253000"),
    ("15", "Not in the records", "Condition", "SNOMED", "99"),
]
SYNONYMS = [("12", "acetylsalicylic acid", "4180186"), ("13", "Cephalgia", "4180186"), ("13", "Kopfschmerz", "4182504")]


def vocabulary_folder(folder: Path) -> Path:
    folder.mkdir()
    with (folder / "CONCEPT.csv").open("w", newline="") as handle:
        writer = csv.writer(handle, delimiter="\t")
        writer.writerow(["concept_id", "concept_name", "domain_id", "vocabulary_id", "concept_code"])
        writer.writerows(CONCEPTS)
    with (folder / "CONCEPT_SYNONYM.csv").open("w", newline="") as handle:
        writer = csv.writer(handle, delimiter="\t")
        writer.writerow(["concept_id", "concept_synonym_name", "language_concept_id"])
        writer.writerows(SYNONYMS)
    (folder / "CONCEPT_ANCESTOR.csv").write_text(
        "ancestor_concept_id\tdescendant_concept_id\tmin_levels_of_separation\n12\t11\t1\n12\t12\t0\n"
    )
    return folder


def named(folder: Path) -> dict[str, tuple[str, str, list[str]]]:
    words = Graph.load(folder).vocabulary
    also = [[name for name, node in words.synonyms if node == at] for at in range(len(words))]
    return {term: (words.name[at], words.type[at], also[at]) for at, term in enumerate(words.term)}


def test_all_codes_are_named_and_not_only_those_rolled_up(tmp_path: Path) -> None:
    folder = vocabulary_folder(tmp_path / "vocabulary")
    rows = ["doc_id,codes", "1,11;13", "2,11;14;77", "3,77;13"]
    (tmp_path / "r.csv").write_text("\n".join(rows))
    bad = BadRows()
    build_graph(tmp_path / "r.csv", tmp_path / "g", options=BuildOptions(unit="document"), vocabulary=folder, bad=bad)
    assert named(tmp_path / "g") == {
        "11": ("Aspirin 81 MG tablet", "drug", []),
        "13": ("Headache", "condition", ["Cephalgia"]),
        "14": ("Pain", "observation", []),
        "77": ("77", "", []),
    }
    assert bad.notices["codes without a row in CONCEPT, such as 77"] == 1
    (tmp_path / "parents.csv").write_text("code,parent\n11,12\n")
    how = {"roll_up": tmp_path / "parents.csv", "vocabulary": folder}
    build_graph(tmp_path / "r.csv", tmp_path / "rolled", options=BuildOptions(unit="document"), **how)  # type: ignore[arg-type]
    assert named(tmp_path / "rolled")["12"] == ("Aspirin", "drug", ["acetylsalicylic acid"])
    assert named(tmp_path / "rolled")["13"] == ("Headache", "condition", ["Cephalgia"])


def test_codes_of_a_system_are_named_by_their_code(tmp_path: Path) -> None:
    rows = ["patient_id,date,code,name", "1,2020-01-01,snomed:25064002,Head pain", "1,2020-01-01,rxnorm:1191,"]
    (tmp_path / "r.csv").write_text("\n".join(rows))
    build_graph(tmp_path / "r.csv", tmp_path / "g", vocabulary=vocabulary_folder(tmp_path / "v"))
    assert named(tmp_path / "g") == {
        "rxnorm:1191": ("Aspirin", "drug", ["acetylsalicylic acid"]),
        "snomed:25064002": ("Headache", "condition", ["Cephalgia", "Head pain"]),
    }


def test_omop_input_names_itself_and_says_if_it_cannot(tmp_path: Path) -> None:
    folder = vocabulary_folder(tmp_path / "cdm")
    events = ["person_id,condition_concept_id,condition_start_date", "1,13,2020-01-01", "1,14,2020-01-01"]
    (folder / "CONDITION_OCCURRENCE.csv").write_text("\n".join(events))
    build_graph(folder, tmp_path / "g")
    assert named(tmp_path / "g")["13"] == ("Headache", "condition", ["Cephalgia"])
    (folder / "CONCEPT.csv").unlink()
    bad = BadRows()
    build_graph(folder, tmp_path / "g", bad=bad)
    assert named(tmp_path / "g")["13"] == ("13", "", [])
    assert any("no table CONCEPT" in line for line in bad.summary())


def test_a_wrong_vocabulary_folder_is_named_before_anything_is_read(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "other.csv").write_text("a\n1\n")
    (tmp_path / "r.csv").write_text("doc_id,codes\n1,a;b\n")
    for folder, message in ((tmp_path / "missing", "is not a folder"), (tmp_path / "empty", "no table CONCEPT")):
        with pytest.raises(UsageError, match=message):
            build_graph(tmp_path / "r.csv", tmp_path / "g", vocabulary=folder)
