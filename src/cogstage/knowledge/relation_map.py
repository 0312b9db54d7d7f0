"""Relation maps: how relations of a knowledge base map to relations of cogstage, and in which direction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from cogstage.errors import CogstageError
from cogstage.tables import read_rows

HERE = Path(__file__).parent
UMLS_RELATIONS = HERE / "umls_relations.tsv"
OMOP_RELATIONS = HERE / "omop_relations.tsv"
UMLS_TYPES = HERE / "umls_types.tsv"
OMOP_TYPES = HERE / "omop_types.tsv"
YES, NO = ("yes", "1", "true"), ("no", "0", "false", "")


@dataclass(frozen=True)
class Rule:
    """How one relation of a knowledge base, read as "a relation b", becomes ours.

    Without ``swap`` a is our head; with it b is. Where ``head_types`` and ``tail_types`` are given and a fact has
    them exactly the wrong way round, the fact is turned: knowledge bases do not always keep to their own direction.
    """

    relation: str
    swap: bool
    head_types: frozenset[str] = frozenset()
    tail_types: frozenset[str] = frozenset()


@dataclass
class OrientationCounts:
    """Counts of facts whose types fit, are reversed, or do not fit."""

    turned: Counter[str] = field(default_factory=Counter)
    other_types: Counter[str] = field(default_factory=Counter)


def read_relation_map(path: Path | str) -> dict[str, Rule]:
    """A table with the columns source (their relation), relation (ours), swap, optionally head_types, tail_types.

    Their relations are compared without case; one may be mapped to several of ours only by several files.
    """
    rules: dict[str, Rule] = {}
    for row in read_rows(path, ["source", "relation"], ["swap", "head_types", "tail_types"]):
        swap = str(row["swap"] or "").strip().lower()
        if swap not in YES + NO:
            raise CogstageError(f"{row.where('swap')}: {row['swap']} is neither yes nor no")
        key = str(row["source"]).strip().lower()
        if key in rules:
            raise CogstageError(f"{row.where('source')}: {row['source']} is mapped twice")
        heads, tails = (_types(row[column]) for column in ("head_types", "tail_types"))
        rules[key] = Rule(str(row["relation"]).strip(), swap in YES, heads, tails)
    if not rules:
        raise CogstageError(f"{path} maps no relations")
    return rules


def _types(value: object) -> frozenset[str]:
    return frozenset(name.strip() for name in str(value or "").split(",") if name.strip())


def read_types(path: Path, column: str) -> dict[str, str]:
    """A table that maps semantic types (or domains) to ours: drug, disorder, symptom, ..."""
    return {str(row[column]): str(row["type"]) for row in read_rows(path, [column, "type"])}


def orient(
    found: Iterable[tuple[str, str, str, str]],
    rules: Mapping[str, Rule],
    types: Mapping[str, frozenset[str]],
    counts: OrientationCounts,
) -> Iterator[tuple[str, str, str, str]]:
    """Facts (head, relation, tail, source) from statements (a, their relation, b, source)."""
    for first, theirs, second, source in found:
        rule = rules[theirs]
        head, tail = (second, first) if rule.swap else (first, second)
        if rule.head_types and rule.tail_types:
            of_head, of_tail = types.get(head, frozenset()), types.get(tail, frozenset())
            fits = bool(of_head & rule.head_types and of_tail & rule.tail_types)
            if not fits and of_head & rule.tail_types and of_tail & rule.head_types:
                head, tail = tail, head
                counts.turned[rule.relation] += 1
            elif not fits and of_head and of_tail:
                counts.other_types[rule.relation] += 1
        yield head, rule.relation, tail, source
