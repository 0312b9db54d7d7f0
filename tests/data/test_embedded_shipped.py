"""The embedded data set as it is shipped: it loads, it is small, and its page tells the truth about it."""

from __future__ import annotations

import csv
import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from cogstage.artefact import file_hash
from cogstage.data import embedded
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.facts import Facts

ROOT = Path(__file__).resolve().parents[2]
RELATIONS = ("causes", "contraindicates", "may_prevent", "may_treat", "symptom_of")
OWN_LISTS = ("embedded_rules.json", "embedded_names.tsv", "embedded_contraindications.tsv")


@pytest.fixture(name="graph", scope="module")
def _graph() -> Graph:
    return embedded.graph()


@pytest.fixture(name="facts", scope="module")
def _facts() -> Facts:
    return embedded.facts()


def _summary() -> dict:
    return json.loads((embedded.FOLDER / "meta.json").read_text(encoding="utf-8"))


def test_files_match_their_hashes_and_are_small() -> None:
    summary = _summary()
    files = {str(path.relative_to(embedded.FOLDER)) for path in embedded.FOLDER.rglob("*") if path.is_file()}
    assert files == {"meta.json", *summary["sha256"]}
    for name, digest in summary["sha256"].items():
        assert file_hash(embedded.FOLDER / name) == digest
    assert sum((embedded.FOLDER / name).stat().st_size for name in summary["sha256"]) == summary["bytes"] <= 4_000_000


def test_own_lists_are_the_ones_it_was_built_from() -> None:
    inputs = _summary()["inputs"]
    assert file_hash(embedded.TEXTBOOK) == inputs["textbook.tsv"]
    for name in OWN_LISTS:
        assert file_hash(ROOT / "scripts" / name) == inputs[name], f"{name} changed: run scripts/build_embedded.py"


def test_it_is_large_enough(graph: Graph, facts: Facts) -> None:
    assert graph.n_nodes >= 10_000
    assert set(facts.relations) == set(RELATIONS)
    assert min(facts.relations.values()) >= 150


def test_the_page_gives_the_figures_of_the_files(graph: Graph, facts: Facts) -> None:
    page = (ROOT / "docs" / "embedded.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([\d,]+) \|", page, flags=re.MULTILINE))
    figures = {name: int(value.replace(",", "")) for name, value in rows.items()}
    records = graph.made_with["records"]
    by_source = Counter(source for joined in facts.source for source in joined.split(";"))
    assert figures == {
        "nodes (MeSH concepts)": graph.n_nodes,
        "edges (pairs of concepts in one record)": graph.n_edges,
        "synonyms": len(graph.vocabulary.synonyms),
        "counted records": records["counted"],
        "counted records of 1977 to 1979": records["counted then"],
        "records that give facts": records["facts"],
        "size of the files in bytes": _summary()["bytes"],
        "textbook pairs": len(embedded.textbook()),
        **facts.relations,
        **by_source,
    }


def test_licences_are_in_the_package_and_on_the_page() -> None:
    rules = json.loads((ROOT / "scripts" / "embedded_rules.json").read_text(encoding="utf-8"))
    shipped = (embedded.FOLDER / "SOURCES.txt").read_text(encoding="utf-8")
    page = " ".join((ROOT / "docs" / "embedded.md").read_text(encoding="utf-8").split())
    for source in rules["licences"]:
        assert source["name"] in shipped
        assert source["terms"] in shipped
        assert source["name"].split(" (")[0] in page
        if "cite" in source:
            assert source["cite"] in page


def test_facts_join_the_right_types(graph: Graph, facts: Facts) -> None:
    kind = dict(zip(graph.vocabulary.term, graph.vocabulary.type, strict=True))
    heads = {relation: {"drug"} for relation in RELATIONS}
    heads |= {"causes": {"drug", "disorder"}, "symptom_of": {"symptom", "disorder"}}
    for head, relation, tail in zip(facts.head, facts.relation, facts.tail, strict=True):
        assert head != tail
        assert kind[head] in heads[relation]
        assert kind[tail] in {"disorder", "symptom"} | ({"condition"} if relation == "contraindicates" else set())
    triples = list(zip(facts.relation, facts.head, facts.tail, strict=True))
    assert triples == sorted(set(triples))


def test_records_state_the_facts_read_off_records(facts: Facts) -> None:
    records = embedded.records()
    assert len(records) == len(facts)
    assert [number > 0 for number in records] == ["MeSH" in source for source in facts.source]


def test_counts_are_consistent(graph: Graph) -> None:
    terms = graph.vocabulary
    assert list(terms.term) == sorted(set(terms.term))
    assert all(re.fullmatch(r"[CD]\d{6,9}", term) for term in terms.term)
    assert terms.concept == terms.term
    assert len({name.casefold() for name in terms.name}) == len(terms)
    # Two terms cannot share more records than the rarer of them has, nor a term have more than there are.
    assert np.all(graph.count <= np.minimum(terms.count[graph.source], terms.count[graph.target]))
    assert terms.count.min() >= 1
    assert terms.count.max() <= graph.made_with["records"]["counted"]


