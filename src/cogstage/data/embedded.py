"""The embedded data set: counts and facts derived from PubMed records and public fact tables; see docs/embedded.md.

It is for trying and testing cogstage. Nothing in it, or predicted from it, is medical advice.

Examples
--------
>>> graph, facts = cs.embedded.graph(), cs.embedded.facts()
>>> graph.vocabulary.name[graph.vocabulary.find("Acetylsalicylic Acid")]
'Aspirin'
>>> len(facts) > 1000
True
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.errors import CogstageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.facts import Facts
from cogstage.numbering import new_numbers
from cogstage.tables import read_rows

FOLDER = Path(__file__).with_name("embedded")
GRAPH = FOLDER / "graph"  # a normal graph folder, with the additional column ``then``
FACTS = FOLDER / "facts"  # a normal facts folder, with the additional column ``records``
TEXTBOOK = Path(__file__).with_name("textbook.tsv")
KINDS = ("true", "unrelated", "wrong relation")
"""Kinds of textbook pairs: true, false because nothing relates the terms, false because another relation does."""
THEN = "MeSH 1977-1979"  # source of the facts that the older records state


@dataclass(frozen=True)
class TextbookPair:
    """A textbook pair with its answer and source, held out of training."""

    head: str
    relation: str
    tail: str
    label: bool
    source: str
    holds: str = ""
    """The relation that holds between the two terms ("..._inverse" in the other direction); empty if none does."""

    @property
    def kind(self) -> str:
        """One of :data:`KINDS`."""
        return "true" if self.label else "wrong relation" if self.holds else "unrelated"


def graph() -> Graph:
    """Document co-occurrence of MeSH concepts in the counted records; the node keys are MeSH ids."""
    return Graph.load(GRAPH)


def graph_1977_1979() -> Graph:
    """The same counts from the records of 1977 to 1979 alone: only the terms and pairs that occur in them."""
    whole = Graph.load(GRAPH)
    of_terms, of_edges = (_column(GRAPH / name, "then") for name in ("terms.parquet", "edges.parquet"))
    nodes = np.flatnonzero(of_terms)
    number = new_numbers(nodes, whole.n_nodes)
    terms = whole.vocabulary
    chosen = nodes.tolist()
    vocabulary = Vocabulary(
        term=tuple(terms.term[node] for node in chosen),
        concept=tuple(terms.concept[node] for node in chosen),
        name=tuple(terms.name[node] for node in chosen),
        type=tuple(terms.type[node] for node in chosen),
        count=of_terms[nodes],
        synonyms=tuple((name, int(number[node])) for name, node in terms.synonyms if number[node] >= 0),
    )
    kept = of_edges > 0
    return replace(
        whole,
        vocabulary=vocabulary,
        source=number[whole.source[kept]],
        target=number[whole.target[kept]],
        count=of_edges[kept],
    )


def facts() -> Facts:
    """The facts between MeSH ids, each with its sources."""
    return Facts.load(FACTS)


def records() -> tuple[int, ...]:
    """How many records state each fact, in the order of :func:`facts`; 0 if only a table states it."""
    return tuple(_column(FACTS / "facts.parquet", "records").tolist())


def textbook() -> tuple[TextbookPair, ...]:
    """The held-out textbook pairs, by names that the graph knows."""
    rows = read_rows(TEXTBOOK, ["head", "relation", "tail", "label", "source"], ["holds"])
    return tuple(
        TextbookPair(row["head"], row["relation"], row["tail"], row["label"] == "1", row["source"], row["holds"] or "")
        for row in rows
    )


def _column(path: Path, name: str) -> np.ndarray:
    try:
        values: np.ndarray = pq.read_table(path, columns=[name]).column(name).to_numpy()
    except (pa.ArrowInvalid, OSError, KeyError) as error:
        raise CogstageError(f"{path} is damaged ({error}); install cogstage again") from error
    return values
