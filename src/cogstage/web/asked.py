"""The question about a pair: the parameters of the pair page, of its downloads and of the API, and how to ask it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from cogstage.errors import UsageError
from cogstage.rationale.corrections import split_triple
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction, Triple
from cogstage.web.service import Service

SHOWN = 10  # reasons unless asked otherwise
CHANGES = 20  # what-if changes at most
Text = Annotated[str, Query(max_length=300)]
Name = Annotated[str, Field(max_length=300)]
TripleTexts = Annotated[list[Annotated[str, Field(max_length=1000)]], Field(max_length=CHANGES)]
SEPARATOR = "\t"  # between the parts of a triple in an address: no key holds one, as keys come from tables


def code_of(triple: Triple) -> str:
    """A triple as it stands in an address."""
    return SEPARATOR.join(triple)


def triple_of(code: str) -> Triple:
    """Parse a triple that :func:`code_of` encoded."""
    parts = code.split(SEPARATOR)
    if len(parts) != 3 or not all(parts) or len(code) > 1000:
        raise UsageError("a triple must be head, relation and tail, separated by tabs")
    return parts[0], parts[1], parts[2]


class PairQuestion(BaseModel):
    """A question about a pair. Terms may be typed loosely."""

    head: Name = Field("", description="First term.")
    tail: Name = Field("", description="Second term.")
    relation: Name = Field("", description="Relation; by default the one with the strongest verdict.")
    k: int = Field(SHOWN, ge=0, le=50, description="Largest number of reasons.")
    through: Name = Field("", description="Only reasons with this term; part of its name is enough.")
    reason_relation: Name = Field("", description="Only reasons with this relation.")
    known_only: bool = Field(False, description="Only reasons that are known facts.")
    wrong: TripleTexts = Field([], description="Triples to treat as wrong: head, relation and tail, tabs between.")
    right: TripleTexts = Field([], description="Triples to treat as known facts, likewise.")
    base_rate: float | None = Field(None, gt=0, lt=1, description="Share of true pairs that the probability assumes.")

    def verdicts(self, service: Service) -> dict[Triple, bool]:
        """The what-if changes, by the keys of their terms."""
        changes: dict[Triple, bool] = {}
        for texts, right in ((self.wrong, False), (self.right, True)):
            for text in texts:
                triple = triple_of(text) if SEPARATOR in text else split_triple(text, service.model.all_relations)
                changes[service.key(triple[0]), triple[1], service.key(triple[2])] = right
        return changes

    def ask(self, service: Service, verdicts: Mapping[Triple, bool] | None = None) -> Prediction:
        """The answer; ``verdicts`` in place of the question's own."""
        choose = Filter(self.through.strip() or None, self.reason_relation or None, self.known_only)
        changes = self.verdicts(service) if verdicts is None else verdicts
        prediction = service.explain(self.head, self.tail, self.relation or None, self.k, choose, changes)
        return prediction if self.base_rate is None else prediction.with_base_rate(self.base_rate)

    def of(self, prediction: Prediction) -> PairQuestion:
        """The same question with keys and the relation of its answer in place of what was typed, for its address."""
        keys = {"head": prediction.head.key, "tail": prediction.tail.key, "relation": prediction.relation}
        return self.model_copy(update=keys)

    def fields(self, *without: str, verdicts: Mapping[Triple, bool] | None = None) -> list[tuple[str, Any]]:
        """Names and values of the address, defaults left out."""
        values = self.model_dump(exclude_defaults=True)
        if verdicts is not None:
            for name, verdict in (("wrong", False), ("right", True)):
                values[name] = [code_of(triple) for triple, right in verdicts.items() if right == verdict]
        return [
            (name, int(value) if value is True else value)
            for name, content in values.items()
            for value in (content if isinstance(content, list) else [content])
            if name not in without
        ]

    def address(self, verdicts: Mapping[Triple, bool] | None = None) -> str:
        """The stable address of this question, perhaps with other what-if changes."""
        return urlencode(self.fields(verdicts=verdicts))


class ApiQuestion(PairQuestion):
    """A pair to explain."""

    model_config = ConfigDict(extra="forbid")

    head: Annotated[str, Field(min_length=1, max_length=300, description="First term.")]
    tail: Annotated[str, Field(min_length=1, max_length=300, description="Second term.")]
    k: int = Field(5, ge=0, le=50, description="Largest number of reasons.")
