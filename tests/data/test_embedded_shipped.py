"""The embedded data set as it is shipped: it loads, it is small, and its page tells the truth about it."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from cogstage.artefact import file_hash
from cogstage.data import embedded
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.facts import Facts

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(name="graph", scope="module")
def _graph() -> Graph:
    return embedded.graph()


@pytest.fixture(name="facts", scope="module")
def _facts() -> Facts:
    return embedded.facts()


def test_files_match_their_sums_and_are_small() -> None:
    summary = json.loads((embedded.FOLDER / "meta.json").read_text(encoding="utf-8"))
    files = {str(path.relative_to(embedded.FOLDER)) for path in embedded.FOLDER.rglob("*") if path.is_file()}
    assert files == {"meta.json", *summary["sha256"]}
    for name, digest in summary["sha256"].items():
        assert file_hash(embedded.FOLDER / name) == digest
    assert sum((embedded.FOLDER / name).stat().st_size for name in summary["sha256"]) == summary["bytes"] <= 4_000_000


def test_the_page_gives_the_figures_of_the_files(graph: Graph, facts: Facts) -> None:
    page = (ROOT / "docs" / "embedded.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+?) \| ([\d,]+)", page, flags=re.MULTILINE))
    figures = {name: int(value.replace(",", "")) for name, value in rows.items()}
    records = graph.made_with["records"]
    summary = json.loads((embedded.FOLDER / "meta.json").read_text(encoding="utf-8"))
    assert figures == {
        "nodes (MeSH descriptors)": graph.n_nodes,
        "edges (pairs of descriptors in one record)": graph.n_edges,
        "counted records": records["counted"],
        "records that give facts": records["facts"],
        "size of the files": summary["bytes"],
        **facts.relations,
    }
    matrix, index = graph.matrix, graph.vocabulary.index
    joined: Counter[str] = Counter()
    for head, relation, tail in zip(facts.head, facts.relation, facts.tail, strict=True):
        joined[relation] += bool(matrix[index[head], index[tail]])
    share = {relation: round(100 * joined[relation] / number) for relation, number in facts.relations.items()}
    found = re.search(
        r"(\d+) % of the may_treat.*?(\d+) % of\s+may_prevent, (\d+) % of causes, (\d+) % of sym", page, re.S
    )
    assert found is not None
    assert [int(value) for value in found.groups()] == [
        share[relation] for relation in ("may_treat", "may_prevent", "causes", "symptom_of")
    ]


def test_facts_join_the_right_types(graph: Graph, facts: Facts) -> None:
    kind = dict(zip(graph.vocabulary.term, graph.vocabulary.type, strict=True))
    heads = {"may_treat": {"drug"}, "may_prevent": {"drug"}, "causes": {"drug", "disorder"}, "symptom_of": {"symptom"}}
    for head, relation, tail in zip(facts.head, facts.relation, facts.tail, strict=True):
        assert head != tail
        assert kind[head] in heads[relation]
        if relation == "symptom_of" or kind[head] == "disorder":
            assert kind[tail] == "disorder"
        else:
            assert kind[tail] in {"disorder", "symptom"}
    triples = list(zip(facts.relation, facts.head, facts.tail, strict=True))
    assert triples == sorted(set(triples))
    mirrored = {(tail, head) for relation, head, tail in triples if relation == "symptom_of"}
    assert not mirrored & {(head, tail) for relation, head, tail in triples if relation == "causes"}


def test_records_state_each_fact(facts: Facts) -> None:
    records = embedded.records()
    assert len(records) == len(facts)
    assert min(records) == 1
    assert max(records) <= facts.made_with["records"]["facts"]


def test_counts_are_consistent(graph: Graph) -> None:
    terms = graph.vocabulary
    assert list(terms.term) == sorted(set(terms.term))
    assert all(re.fullmatch(r"D\d{6,9}", term) for term in terms.term)
    assert terms.concept == terms.term
    assert len({name.casefold() for name in terms.name}) == len(terms)
    # Two terms cannot share more records than the rarer of them has, nor a term have more than there are.
    assert np.all(graph.count <= np.minimum(terms.count[graph.source], terms.count[graph.target]))
    assert terms.count.min() >= 1
    assert terms.count.max() <= graph.made_with["records"]["counted"]


def test_people_find_terms_by_name(graph: Graph) -> None:
    terms = graph.vocabulary
    assert terms.name[terms.find("aspirin")] == "Aspirin"
    assert terms.type[terms.find("Headache")] == "symptom"
    assert terms.type[terms.find("Bipolar Disorder")] == "disorder"
