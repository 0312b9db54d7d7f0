"""What the pages and the JSON API ask of a model: terms, predictions, candidates, the model's own figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import software_version
from cogstage.errors import UsageError
from cogstage.rationale.cogstage import CogStage
from cogstage.rationale.discover import discover
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction, Term
from cogstage.web.search import TypeAhead

REMEMBERED = 2048  # explained pairs kept in memory


@dataclass(frozen=True)
class Limits:
    """What one request may ask for."""

    pairs: int = 1000  # in one batch
    rationales: int = 50  # K
    candidates: int = 200  # of discover
    body_bytes: int = 1_000_000
    requests_a_minute: int = 0  # for each client; 0 is no limit


class Service:
    """A loaded model behind the app. Holds no state of users, so that any number of copies may run."""

    def __init__(self, model: CogStage, limits: Limits | None = None) -> None:
        self.model = model
        self.limits = limits or Limits()
        self.type_ahead = TypeAhead(model.vocabulary)
        self._explained = lru_cache(REMEMBERED)(self._explain)
        # What is built on first use is built now: not in somebody's request, and not by two at a time.
        model.vocabulary.suggest("warm")
        assert model.world
        assert model.explainer

    @classmethod
    def load(cls, path: Path, limits: Limits | None = None) -> Service:
        """Read a model folder."""
        return cls(CogStage.load(path), limits)

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations the model decides."""
        return tuple(self.model.relations)

    def term(self, node: int) -> Term:
        """A node as people see it."""
        return self.model.explainer.term(node)

    def terms(self, text: str, most: int) -> list[tuple[Term, int]]:
        """Type-ahead: terms and how many units they were counted in."""
        nodes = self.type_ahead.find(text, most)
        return [(self.term(node), int(self.model.vocabulary.count[node])) for node in nodes]

    def explain(self, head: str, tail: str, relation: str, k: int, choose: Filter | None = None) -> Prediction:
        """One pair with its rationales; names may be typed loosely."""
        if k > self.limits.rationales:
            raise UsageError(f"at most {self.limits.rationales} rationales can be asked for, not {k}")
        find = self.model.vocabulary.find
        return self._explained(find(head), find(tail), relation, k, choose or Filter())

    def _explain(self, head: int, tail: int, relation: str, k: int, choose: Filter) -> Prediction:
        self.model.check_pair(head, tail)
        self.model.check_relation(relation)
        return self.model.predict_batch([head], [tail], relation, k, choose)[0]

    def predict(self, pairs: Sequence[tuple[str, str]], relation: str, k: int) -> list[Prediction]:
        """A batch of pairs of one relation."""
        find = self.model.vocabulary.find
        nodes = [(find(head), find(tail)) for head, tail in pairs]
        self.model.check_relation(relation)
        for head, tail in nodes:
            self.model.check_pair(head, tail)
        heads, tails = zip(*nodes, strict=True) if nodes else ((), ())
        return self.model.predict_batch(heads, tails, relation, k)

    def discover(
        self, relation: str, head: str | None, tail: str | None, top: int, new_only: bool, k: int
    ) -> list[Prediction]:
        """The likeliest partners of a term."""
        find = self.model.vocabulary.find
        return discover(
            self.model,
            relation,
            head=None if head is None else find(head),
            tail=None if tail is None else find(tail),
            top=top,
            new_only=new_only,
            k=k,
        )

    @cached_property
    def examples(self) -> list[Prediction]:
        """A well-counted known fact of each relation that the model decides, to begin with."""
        found = []
        nodes = len(self.model.vocabulary)
        relation, rest = np.divmod(self.model.evidence.facts, nodes * nodes)
        head, tail = np.divmod(rest, nodes)
        seen = np.minimum(self.model.vocabulary.count[head], self.model.vocabulary.count[tail])
        for name in self.relations:
            mine = np.flatnonzero(relation == self.model.evidence.relations.index(name))
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
            "relations": list(self.relations),
            "terms": len(self.model.vocabulary),
            "training_facts": len(self.model.evidence.facts),
            "metrics": self.model.metrics,
            "limits": {
                "pairs": self.limits.pairs,
                "rationales": self.limits.rationales,
                "candidates": self.limits.candidates,
                "body_bytes": self.limits.body_bytes,
                "requests_a_minute": self.limits.requests_a_minute,
            },
        }
