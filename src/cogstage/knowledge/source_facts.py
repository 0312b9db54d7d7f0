"""Convert statements of a knowledge base to facts: apply the relation map, match names, count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import MatchResult, Names, unmatched_rows
from cogstage.knowledge.relation_map import OrientationCounts, Rule, orient
from cogstage.tables import BadRows

SourceStatement = tuple[str, str, str, str]  # concept a, their relation, concept b, source


def facts_of_statements(
    statements: Iterable[SourceStatement],
    rules: Mapping[str, Rule],
    types: Mapping[str, frozenset[str]],
    matched: MatchResult,
    names: Names | None,
    name_of: Mapping[str, str],
    counted: tuple[str, Counter[str]],
    made_with: Mapping[str, Any],
    bad: BadRows,
) -> Facts:
    """Facts of the statements; with ``names`` those between matched concepts alone.

    ``name_of`` names the concepts that led to no node. ``counted`` is the name of the source's table with the counts of
    its rows, which goes into ``made_with``.
    """
    table, counts = counted
    targets = set(matched.concept.values()) if names is not None else None
    unmatched: Counter[str] = Counter()
    oriented = OrientationCounts()

    def rows() -> Iterator[SourceStatement]:
        for head, relation, tail, source in orient(statements, rules, types, oriented):
            head, tail = matched.merged.get(head, head), matched.merged.get(tail, tail)
            missing = [] if targets is None else [end for end in (head, tail) if end not in targets]
            if missing:
                counts["not in the lexicon or graph"] += 1
                unmatched.update(name_of.get(end, end) for end in missing)
                continue
            yield head, relation, tail, source

    facts = Facts.from_statements(rows(), made_with, matched.concept)
    details = {
        table: dict(counts),
        "swapped by their types": dict(oriented.turned),
        "heads and tails of other types": dict(oriented.other_types),
        **matched.report(),
        "bad rows": bad.count,
    }
    return replace(facts, made_with={**facts.made_with, **details}, unmatched=unmatched_rows(unmatched, names))
