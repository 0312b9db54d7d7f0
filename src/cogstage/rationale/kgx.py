"""Predictions as KGX nodes and edges that follow the Biolink model."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any
from urllib.parse import quote

from cogstage.rationale.exports import profile_json, read_forward, signal_columns
from cogstage.rationale.record import Prediction, Reason, Term
from cogstage.rationale.wording import in_words
from cogstage.relations import relation as describe

CATEGORIES = {
    "drug": "biolink:Drug",
    "chemical": "biolink:ChemicalEntity",
    "disorder": "biolink:Disease",
    "condition": "biolink:DiseaseOrPhenotypicFeature",  # a domain of OMOP
    "symptom": "biolink:PhenotypicFeature",
    "procedure": "biolink:Procedure",
    "device": "biolink:Device",
    "anatomy": "biolink:AnatomicalEntity",
    "organism": "biolink:OrganismTaxon",
    "species": "biolink:OrganismTaxon",
    "gene": "biolink:Gene",
}
PREFIXES = {
    "mesh": "MESH",
    "umls": "UMLS",
    "cui": "UMLS",
    "snomed": "SNOMEDCT",
    "snomedct": "SNOMEDCT",
    "icd10": "ICD10",
    "icd10cm": "ICD10",
    "icd9": "ICD9",
    "icd9cm": "ICD9",
    "rxnorm": "RXCUI",
    "rxcui": "RXCUI",
    "ndc": "NDC",
    "atc": "ATC",
    "cpt": "CPT",
    "cpt4": "CPT",
    "loinc": "LOINC",
    "meddra": "MEDDRA",
    "hp": "HP",
    "mondo": "MONDO",
    "doid": "DOID",
    "omim": "OMIM",
    "chebi": "CHEBI",
    "drugbank": "DRUGBANK",
    "gene": "NCBIGene",
    "ncbigene": "NCBIGene",
    "species": "NCBITaxon",
    "taxon": "NCBITaxon",
}
"""Namespaces of keys, in lower case without marks, and their prefixes in the Biolink model."""
OWN = "cogstage"  # prefix of keys without a known namespace
SOURCE = "infores:cogstage"
_BARE = ((re.compile(r"C\d{7}"), "UMLS"), (re.compile(r"[CD]\d{6}(\d{3})?"), "MESH"))


def curie(key: str) -> str:
    """The key of a term as a CURIE: ``MESH:D001241`` of ``D001241`` and of ``mesh:D001241``."""
    namespace, mark, local = key.partition(":")
    if mark and (prefix := PREFIXES.get("".join(filter(str.isalnum, namespace.lower())))):
        return f"{prefix}:{quote(local, safe='')}"
    for pattern, prefix in _BARE:
        if pattern.fullmatch(key):
            return f"{prefix}:{key}"
    return f"{OWN}:{quote(key, safe='')}"


def kgx(predictions: Iterable[Prediction]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes and edges: one edge per prediction, and one for each of its reasons that supports it."""
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[dict[str, Any]] = []
    for prediction in predictions:
        edge, supporting = _prediction_edge(prediction), []
        for rank, reason in enumerate(prediction.reasons, start=1):
            supporting.append(_reason_edge(reason, edge["id"], rank))
        edge["supporting_edges"] = [each["id"] for each in supporting]
        edges += [edge, *supporting]
        questions: list[Prediction | Reason] = [prediction, *prediction.reasons]
        for ends in questions:
            for term in (ends.head, ends.tail):
                nodes.setdefault(term.key, _node(term))
    return list(nodes.values()), [{**dict.fromkeys(_columns(edges)), **edge} for edge in edges]


def _columns(edges: list[dict[str, Any]]) -> list[str]:
    """The columns of all edges, in the order in which they first occur."""
    return list(dict.fromkeys(name for edge in edges for name in edge))


def _node(term: Term) -> dict[str, Any]:
    return {
        "id": curie(term.key),
        "category": [CATEGORIES.get(term.type, "biolink:NamedThing")],
        "name": term.name,
        "provided_by": [SOURCE],
    }


def _edge(head: Term, relation: str, tail: Term, negated: bool, probability: float | None) -> dict[str, Any]:
    """What all edges have; a triple of an inverse relation is read forward."""
    subject, base, target = read_forward(head, relation, tail)
    return {
        "id": f"{curie(subject.key)}--{base}--{curie(target.key)}",  # "|" separates lists
        "subject": curie(subject.key),
        "predicate": describe(base).biolink,
        "object": curie(target.key),
        "category": ["biolink:Association"],
        "original_predicate": f"{OWN}:{quote(base, safe='')}",
        "negated": negated,
        "has_confidence_score": probability,
        "knowledge_level": "prediction",
        "agent_type": "computational_model",
        "primary_knowledge_source": SOURCE,
    }


def _prediction_edge(prediction: Prediction) -> dict[str, Any]:
    p = prediction
    return {
        **_edge(p.head, p.relation, p.tail, not p.profile_entry.holds, p.probability),
        "base_rate": p.base_rate,
        "rank": p.rank,
        "verdict": p.verdict,
        "contradicted_by": p.contradicted_by,
        "statement": p.statement,
        "known_fact": p.known_fact,
        "types_fit": p.types_fit,
        "profile": profile_json(p),
        "model": p.provenance.model,
        **signal_columns(p.signal),
    }


def _reason_edge(reason: Reason, supported: str, rank: int) -> dict[str, Any]:
    """A reason; a known fact is an assertion, whose agent the record does not name."""
    r = reason
    edge = _edge(r.head, r.relation, r.tail, not r.recognised, r.relation_probability)
    known = {"knowledge_level": "knowledge_assertion", "agent_type": "not_provided"} if r.known_fact else {}
    about = {"rank": rank, "statement": in_words(r), "known_fact": r.known_fact, "types_fit": r.types_fit}
    own = {"id": f"{supported}#{rank}", "supports": [supported], "share": round(r.share, 6), "cooccurrences": r.count}
    return {**edge, **known, **about, **own}
