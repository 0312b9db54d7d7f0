"""Match facts to a graph: concepts become nodes, and unmatched concepts are counted and listed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cogstage.errors import CogstageError
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.names import end_rank
from cogstage.numbering import every_pair
from cogstage.relations import ordered


@dataclass(frozen=True)
class LocatedFacts:
    """Facts between the nodes of a graph; ``relation`` counts in ``relations``.

    Where nodes are terms, a fact between two concepts stands for every pair of their terms. ``pair`` numbers the
    unordered pair of *concepts* behind each row: the unit that must stay in one split.
    """

    relations: tuple[str, ...]
    head: np.ndarray  # int32 (M,)
    relation: np.ndarray  # int16 (M,)
    tail: np.ndarray  # int32 (M,)
    pair: np.ndarray  # int64 (M,)
    year: np.ndarray = field(default_factory=lambda: np.empty(0, np.int32))  # int32 (M,), -1 where it is not known

    def __post_init__(self) -> None:
        if len(self.year) != len(self.head):
            object.__setattr__(self, "year", np.full(len(self.head), -1, np.int32))

    def __len__(self) -> int:
        return len(self.head)

    def take(self, chosen: np.ndarray) -> LocatedFacts:
        """The rows of a mask or of positions."""
        columns = (self.head, self.relation, self.tail, self.pair, self.year)
        return LocatedFacts(self.relations, *(column[chosen] for column in columns))


@dataclass(frozen=True)
class Concepts:
    """The concept of each node as a number; nodes without one are concepts of their own."""

    names: tuple[str, ...]
    of_node: np.ndarray  # int64 (V,)

    @classmethod
    def from_vocabulary(cls, vocabulary: Vocabulary, matched: Mapping[str, str] | None = None) -> Concepts:
        """Number the concepts of a graph; ``matched`` says which concept of the facts one of the graph stands for."""
        keys = [concept or term for concept, term in zip(vocabulary.concept, vocabulary.term, strict=True)]
        keys = [matched.get(key, key) for key in keys] if matched else keys
        numbers: dict[str, int] = {}
        of_node = np.fromiter((numbers.setdefault(key, len(numbers)) for key in keys), np.int64, len(keys))
        return cls(tuple(numbers), of_node)

    def pair(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """A number for the unordered pair of concepts behind each pair of nodes."""
        first, second = self.of_node[head], self.of_node[tail]
        number: np.ndarray = np.minimum(first, second) * len(self.names) + np.maximum(first, second)
        return number


def locate(facts: Facts, vocabulary: Vocabulary, concepts: Concepts) -> tuple[LocatedFacts, dict[str, Any]]:
    """Place the facts on the nodes; the second result counts, for each relation, what was and was not placed."""
    relations = ordered(facts.relations)
    number = {name: index for index, name in enumerate(concepts.names)}
    rank = {relation: index for index, relation in enumerate(relations)}
    head = np.fromiter((number.get(name, -1) for name in facts.head), np.int64, len(facts))
    tail = np.fromiter((number.get(name, -1) for name in facts.tail), np.int64, len(facts))
    relation = np.fromiter((rank[name] for name in facts.relation), np.int64, len(facts))
    placed = (head >= 0) & (tail >= 0)
    if not placed.any():
        raise CogstageError(_nothing_placed(facts, concepts))

    by_concept = np.argsort(concepts.of_node, kind="stable").astype(np.int32)
    size = np.bincount(concepts.of_node, minlength=len(concepts.names))
    starts = np.concatenate([[0], np.cumsum(size)])
    fact = np.flatnonzero(placed)
    rows, nodes_head, nodes_tail = every_pair(starts, by_concept, head[fact], tail[fact])
    kept = _fitting(vocabulary, relations, relation[fact][rows], rows, nodes_head, nodes_tail)
    rows, nodes_head, nodes_tail = rows[kept], nodes_head[kept], nodes_tail[kept]
    located = LocatedFacts(
        relations,
        nodes_head,
        relation[fact][rows].astype(np.int16),
        nodes_tail,
        concepts.pair(nodes_head, nodes_tail),
        np.array([-1 if year is None else year for year in facts.year], np.int32)[fact][rows],
    )
    order = np.lexsort((located.tail, located.head, located.relation))
    return located.take(order), _coverage(facts, relations, relation, head, tail, located)


def _fitting(
    vocabulary: Vocabulary,
    relations: tuple[str, ...],
    relation: np.ndarray,
    fact: np.ndarray,
    head: np.ndarray,
    tail: np.ndarray,
) -> np.ndarray:
    """Which pairs of nodes have types that fit their relation: of the nodes of a concept, those that fit best."""
    kinds, kind = np.unique(np.array(vocabulary.type, object).astype(str), return_inverse=True)
    kept = np.ones(len(fact), bool)
    for end, nodes in enumerate((head, tail)):
        ranks = np.array([[end_rank(name, end, str(type)) for type in kinds] for name in relations], np.int64)
        rank = ranks[relation, kind.ravel()[nodes]]
        best = np.full(int(fact.max(initial=-1)) + 1, 2, np.int64)
        np.minimum.at(best, fact, rank)
        kept &= (rank == best[fact]) & (rank < 2)
    return kept


def _coverage(
    facts: Facts,
    relations: tuple[str, ...],
    relation: np.ndarray,
    head: np.ndarray,
    tail: np.ndarray,
    found: LocatedFacts,
) -> dict[str, Any]:
    """For each relation: facts read, placed, with one end missing, with both; and the concepts missed most often."""
    missing = (head < 0).astype(int) + (tail < 0)
    absent = Counter(facts.head[row] for row in np.flatnonzero(head < 0))
    absent.update(facts.tail[row] for row in np.flatnonzero(tail < 0))
    most = sorted(absent.items(), key=lambda item: (-item[1], item[0]))[:10]
    return {
        "relations": {
            name: {
                "facts": int(np.sum(relation == index)),
                "both ends in the graph": int(np.sum((relation == index) & (missing == 0))),
                "one end in the graph": int(np.sum((relation == index) & (missing == 1))),
                "no end in the graph": int(np.sum((relation == index) & (missing == 2))),
                "pairs of nodes": int(np.sum(found.relation == index)),
            }
            for index, name in enumerate(relations)
        },
        "concepts missing": len(absent),
        "missing most often": [[name, count] for name, count in most],  # a list: JSON objects are sorted by key
    }


def _nothing_placed(facts: Facts, concepts: Concepts) -> str:
    if not len(facts):
        return "there are no facts to build a data set from"
    theirs = ", ".join(dict.fromkeys((*facts.head[:2], *facts.tail[:1])))
    ours = ", ".join(concepts.names[:3]) or "none"
    return (
        f"none of the {len(facts):,} facts has both ends in the graph: the facts name {theirs} ..., the graph's "
        f"concepts are {ours} ...; create the facts with this graph, so that names are matched"
    )
