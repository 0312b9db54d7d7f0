"""Where a data set comes from: what was counted, and which sources state its facts under which licence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from cogstage.graph.counted import what_was_counted
from cogstage.knowledge.facts import JOIN, Facts

UNNAMED = "unnamed source"


def sources_of(graph: Mapping[str, Any], facts: Facts, relations: Collection[str]) -> dict[str, Any]:
    """``counts`` (from a graph's ``made_with``) and ``facts``: each source, how many facts it states, its licence."""
    stated: Counter[str] = Counter()
    for relation, source in zip(facts.relation, facts.source, strict=True):
        if relation in relations:
            stated.update(set(source.split(JOIN)) - {""} or {UNNAMED})
    licences = facts.made_with.get("licences") or {}
    every = facts.made_with.get("licence")
    listed = [
        {"source": source, "facts": count, "licence": licences.get(source, every)}
        for source, count in sorted(stated.items(), key=lambda entry: (-entry[1], entry[0]))
    ]
    return {"counts": what_was_counted(graph), "facts": listed}
