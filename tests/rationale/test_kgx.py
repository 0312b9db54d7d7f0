"""KGX nodes and edges follow the Biolink model.

The rules are those of Biolink 4.4 that a validator checks, written out; its packages need an older numpy than ours.
"""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sample_predictions import HEAD, TAIL, prediction

from cogstage.rationale.evidence import Term
from cogstage.rationale.exports import export
from cogstage.rationale.kgx import CATEGORIES, PREFIXES, curie, kgx
from cogstage.relations import RELATIONS, relation

CURIE = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*:[^\s|:]+")
PREDICATES = {  # with domain and range, None for any
    "biolink:treats": ("ChemicalOrDrugOrTreatment", "DiseaseOrPhenotypicFeature"),
    "biolink:preventative_for_condition": ("ChemicalOrDrugOrTreatment", "DiseaseOrPhenotypicFeature"),
    "biolink:contraindicated_in": ("ChemicalOrDrugOrTreatment", "BiologicalEntity"),
    "biolink:causes": (None, None),
    "biolink:phenotype_of": ("PhenotypicFeature", "BiologicalEntity"),
    "biolink:related_to": (None, None),
}
CLASSES = {
    *("Drug", "ChemicalEntity", "Disease", "DiseaseOrPhenotypicFeature", "PhenotypicFeature", "Procedure", "Device"),
    *("AnatomicalEntity", "OrganismTaxon", "Gene", "NamedThing"),
}
KNOWN_PREFIXES = {
    *("MESH", "UMLS", "SNOMEDCT", "ICD10", "ICD9", "RXCUI", "NDC", "ATC", "CPT", "LOINC", "MEDDRA", "HP", "MONDO"),
    *("DOID", "OMIM", "CHEBI", "DRUGBANK", "NCBIGene", "NCBITaxon"),
}
KNOWLEDGE_LEVELS = {"knowledge_assertion", "prediction", "statistical_association", "observation", "not_provided"}
AGENTS = {"manual_agent", "automated_agent", "data_analysis_pipeline", "computational_model", "not_provided"}


def check(nodes: list[dict[str, Any]], edges: list[dict[str, Any]]) -> None:
    """Every rule, for all nodes and edges."""
    for node in nodes:
        assert CURIE.fullmatch(node["id"])
        assert all(name.removeprefix("biolink:") in CLASSES for name in node["category"])
        assert isinstance(node["category"], list)
        assert isinstance(node["name"], str)
    ids = [node["id"] for node in nodes]
    assert len(set(ids)) == len(ids)
    edge_ids = [edge["id"] for edge in edges]
    assert len(set(edge_ids)) == len(edge_ids)
    for edge in edges:
        assert {edge["subject"], edge["object"]} <= set(ids)
        assert edge["predicate"] in PREDICATES
        assert edge["category"] == ["biolink:Association"]
        assert edge["knowledge_level"] in KNOWLEDGE_LEVELS
        assert edge["agent_type"] in AGENTS
        assert edge["primary_knowledge_source"].startswith("infores:")
        assert CURIE.fullmatch(edge["original_predicate"])
        assert isinstance(edge["negated"], bool)
        assert edge["has_confidence_score"] is None or 0 <= edge["has_confidence_score"] <= 1
        assert set(edge["supporting_edges"] or []) | set(edge["supports"] or []) <= set(edge_ids)
        assert set(edge) == set(edges[0])  # one header for all


def test_predictions_and_their_reasons_follow_the_rules() -> None:
    record = prediction(9)
    nodes, edges = kgx([record, replace(prediction(0), tail=Term("D006261", "Headache", "symptom"))])
    check(nodes, edges)
    first, supporting = edges[0], edges[1:10]
    assert first["supporting_edges"] == [edge["id"] for edge in supporting]
    assert all(edge["supports"] == [first["id"]] for edge in supporting)
    assert (first["predicate"], first["has_confidence_score"]) == ("biolink:treats", record.probability)
    for edge, reason in zip(supporting, record.reasons, strict=True):
        assert edge["share"] == pytest.approx(reason.share, abs=1e-6)
        assert edge["knowledge_level"] == ("knowledge_assertion" if reason.known_fact else "prediction")
        ends = [curie(reason.head.key), curie(reason.tail.key)]
        inverted = reason.relation.endswith("_inverse")  # edges are read forward
        assert [edge["subject"], edge["object"]] == ends[:: -1 if inverted else 1]


def test_all_relations_have_predicates_of_the_model() -> None:
    assert {relation(name).biolink for name in (*RELATIONS, "some_other")} == set(PREDICATES)
    assert {name.removeprefix("biolink:") for name in CATEGORIES.values()} <= CLASSES
    assert set(PREFIXES.values()) == KNOWN_PREFIXES


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("D000544", "MESH:D000544"),
        ("C000591245", "MESH:C000591245"),
        ("C001671", "MESH:C001671"),
        ("C0004057", "UMLS:C0004057"),
        ("mesh:D000544", "MESH:D000544"),
        ("MESH:D000544", "MESH:D000544"),
        ("snomed:387458008", "SNOMEDCT:387458008"),
        ("ICD-10-CM:E11.9", "ICD10:E11.9"),
        ("gene:9685", "NCBIGene:9685"),
        ("species:9606", "NCBITaxon:9606"),
        ("heart attack", "cogstage:heart%20attack"),
        ("local:a|b", "cogstage:local%3Aa%7Cb"),
        ("1112807", "cogstage:1112807"),
    ],
)
def test_keys_become_curies(key: str, expected: str) -> None:
    assert curie(key) == expected
    assert CURIE.fullmatch(curie(key))


def test_files_join_lists_with_bars(tmp_path: Path) -> None:
    paths = export([prediction(3)], tmp_path / "kg.tsv", "kgx")
    assert [path.name for path in paths] == ["kg_nodes.tsv", "kg_edges.tsv"]
    tables = []
    for path in paths:
        with path.open(encoding="utf-8") as handle:
            tables.append(list(csv.DictReader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)))
    nodes, edges = tables
    assert {HEAD.name, TAIL.name} <= {node["name"] for node in nodes}
    assert edges[0]["supporting_edges"].split("|") == [edge["id"] for edge in edges[1:]]
    assert all(edge["category"] == "biolink:Association" for edge in edges)
