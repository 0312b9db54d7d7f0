"""The embedded data set: real counts and facts of 30,000 MeSH-indexed PubMed records of 1977-79; see docs/embedded.md.

It is there to try things on and to test against. Its facts are weak labels from old literature: no medical advice.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.errors import CogstageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.facts import Facts

FOLDER = Path(__file__).with_name("embedded")
GRAPH = FOLDER / "graph"  # a graph folder like any other
FACTS = FOLDER / "facts"  # a facts folder like any other, with the further column ``records``


def graph() -> Graph:
    """Document co-occurrence of MeSH descriptors in the counted records; the node keys are descriptor ids."""
    return Graph.load(GRAPH)


def facts() -> Facts:
    """The facts that the other records state by their qualifiers, between descriptor ids."""
    return Facts.load(FACTS)


def records() -> tuple[int, ...]:
    """How many records state each fact, in the order of :func:`facts`."""
    try:
        return tuple(pq.read_table(FACTS / "facts.parquet", columns=["records"]).column("records").to_pylist())
    except (pa.ArrowInvalid, OSError, KeyError) as error:
        raise CogstageError(f"{FACTS} is damaged ({error}); install cogstage again") from error
