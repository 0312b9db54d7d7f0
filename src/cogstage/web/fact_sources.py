"""Where known facts come from: the sources that a facts folder states, with links."""

from __future__ import annotations

from dataclasses import dataclass

from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.facts import Facts
from cogstage.rationale.record import Term, Triple
from cogstage.relations import forward, is_inverse
from cogstage.web.links import fact_link


@dataclass(frozen=True)
class FactSource:
    """A source of one fact; ``address`` is None if there is nothing to link to."""

    name: str
    address: str | None


class FactSources:
    """The sources of facts by the terms of a graph."""

    def __init__(self, facts: Facts, vocabulary: Vocabulary) -> None:
        self._facts, self._vocabulary = facts, vocabulary
        columns = zip(facts.head, facts.relation, facts.tail, facts.source, strict=True)
        self._sources = {(head, relation, tail): source for head, relation, tail, source in columns}

    def of(self, head: Term, relation: str, tail: Term) -> list[FactSource]:
        """The sources of a known fact, in either direction; empty for one that the folder does not have."""
        if is_inverse(relation):
            head, relation, tail = tail, forward(relation), head
        triple: Triple = (self._concept(head.key), relation, self._concept(tail.key))
        names = filter(None, self._sources.get(triple, "").split(";"))
        return [FactSource(name, fact_link(name, head, tail)) for name in names]

    def _concept(self, key: str) -> str:
        """The concept of the facts that a term of the graph stands for."""
        matched = self._facts.matched
        concept = self._vocabulary.concept[self._vocabulary.index[key]]
        return matched.get(key, matched.get(concept, concept))