def test_the_older_graph_is_the_part_that_the_older_records_counted(graph: Graph) -> None:
    then = embedded.graph_1977_1979()
    then.check()
    whole = graph.vocabulary
    table = pq.read_table(embedded.GRAPH / "edges.parquet").to_pandas()
    old = table[table["then"] > 0]
    assert int(then.count.sum()) == int(old["then"].sum())
    assert then.n_edges == len(old)
    assert (table["then"] <= table["count"]).all()
    for row in old.sample(50, random_state=0).itertuples():
        ends = [then.vocabulary.index[whole.term[node]] for node in (row.source, row.target)]
        assert then.matrix[ends[0], ends[1]] == row.then
    assert then.vocabulary.count.max() <= graph.made_with["records"]["counted then"]
    assert "COVID-19" in whole.name
    assert "COVID-19" not in then.vocabulary.name
    assert then.vocabulary.name[then.vocabulary.find("heart attack")] == "Myocardial Infarction"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("aspirin", "Aspirin"),
        ("heart attack", "Myocardial Infarction"),
        ("Paracetamol", "Acetaminophen"),
        ("high blood pressure", "Hypertension"),
        ("flu", "Influenza, Human"),
        ("breast cancer", "Breast Neoplasms"),
        ("type 2 diabetes", "Diabetes Mellitus, Type 2"),
        ("COPD", "Pulmonary Disease, Chronic Obstructive"),
        ("vitamin C", "Ascorbic Acid"),
        ("adrenaline", "Epinephrine"),
        ("cancer", "Neoplasms"),
    ],
)
def test_people_find_terms_by_the_names_they_use(graph: Graph, text: str, name: str) -> None:
    assert graph.vocabulary.name[graph.vocabulary.find(text)] == name


def test_textbook_pairs_are_on_the_graph_and_balanced(graph: Graph, facts: Facts) -> None:
    pairs = embedded.textbook()
    assert len(pairs) >= 150
    index, terms = graph.vocabulary.index, graph.vocabulary
    stated = {
        (index[head], relation, index[tail])
        for head, relation, tail in zip(facts.head, facts.relation, facts.tail, strict=True)
    }
    seen = set()
    for pair in pairs:
        head, tail = terms.find(pair.head), terms.find(pair.tail)
        assert (terms.name[head], terms.name[tail]) == (pair.head, pair.tail)
        assert pair.source
        assert (head, pair.relation, tail) not in seen
        seen.add((head, pair.relation, tail))
        assert min(terms.count[head], terms.count[tail]) >= 2
        assert pair.label or (head, pair.relation, tail) not in stated, f"{pair} is a fact of the data set"
    for relation in RELATIONS:
        labels = [pair.label for pair in pairs if pair.relation == relation and pair.kind != "wrong relation"]
        assert len(labels) >= 30
        assert 0.4 <= sum(labels) / len(labels) <= 0.6


def test_contraindications_name_the_section_they_rest_on() -> None:
    with (ROOT / "scripts" / "embedded_contraindications.tsv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    assert len({(row["head"], row["tail"]) for row in rows}) == len(rows) >= 150
    for row in rows:
        assert row["relation"] == "contraindicates"
        assert re.fullmatch(r".+ (label, Contraindications|SmPC, section 4\.3 Contraindications): .+", row["source"])


def test_wrong_relation_statements_are_false_related_and_possible(graph: Graph, facts: Facts) -> None:
    terms, pairs = graph.vocabulary, embedded.textbook()
    wrong = [pair for pair in pairs if pair.kind == "wrong relation"]
    assert len(wrong) >= 120 + 8
    per_relation = Counter(pair.relation for pair in wrong)
    assert set(per_relation) == set(RELATIONS)
    assert min(per_relation.values()) >= 29
    assert len({(pair.head, pair.relation, pair.tail) for pair in pairs}) == len(pairs)
    stated = set(zip(facts.head, facts.relation, facts.tail, strict=True))
    kind = dict(zip(terms.term, terms.type, strict=True))
    joined = Counter((relation, kind[head], kind[tail]) for head, relation, tail in stated)
    for pair in wrong:
        head, tail = (terms.find(name) for name in (pair.head, pair.tail))
        assert (terms.name[head], terms.name[tail]) == (pair.head, pair.tail)
        assert min(terms.count[head], terms.count[tail]) >= 2
        assert (terms.term[head], pair.relation, terms.term[tail]) not in stated, pair  # no source says otherwise
        assert pair.holds.removesuffix("_inverse") in RELATIONS
        assert pair.holds != pair.relation
        types = (pair.relation, terms.type[head], terms.type[tail])
        assert joined[types] >= 0.01 * facts.relations[pair.relation], f"the types alone answer {pair}"
