"""Split by time: train and dev are facts stated before a year, test facts stated later."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

import numpy as np

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Pairs
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.knowledge.located import LocatedFacts
from cogstage.knowledge.negatives import DrawnNegatives

UNDATED = -1


def check_graph_until(made_with: Mapping[str, Any], before: int) -> str | None:
    """Raise if the graph counts text from the year ``before`` or later; a warning if that is not known."""
    until = made_with.get("until")
    if not until:
        return (
            f"the graph does not record the date of its last text, so its counts may include text from {before} or "
            f"later; build it with until={before - 1}"
        )
    if datetime.date.fromisoformat(str(until)).year >= before:
        raise UsageError(f"before={before}: the graph counts text until {until}; build it with until={before - 1}")
    return None


def dated_facts(facts: LocatedFacts, before: int) -> tuple[np.ndarray, dict[str, int]]:
    """Which facts a split by time may use, and how many of each kind there are.

    Left out are facts without a year, and later facts of a pair of concepts that held an earlier or an undated one: the
    pair was not new then, or may not have been.
    """
    pairs, row_pair = np.unique(facts.pair, return_inverse=True)
    row_pair = row_pair.ravel()
    first = np.full(len(pairs), np.iinfo(np.int32).max)
    np.minimum.at(first, row_pair, facts.year)  # undated is lower than any year
    dated, later = facts.year != UNDATED, facts.year >= before
    new = first[row_pair] >= before
    counts = {
        "stated before": int(np.sum(dated & ~later)),
        "stated later, of new pairs": int(np.sum(later & new)),
        "stated later, of pairs known before or without a year": int(np.sum(later & ~new)),
        "without a year": int(np.sum(~dated)),
    }
    if not counts["stated before"] or not counts["stated later, of new pairs"]:
        raise CogstageError(
            f"before={before} leaves no facts to train on or none to test on: "
            + ", ".join(f"{count:,} {what}" for what, count in counts.items())
        )
    return (dated & ~later) | (later & new), counts


def time_report(
    before: int,
    facts: LocatedFacts,
    side: np.ndarray,
    drawn: DrawnNegatives,
    edges: EdgeLookup,
    until: object,
    kept: dict[str, int],
) -> dict[str, Any]:
    """For the leakage report: that nothing later was fitted on, and how many test pairs were never counted together."""
    never = {}
    for index, relation in enumerate(facts.relations):
        test = (facts.relation == index) & (side == 2)
        ends = {"facts": (facts.head[test], facts.tail[test]), "negatives": drawn.ends[relation, "test"]}
        never[relation] = {what: int(np.sum(edges.counts(*pair) == 0)) for what, pair in ends.items()}
    fitted = (side == 0) | (side == 1)
    return {
        "before": before,
        "graph until": until,
        "facts": kept,
        "later facts in train or dev": int(np.sum(fitted & (facts.year >= before))),
        "earlier facts in test": int(np.sum((side == 2) & (facts.year < before))),
        "test pairs never counted together": never,
    }


def time_warnings(report: Mapping[str, Any], unknown_until: str | None) -> list[str]:
    """Warnings of the report on the split by time."""
    lines = [] if unknown_until is None else [unknown_until]
    for what in ("later facts in train or dev", "earlier facts in test"):
        if report[what]:
            lines.append(f"{report[what]:,} {what}: the split by time leaks")
    return lines


def never_counted(graph: Graph, pairs: Pairs) -> np.ndarray:
    """Whether the graph never counted each pair's two terms together: the pairs to report apart, (M,) bool."""
    result: np.ndarray = EdgeLookup(graph).counts(pairs.head, pairs.tail) == 0
    return result
