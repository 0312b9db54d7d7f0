"""What the pages and the JSON API ask of a model: terms, predictions, candidates, the model's own figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import software_version
from cogstage.errors import CogstageError, UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.discover import discover
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction, Term
from cogstage.web.privacy import privacy_warning, without_counts
from cogstage.web.search import TypeAhead
from cogstage.web.turns import Turns

REMEMBERED = 2048  # explained pairs kept in memory
SLICE = 32  # pairs that a large request computes at a time


@dataclass(frozen=True)
class Limits:
    """What one request may ask for."""

    pairs: int = 1000  # in one batch
    rationales: int = 50  # K
    candidates: int = 200  # of discover
    cost: int = 20_000  # of one request: pairs × (1 + K)
    body_bytes: int = 1_000_000
    requests_a_minute: int = 0  # for each client; 0 is no limit
    waiting: int = 8  # large requests that a worker answers in turn; further ones are told to come back

    def check_cost(self, pairs: int, k: int) -> None:
        """Raise if a request asks for too much."""
        if k > self.rationales:
            raise UsageError(f"k may be at most {self.rationales}, not {k}")
        if pairs * (1 + k) > self.cost:
            raise TooExpensive(
                f"{pairs:,} pairs with {k} reasons each cost pairs × (1 + k) = {pairs * (1 + k):,};"
                f" a request may cost {self.cost:,}: ask for fewer pairs or fewer reasons"
            )


class TooExpensive(UsageError):
    """A request that asks for more than one request may."""


class Service:
    """A loaded model behind the app. Holds no state of users, so that any number of copies may run."""

    def __init__(self, model: CogStage, limits: Limits | None = None, hide_counts: bool = False) -> None:
        self.model = model
        self.limits = limits or Limits()
        self.hide_counts = hide_counts
        self.type_ahead = TypeAhead(model.vocabulary)
        self.turns = Turns(self.limits.waiting)
        self._explained = lru_cache(REMEMBERED)(self._explain)
        # What is built on first use is built now: not in somebody's request, and not by two at a time.
        model.vocabulary.suggest("warm")
        assert model.predictor
        assert model.explainer

    @classmethod
    def load(cls, path: Path, limits: Limits | None = None, hide_counts: bool = False) -> Service:
        """Read a model folder. ``hide_counts`` keeps all counts from readers."""
        return cls(CogStage.load(path), limits, hide_counts)

    @property
    def privacy(self) -> str:
        """What was done to the counts behind the model: "none", or what in words."""
        return str(getattr(self.model.explainer.provenance, "privacy", "none"))

    def check_privacy(self, required: bool = False) -> str | None:
        """A warning if the counts were never suppressed; an error if that is ``required``."""
        return privacy_warning(self.privacy, required, self.hide_counts)

    def _shown(self, records: list[Prediction]) -> list[Prediction]:
        return [without_counts(record) for record in records] if self.hide_counts else records

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations the model decides."""
        return tuple(self.model.relations)

    def term(self, node: int) -> Term:
        """A node as people see it."""
        return self.model.explainer.term(node)

    def terms(self, text: str, most: int) -> list[tuple[Term, int | None]]:
        """Type-ahead: terms and how many units they were counted in."""
        nodes = self.type_ahead.find(text, most)
        return [(self.term(node), self._count(node)) for node in nodes]

    def _count(self, node: int) -> int | None:
        """How many units a term was counted in; None where counts are hidden."""
        return None if self.hide_counts else int(self.model.vocabulary.count[node])

    def explain(self, head: str, tail: str, relation: str, k: int, choose: Filter | None = None) -> Prediction:
        """One pair with its rationales; names may be typed loosely."""
        self.limits.check_cost(1, k)
        find = self.model.vocabulary.find
        with self.turns.small():
            return self._explained(find(head), find(tail), relation, k, choose or Filter())

    def _explain(self, head: int, tail: int, relation: str, k: int, choose: Filter) -> Prediction:
        self.model.check_pair(head, tail)
        self.model.check_relation(relation)
        return self._shown(self.model.predict_batch([head], [tail], relation, k, choose))[0]

    def predict(self, pairs: Sequence[tuple[str, str]], relation: str, k: int) -> Iterator[Prediction | CogstageError]:
        """A batch of pairs of one relation, row by row; a row that cannot be answered is its error."""
        self.model.check_relation(relation)
        self.limits.check_cost(len(pairs), k)

        def work(part: Sequence[tuple[str, str]]) -> list[Prediction | CogstageError]:
            rows: list[Any] = [self._nodes(head, tail) for head, tail in part]
            good = [row for row in rows if not isinstance(row, CogstageError)]
            heads, tails = zip(*good, strict=True) if good else ((), ())
            answers = iter(self._shown(self.model.predict_batch(heads, tails, relation, k)) if good else ())
            return [row if isinstance(row, CogstageError) else next(answers) for row in rows]

        return self.turns.sliced(pairs, SLICE, work)

    def _nodes(self, head: str, tail: str) -> tuple[int, int] | CogstageError:
        """The nodes of a pair as it was typed, or why there are none."""
        try:
            nodes = self.model.vocabulary.find(head), self.model.vocabulary.find(tail)
            self.model.check_pair(*nodes)
        except CogstageError as error:
            return error
        return nodes

    def discover(
        self, relation: str, head: str | None, tail: str | None, top: int, new_only: bool, k: int
    ) -> list[Prediction]:
        """The likeliest partners of a term."""
        find = self.model.vocabulary.find
        self.limits.check_cost(top, k)
        self.turns.enter()
        try:
            with self.turns.slice():
                return self._shown(
                    discover(
                        self.model,
                        relation,
                        head=None if head is None else find(head),
                        tail=None if tail is None else find(tail),
                        top=top,
                        new_only=new_only,
                        k=k,
                    )
                )
        finally:
            self.turns.leave()

    @cached_property
    def examples(self) -> list[Prediction]:
        """A well-counted known fact of each relation that the model decides, to begin with."""
        found = []
        facts = self.model.fitted.facts
        relation, head, tail = facts.relation, facts.head, facts.tail
        seen = np.minimum(self.model.vocabulary.count[head], self.model.vocabulary.count[tail])
        for name in self.relations:
            mine = np.flatnonzero(relation == self.model.all_relations.index(name))
            if len(mine):
                best = mine[np.argmax(seen[mine])]
                found += self.model.predict_batch([int(head[best])], [int(tail[best])], name, 0)
        return found

    def quality(self) -> list[tuple[str, dict[str, float]]]:
        """The figures stored with the model, by relation."""
        figures = self.model.metrics.get("dev", {})
        return [(name, figures[name]) for name in self.relations if name in figures]

    def about(self) -> dict[str, Any]:
        """What the model is, what it was trained on, and its measured quality."""
        provenance = self.model.explainer.provenance
        return {
            "version": software_version(),
            "model": provenance.model,
            "graph": provenance.graph,
            "world": provenance.world,
            "privacy": self.privacy,
            "relations": list(self.relations),
            "terms": len(self.model.vocabulary),
            "training_facts": len(self.model.fitted.facts),
            "metrics": self.model.metrics,
            "limits": {
                "pairs": self.limits.pairs,
                "rationales": self.limits.rationales,
                "candidates": self.limits.candidates,
                "cost": self.limits.cost,
                "body_bytes": self.limits.body_bytes,
                "requests_a_minute": self.limits.requests_a_minute,
            },
        }
