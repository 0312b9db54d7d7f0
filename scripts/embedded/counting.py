"""Counting: in how many records each concept and each pair of concepts occurs, by headings, chemicals and text."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cogstage.corpus.annotate import Annotator

from .mesh import Mesh
from .records import Record


@dataclass(frozen=True)
class Counts:
    """Records of each concept and of each pair (first key < second key)."""

    records: int
    terms: Mapping[str, int]
    edges: Mapping[tuple[str, str], int]


def count(records: Sequence[Record], mesh: Mesh, annotator: Annotator, left_out: frozenset[str]) -> Counts:
    """Document counts; a concept counts once per record, however often and wherever the record names it."""
    lexicon = annotator.lexicon
    occurring = [
        {heading.descriptor for heading in record.headings} | {ui for ui in record.chemicals if mesh.concept(ui)}
        for record in records
    ]
    text_index, _, concept = annotator.concept_rows([record.text for record in records], sentences=False)
    for number, index in zip(text_index.tolist(), concept.tolist(), strict=True):
        occurring[number].add(lexicon.concepts[index])
    terms: Counter[str] = Counter()
    edges: Counter[tuple[str, str]] = Counter()
    for concepts in occurring:
        found = sorted(concepts - left_out)
        terms.update(found)
        edges.update(itertools.combinations(found, 2))
    return Counts(len(records), terms, edges)


@dataclass(frozen=True)
class Kept:
    """The nodes and edges that are shipped, with their counts in all records and in the older ones alone."""

    terms: list[tuple[str, int, int]]  # key, count, count then; sorted by key
    edges: list[tuple[int, int, int, int]]  # node, node, count, count then; sorted


def prune(then: Counts, now: Counts, types: Mapping[str, str], named: Container[str], least: Mapping[str, Any]) -> Kept:
    """Nodes with ``least["term"]`` records, or one if a fact table names them; edges with ``least["edge"]`` records.

    ``least["close"]`` gives types with a minimum of their own: what joins drugs, disorders and symptoms is kept from
    the first record on, the rest only when it recurs.
    """
    close, closest = set(least["close"]["types"]), least["close"]["edge"]
    total = Counter(then.terms)
    total.update(now.terms)
    keys = sorted(term for term, number in total.items() if number >= least["term"] or term in named)
    node = {term: index for index, term in enumerate(keys)}
    pairs = Counter(then.edges)
    pairs.update(now.edges)
    edges = []
    for (source, target), number in pairs.items():
        if source not in node or target not in node:
            continue
        both = types.get(source) in close and types.get(target) in close
        if number >= (closest if both else least["edge"]):
            edges.append((node[source], node[target], number, then.edges.get((source, target), 0)))
    return Kept([(key, total[key], then.terms.get(key, 0)) for key in keys], sorted(edges))
