"""Facts: from qualifiers that stand in one record, from published tables, and from the list of contraindications."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .mesh import Mesh
from .records import Record

Triple = tuple[str, str, str]  # relation, head, tail


@dataclass
class Collected:
    """Facts with their sources and the number of records that state them, and what was left out by source."""

    sources: defaultdict[Triple, set[str]] = field(default_factory=lambda: defaultdict(set))
    records: Counter[Triple] = field(default_factory=Counter)
    rows: dict[str, Counter[str]] = field(default_factory=dict)

    def add(self, triple: Triple, source: str, records: int = 0) -> None:
        """One fact as one source states it."""
        self.sources[triple].add(source)
        self.records[triple] += records


def read_coordinations(
    records: Iterable[Record], types: Mapping[str, str], rules: Mapping[str, Any]
) -> Counter[Triple]:
    """Facts that qualifiers state when they stand in one record, with the number of records that state them.

    A record with several drugs and several diseases does not say which belongs to which: a coordination counts if one
    of its ends is a single heading, and the other at most ``most_pairs``.
    """
    facts: Counter[Triple] = Counter()
    for record in records:
        holders: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for heading in record.headings:
            for qualifier in heading.qualifiers:
                holders[types.get(heading.descriptor, ""), qualifier].add(heading.descriptor)
        stated: set[Triple] = set()
        for rule in rules["coordinations"]:
            heads, tails = (
                set().union(*(holders[kind, rule[end]["qualifier"]] for kind in rule[end]["types"]))
                for end in ("head", "tail")
            )
            pairs = {(rule["relation"], head, tail) for head in heads for tail in tails if head != tail}
            if min(len(heads), len(tails)) == 1 and len(pairs) <= rules["most_pairs"]:
                stated |= pairs
        facts.update(stated)
    return facts


def add_coordinations(collected: Collected, facts: Mapping[Triple, int], source: str, nodes: Mapping[str, int]) -> None:
    """Take over the facts whose ends are nodes."""
    rows = collected.rows[source] = Counter()
    for triple, number in facts.items():
        if triple[1] in nodes and triple[2] in nodes:
            collected.add(triple, source, number)
            rows["kept"] += 1
        else:
            rows["not in the graph"] += 1


def add_table(
    collected: Collected,
    table: Iterable[Mapping[str, str]],
    source: str,
    mesh: Mesh,
    nodes: Mapping[str, int],
    rules: Mapping[str, Any],
) -> None:
    """Take over the rows (head, relation, tail) whose names MeSH knows, whose types fit and whose ends are nodes."""
    rows = collected.rows[source] = Counter()
    skipped = set(rules["skipped_names"])
    for row in table:
        head, tail = mesh.find(row["head"]), mesh.find(row["tail"])
        if row["head"] in skipped or row["tail"] in skipped:
            rows["left out by name"] += 1
        elif head is None or tail is None:
            rows["name not in MeSH"] += 1
        elif head == tail:
            rows["both ends the same"] += 1
        elif not _fits(row["relation"], mesh.concept(head), mesh.concept(tail), rules["relation_types"]):
            rows["types do not fit"] += 1
        elif head not in nodes or tail not in nodes:
            rows["not in the graph"] += 1
        else:
            collected.add((row["relation"], head, tail), source)
            rows["kept"] += 1


def _fits(relation: str, head: Any, tail: Any, allowed: Mapping[str, Any]) -> bool:
    return head.type in allowed[relation]["head"] and tail.type in allowed[relation]["tail"]
