"""What the pages, the JSON API and the agent interface ask of a model: terms, predictions, candidates, figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import software_version
from cogstage.corpus.tokens import casefold_text
from cogstage.errors import CogstageError, UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.basis import Bases
from cogstage.rationale.discover import fitting_relations
from cogstage.rationale.filters import Filter
from cogstage.rationale.pairs_table import predict_pairs
from cogstage.rationale.record import Prediction, Term, Triple
from cogstage.web.corrections import CorrectedModel
from cogstage.web.privacy import privacy_warning, without_cited_counts, without_evidence_of_counts
from cogstage.web.ranking import CandidateRanking, Ranker
from cogstage.web.work_queue import WorkQueue

REMEMBERED = 2048  # explained pairs kept in memory
CHUNK = 32  # pairs that a large request computes at a time
EXPORTED_AT_ONCE = 256  # candidates of a list that an export computes at a time
EXAMPLE_TERMS, EXAMPLE_CANDIDATES, EXAMPLE_REASONS = 2, 3, 8  # the start page chooses its examples from these
NOTHING: Mapping[Triple, bool] = {}


@dataclass(frozen=True)
class Limits:
    """What one request may ask for."""

    pairs: int = 1000  # in one batch
    rationales: int = 50  # K
    candidates: int = 200  # of discover
    cost: int = 20_000  # of one request: pairs × (1 + K)
    body_bytes: int = 1_000_000
    requests_a_minute: int = 0  # for each client; 0 is no limit
    corrections: int = 10_000  # verdicts in a table that pages add to; the explorer has no accounts
    waiting: int = 8  # large requests that a worker answers in turn, a quarter of them of one client; others get 503

    def check_cost(self, pairs: int, k: int) -> None:
        """Raise if a request asks for too much."""
        if k > self.rationales:
            raise UsageError(f"k can be at most {self.rationales}, not {k}")
        if pairs * (1 + k) > self.cost:
            raise TooExpensive(
                f"{pairs:,} pairs with {k} reasons each cost pairs × (1 + k) = {pairs * (1 + k):,};"
                f" the limit is {self.cost:,}; request fewer pairs or fewer reasons"
            )


@dataclass(frozen=True)
class TermMatch:
    """A term that was searched for."""

    term: Term
    count: int | None  # units it was counted in; None where counts are hidden
    matched: str  # the synonym by which it was found; empty if it is its name


class TooExpensive(UsageError):
    """A request that asks for more than one request may."""


class Service:
    """A loaded model behind the app. Holds no state of users, so that any number of copies may run.

    Parameters
    ----------
    model
        The model.
    limits
        What one request may ask for.
    hide_counts
        Keep all counts from readers.
    corrections
        A table of verdicts on triples, read again whenever it changes; pages may add to it.
    """

    def __init__(
        self,
        model: CogStage,
        limits: Limits | None = None,
        hide_counts: bool = False,
        corrections: Path | None = None,
    ) -> None:
        self.limits = limits or Limits()
        self.hide_counts = hide_counts
        model = without_cited_counts(model) if hide_counts else model
        self.corrected = CorrectedModel(model, corrections, self.limits.corrections)
        self.queue = WorkQueue(self.limits.waiting)
        self.ranker = Ranker(self.corrected, self.queue)
        self.bases = Bases(model.counts, model.fitted.facts, hide_counts)
        self._explained = lru_cache(REMEMBERED)(self._explain)
        # What is built on first use is built now: not in somebody's request, and not by two at a time.
        model.vocabulary.suggest("warm")
        assert model.explainer
        model.predictor.warm()
        for relation in model.relations[:1]:
            model.predict_batch([0], [min(1, len(model.vocabulary) - 1)], relation)

    @classmethod
    def load(
        cls, path: Path, limits: Limits | None = None, hide_counts: bool = False, corrections: Path | None = None
    ) -> Service:
        """Create a service from a model folder."""
        return cls(CogStage.load(path), limits, hide_counts, corrections)

    @property
    def model(self) -> CogStage:
        """The model with the corrections as they stand."""
        return self.corrected.model

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations the model decides."""
        return self.model.relations

    def check_privacy(self, required: bool = False) -> str | None:
        """A warning if the counts were never suppressed; an error if that is ``required``."""
        return privacy_warning(self.model.privacy, required, self.hide_counts)

    # Terms

    def find(self, text: str) -> int:
        """The node that somebody means; raises with the nearest names."""
        return self.model.vocabulary.find(text.strip())

    def key(self, text: str) -> str:
        """The key of the term that somebody means."""
        return self.model.vocabulary.term[self.find(text)]

    def term(self, node: int) -> Term:
        """A node as people see it."""
        return self.model.explainer.term(node)

    def terms(self, text: str, most: int) -> list[TermMatch]:
        """Type-ahead: the terms that ``text`` may stand for, best first."""
        matches = self.model.vocabulary.search.find(text, most)
        return [TermMatch(term := self.term(m.node), self.count(m.node), _other_name(m.name, term)) for m in matches]

    def read_as(self, text: str, term: Term) -> str:
        """What was typed for a term, if it is none of its names; otherwise an empty text."""
        vocabulary, typed = self.model.vocabulary, text.strip()
        known = typed in vocabulary.index or casefold_text(typed) in vocabulary.casefolded
        return "" if known else _other_name(typed, term)

    def count(self, node: int) -> int | None:
        """How many units a term was counted in; None where counts are hidden."""
        return None if self.hide_counts else int(self.model.vocabulary.count[node])

    def examples_of(self, one: int, other: int) -> list[dict[str, Any]]:
        """Documents that name both terms, where the graph keeps any and counts are shown."""
        kept = self.model.fitted.examples
        return [] if kept is None or self.hide_counts else [asdict(example) for example in kept.between(one, other)]

    # Predictions

    def explain(
        self,
        head: str,
        tail: str,
        relation: str | None,
        k: int,
        choose: Filter | None = None,
        verdicts: Mapping[Triple, bool] = NOTHING,
    ) -> Prediction:
        """One pair with its reasons; names may be typed loosely. ``verdicts`` are what-if changes to triples.

        Without a relation, the one with the strongest verdict is explained.
        """
        self.limits.check_cost(1, k)
        with self.queue.interactive():
            key = tuple(sorted(verdicts.items()))
            nodes = self.find(head), self.find(tail)
            return self._explained(self.corrected.version, *nodes, relation, k, choose or Filter(), key)

    def _explain(
        self,
        version: int,
        head: int,
        tail: int,
        relation: str | None,
        k: int,
        choose: Filter,
        verdicts: tuple[tuple[Triple, bool], ...],
    ) -> Prediction:
        model = self.model.with_verdicts(dict(verdicts)) if verdicts else self.model
        if relation:
            model.check_relation(relation)
        return self._shown([choose.apply(model.predict(head, tail, relation)).top(k)])[0]

    def predict(
        self, pairs: Sequence[tuple[str, str]], relation: str | None, k: int
    ) -> Iterator[Prediction | CogstageError]:
        """A batch of pairs, row by row; a row that cannot be answered is its error.

        Without a relation, each pair is predicted for the one with the strongest verdict.
        """
        if relation:
            self.model.check_relation(relation)
        self.limits.check_cost(len(pairs), k)

        def work(part: Sequence[tuple[str, str]]) -> list[Prediction | CogstageError]:
            rows: list[Any] = [self._nodes(head, tail) for head, tail in part]
            good = [(*row, relation or None) for row in rows if not isinstance(row, CogstageError)]
            answers = iter(self._shown(predict_pairs(self.model, good, k)))
            return [row if isinstance(row, CogstageError) else next(answers) for row in rows]

        return self.queue.in_chunks(pairs, CHUNK, work)

    def _nodes(self, head: str, tail: str) -> tuple[int, int] | CogstageError:
        """The nodes of a pair as it was typed, or why there are none."""
        try:
            nodes = self.find(head), self.find(tail)
            self.model.check_pair(*nodes)
        except CogstageError as error:
            return error
        return nodes

    def ranking(self, relation: str, side: str, node: int) -> CandidateRanking:
        """All candidates for the other end of ``relation``, where ``node`` stands at ``side`` ("head" or "tail")."""
        self.model.check_relation(relation)
        return self.ranker.rank(relation, side, node)

    def records(self, ranking: CandidateRanking, at: np.ndarray, k: int) -> list[Prediction]:
        """The predictions of some rows of a ranking."""
        self.limits.check_cost(len(at), k)
        heads, tails = ranking.pairs(at)
        with self.queue.interactive():
            records = self._shown(self.model.predict_batch(heads, tails, ranking.relation, k))
        return [replace(record, rank=row + 1) for record, row in zip(records, at.tolist(), strict=True)]

    def all_records(self, ranking: CandidateRanking, at: np.ndarray, k: int) -> Iterator[Prediction]:
        """The predictions of any number of rows of a ranking; large work takes turns."""

        def work(part: Sequence[int]) -> list[Prediction]:
            heads, tails = ranking.pairs(np.array(part, np.int64))
            return self._shown(self.model.predict_batch(heads, tails, ranking.relation, k))

        rows = at.tolist()
        for row, record in zip(rows, self.queue.in_chunks(rows, EXPORTED_AT_ONCE, work), strict=True):
            yield replace(record, rank=row + 1)

    def discover(
        self,
        relation: str | None,
        head: str | None,
        tail: str | None,
        top: int,
        new_only: bool,
        k: int,
        indications: str = "keep",
        drop_contradicted: bool = False,
    ) -> list[Prediction]:
        """The likeliest partners of a term; indications among what a drug causes may be dropped, or listed alone.

        Without a relation, one list for each that fits the type of the term.
        """
        if (head is None) == (tail is None):
            raise UsageError("discover needs a head or a tail, not both")
        self.limits.check_cost(top, k)
        side, node = ("head", self.find(head)) if head is not None else ("tail", self.find(str(tail)))
        names = (relation,) if relation else fitting_relations(self.model, **{side: node})
        records: list[Prediction] = []
        for name in names:
            ranking = self.ranking(name, side, node)
            drop = ranking.contradicted & drop_contradicted
            if indications != "keep":
                used = self.ranker.indications(ranking)
                drop = drop | (used if indications == "drop" else ~used)
            records += self.records(ranking, ranking.choose(known="new" if new_only else "", drop=drop)[:top], k)
        return records

    def _shown(self, records: list[Prediction]) -> list[Prediction]:
        return [without_evidence_of_counts(record) for record in records] if self.hide_counts else records

    # About

    @cached_property
    def examples(self) -> list[Prediction]:
        """For each relation a new candidate for a term of which much is known, with good reasons; may treat first.

        A pair that is a known fact would show nothing: the model was trained on it.
        """
        facts, count = self.model.fitted.facts, self.model.vocabulary.count
        found = []
        for name in self.relations:
            tails = facts.tail[facts.relation == self.model.all_relations.index(name)]
            known = np.bincount(tails, minlength=len(count))
            records: list[tuple[float, Prediction]] = []
            for node in [n for n in np.argsort(-known, kind="stable")[:EXAMPLE_TERMS].tolist() if known[n]]:
                ranking = self.ranking(name, "tail", node)
                new = ranking.choose(known="new")[:EXAMPLE_CANDIDATES]
                familiar = np.log1p(count[ranking.node[new]]) / max(1.0, np.log1p(count.max()))
                shown = self.records(ranking, new, EXAMPLE_REASONS)
                records += [(_convincing(p) + 0.1 * more, p) for p, more in zip(shown, familiar.tolist(), strict=True)]
            if records:
                found.append(max(records, key=lambda entry: entry[0])[1])
        return sorted(found, key=lambda example: (example.relation == "may_treat", _convincing(example)), reverse=True)

    @property
    def counted(self) -> dict[str, Any]:
        """What the graph says about its corpus."""
        return dict(self.model.metrics.get("sources", {}).get("counted", {}))

    def about(self) -> dict[str, Any]:
        """What the model is, what it was trained on, and its measured quality."""
        return {
            **asdict(self.model.explainer.provenance),
            "version": software_version(),
            "relations": list(self.relations),
            "terms": len(self.model.vocabulary),
            "training_facts": len(self.model.facts),
            "corrections": len(self.corrected.entries),
            "sources": {} if self.hide_counts else self.model.metrics.get("sources", {}),
            "metrics": {n: value for n, value in self.model.metrics.items() if n not in ("history", "sources")},
            "limits": asdict(self.limits),
        }


def _other_name(name: str, term: Term) -> str:
    return "" if casefold_text(name) in (casefold_text(term.name), casefold_text(term.key)) else name


def _convincing(prediction: Prediction) -> float:
    """How well an answer shows what an answer is: likely, with known facts and several reasons behind it."""
    known = sum(reason.known_fact for reason in prediction.reasons_for) if prediction.verdict == "likely" else -100
    return min(prediction.probability, 0.97) + 0.05 * known + 0.02 * len(prediction.reasons)
