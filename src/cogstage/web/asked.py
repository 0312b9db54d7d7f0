"""What a pair page was asked: two terms, a relation, filters, what-if changes, a base rate; all in the address."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import urlencode

from fastapi import Query

from cogstage.errors import UsageError
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction, Triple
from cogstage.web.service import Service

SHOWN = 10  # reasons on the pair page unless asked otherwise
CHANGES = 20  # what-if changes at most
Text = Annotated[str, Query(max_length=300)]
Codes = Annotated[list[str], Query(max_length=CHANGES)]
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


class Question:
    """What a pair page was asked, as it stands in its address."""

    def __init__(
        self,
        head: Text = "",
        tail: Text = "",
        relation: Text = "",
        k: Annotated[int, Query(ge=1, le=50)] = SHOWN,
        through: Text = "",
        by: Text = "",
        known: bool = False,
        wrong: Codes = [],  # noqa: B006 (FastAPI copies it)
        right: Codes = [],  # noqa: B006
        rate: Annotated[float | None, Query(gt=0, lt=100)] = None,
    ) -> None:
        self.head, self.tail, self.relation, self.k = head.strip(), tail.strip(), relation, k
        self.through, self.by, self.known, self.rate = through.strip(), by, known, rate
        self.verdicts: dict[Triple, bool] = {triple_of(code): False for code in wrong}
        self.verdicts |= {triple_of(code): True for code in right}

    def choose(self) -> Filter:
        """The filter that was asked for."""
        return Filter(self.through or None, self.by or None, self.known)

    def ask(self, service: Service, verdicts: Mapping[Triple, bool] | None = None) -> Prediction:
        """The answer; ``verdicts`` in place of the question's own."""
        self.relation = self.relation or service.relations[0]
        changes = self.verdicts if verdicts is None else verdicts
        found = service.explain(self.head, self.tail, self.relation, self.k, self.choose(), changes)
        return found if self.rate is None else found.with_base_rate(self.rate / 100)

    def fields(self, *without: str, verdicts: Mapping[Triple, bool] | None = None) -> list[tuple[str, Any]]:
        """Names and values of the address, defaults left out."""
        asked: list[tuple[str, Any]] = [("head", self.head), ("tail", self.tail), ("relation", self.relation)]
        asked += [("k", self.k)] if self.k != SHOWN else []
        asked += [("through", self.through)] if self.through else []
        asked += [("by", self.by)] if self.by else []
        asked += [("known", 1)] if self.known else []
        asked += [("rate", f"{self.rate:g}")] if self.rate is not None else []
        changes = self.verdicts if verdicts is None else verdicts
        asked += [("right" if right else "wrong", code_of(triple)) for triple, right in changes.items()]
        return [(name, value) for name, value in asked if name not in without]

    def address(self, verdicts: Mapping[Triple, bool] | None = None) -> str:
        """The stable address of this question, perhaps with other what-if changes."""
        return urlencode(self.fields(verdicts=verdicts))

    def settle(self, prediction: Prediction) -> None:
        """Put keys in place of what was typed, so that the address stays."""
        self.head, self.tail = prediction.head.key, prediction.tail.key
