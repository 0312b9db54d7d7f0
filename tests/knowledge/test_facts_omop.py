"""OMOP vocabularies: relationships in their direction, withdrawn rows, synonyms, other vocabularies."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from knowledge_files import concept, relationship, synonym, write_omop

from cogstage.errors import CogstageError, UsageError
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Names
from cogstage.knowledge.omop import facts_from_omop

CONCEPTS = [
    concept(1, "Aspirin", "Drug"),
    concept(2, "Pain", "Condition"),
    concept(3, "Fever", "Condition", "SNOMED"),
    concept(4, "Influenza \"the flu\" 'type A'", "Condition", "SNOMED"),
    concept(5, "Old pain", "Condition", invalid="D"),
]


def triples(facts: Facts) -> set[tuple[str, str, str]]:
    return set(zip(facts.head, facts.relation, facts.tail, strict=True))


@pytest.mark.parametrize(
    ("first", "name", "second", "fact"),
    [
        (1, "May treat", 2, ("1", "may_treat", "2")),
        (2, "May be treated by", 1, ("1", "may_treat", "2")),
        (1, "Has FDA-appr ind", 2, ("1", "may_treat", "2")),
        (2, "Is off-label ind of", 1, ("1", "may_treat", "2")),
        (1, "May prevent", 2, ("1", "may_prevent", "2")),
        (2, "May be prevented by", 1, ("1", "may_prevent", "2")),
        (1, "CI to", 2, ("1", "contraindicates", "2")),
        (2, "CI by", 1, ("1", "contraindicates", "2")),
        (1, "Has CI", 2, ("1", "contraindicates", "2")),
        (2, "Is CI of", 1, ("1", "contraindicates", "2")),
        (1, "has contraindication", 2, ("1", "contraindicates", "2")),
        (1, "Induces", 3, ("1", "causes", "3")),
        (3, "Induced by", 1, ("1", "causes", "3")),
        (4, "Causative agent of", 3, ("4", "causes", "3")),
        (3, "Has due to", 4, ("4", "causes", "3")),
        (4, "Has finding", 3, ("3", "symptom_of", "4")),
        (4, "Has manifestation", 3, ("3", "symptom_of", "4")),
        (3, "Manifestation of", 4, ("3", "symptom_of", "4")),
        (3, "Asso finding of", 4, ("3", "symptom_of", "4")),
    ],
)
def test_each_relationship_in_its_direction(
    tmp_path: Path, first: int, name: str, second: int, fact: tuple[str, str, str]
) -> None:
    folder = write_omop(tmp_path / "vocab", CONCEPTS, [relationship(first, name, second)])
    assert triples(facts_from_omop(folder)) == {fact}


def test_withdrawn_rows_self_relations_and_duplicates(tmp_path: Path) -> None:
    rows = [
        relationship(1, "May treat", 2),
        relationship(2, "May be treated by", 1),
        relationship(1, "May treat", 1),
        relationship(1, "May treat", 3, invalid="D"),
        relationship(1, "May treat", 5),
        relationship(1, "May treat", 77),  # not in CONCEPT
        relationship(1, "Is a", 2),
    ]
    folder = write_omop(tmp_path / "vocab", CONCEPTS, rows)
    facts = facts_from_omop(folder)
    assert triples(facts) == {("1", "may_treat", "2")}
    assert facts.made_with["rows"] == {"read": 3, "self": 1, "duplicate": 1}
    assert facts.made_with["CONCEPT_RELATIONSHIP"] == {
        "rows": 7,
        "with a mapped relation": 6,
        "withdrawn": 1,
        "with a withdrawn concept": 1,
        "with a concept not in CONCEPT": 1,
    }
    assert facts.source == ("NDFRT",)
    assert triples(facts_from_omop(folder, keep_invalid=True)) == {
        ("1", "may_treat", "2"),
        ("1", "may_treat", "3"),
        ("1", "may_treat", "5"),
    }


def test_vocabularies_are_chosen_by_name(tmp_path: Path) -> None:
    rows = [relationship(1, "May treat", 2), relationship(1, "May treat", 3)]
    folder = write_omop(tmp_path / "vocab", CONCEPTS, rows)
    assert triples(facts_from_omop(folder, vocabularies=["NDFRT"])) == {("1", "may_treat", "2")}


def test_names_are_matched_by_english_synonyms(tmp_path: Path) -> None:
    rows = [relationship(1, "May treat", 2), relationship(1, "May treat", 3)]
    synonyms = [
        synonym(1, "ASA"),
        synonym(3, "Pyrexia"),
        synonym(2, "Schmerz", language=4182504),
        synonym(5, "pyrexia"),
    ]
    folder = write_omop(tmp_path / "vocab", CONCEPTS, rows, synonyms)
    names = Names.from_pairs([("asa", "drug-7"), ("pyrexia", "fever"), ("schmerz", "pain")])
    facts = facts_from_omop(folder, names=names)
    assert triples(facts) == {("1", "may_treat", "3")}
    assert facts.matched == {"drug-7": "1", "fever": "3"}  # the withdrawn namesake does not make it ambiguous
    assert facts.made_with["names"]["without a match"] == 1


def test_missing_and_wrong_files(tmp_path: Path) -> None:
    folder = write_omop(tmp_path / "vocab", CONCEPTS, [relationship(1, "May treat", 2)], None)
    assert len(facts_from_omop(folder, names=Names.from_pairs([("aspirin", "a"), ("pain", "p")]))) == 1
    (folder / "CONCEPT.csv").unlink()
    with pytest.raises(UsageError, match=r"has no CONCEPT"):
        facts_from_omop(folder)
    (folder / "CONCEPT.csv").write_text("concept_id,concept_name\n1,Aspirin\n")
    with pytest.raises(CogstageError, match=r"CONCEPT\.csv: no column domain_id, .* are concept_id, concept_name"):
        facts_from_omop(folder)
    write_omop(folder, CONCEPTS, [relationship(1, "May treat", 2), "1\t2\tMay treat"])
    with pytest.raises(CogstageError, match=r"CONCEPT_RELATIONSHIP\.csv:3: 3 columns where 6 are expected"):
        facts_from_omop(folder)


@pytest.mark.parametrize("form", ["tab", "comma", "parquet", "parts"])
def test_the_folder_that_graph_build_takes(tmp_path: Path, form: str) -> None:
    """Tables as people export them: lower-case names, commas and quotes, Parquet with numbers for identifiers."""
    rows = [relationship(1, "May treat", 2), relationship(1, "May treat", 4)]
    folder = write_omop(tmp_path / "vocab", CONCEPTS, rows, [synonym(2, "Ache")])
    for path in folder.glob("*.csv") if form != "tab" else ():
        header, *lines = [line.split("\t") for line in path.read_text().splitlines()]
        path.unlink()
        name = path.stem.lower()
        if form == "comma":
            with (folder / f"{name}.csv").open("w", newline="") as handle:
                csv.writer(handle).writerows([header, *lines])
            continue
        columns = dict(zip(header, zip(*lines, strict=True), strict=True))
        for column in [column for column in columns if "concept_id" in column]:
            columns[column] = tuple(map(float, columns[column]))  # as pandas writes a column that once had a gap
        table = pa.table(columns)
        if form == "parquet":
            pq.write_table(table, folder / f"{name}.parquet")
        else:
            (folder / name).mkdir()
            for number in range(2):
                pq.write_table(table.slice(number * 2, None if number else 2), folder / name / f"part-{number}.parquet")
    names = Names.from_pairs([("aspirin", "a"), ("ache", "b"), ("influenza \"the flu\" 'type a'", "c")])
    assert triples(facts_from_omop(folder, names=names)) == {("1", "may_treat", "2"), ("1", "may_treat", "4")}
