"""All candidates of a question such as "what might treat hypertension?", ranked once and then filtered and paged."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from cogstage.rationale.discover import candidates
from cogstage.rationale.side_effects import EFFECT, USE, check_indications, is_indication
from cogstage.relations import RelationIndex, inverse
from cogstage.web.corrections import CorrectedModel
from cogstage.web.work_queue import WorkQueue

REMEMBERED = 256  # rankings kept in memory
SLICE = 512  # candidates scored at a time
SORTS = ("rank", "name", "together", "type")


@dataclass(frozen=True, eq=False)
class CandidateRanking:
    """Candidates for the other end of a relation: likeliest first, contradicted ones last. Arrays are (n,)."""

    relation: str
    side: str  # where the given node stands
    given: int
    node: np.ndarray
    logit: np.ndarray
    known: np.ndarray  # a known fact
    with_facts: np.ndarray  # a term with training facts of the relation; hit rates are measured among these
    contradicted: np.ndarray  # an opposite relation is known or more likely; ranked below the others
    indication: np.ndarray | None  # for causes: the drug is held to treat it rather than cause it
    together: np.ndarray  # how often counted together with the given node
    type: np.ndarray

    def pairs(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Heads and tails of some rows."""
        given = np.full(len(at), self.given, np.int64)
        return (given, self.node[at]) if self.side == "head" else (self.node[at], given)

    def new_rank(self, at: np.ndarray) -> np.ndarray:
        """Rank among new candidates with facts of the relation, from 1 on; 0 for others."""
        new = self.with_facts & ~self.known
        rank: np.ndarray = np.where(new, np.cumsum(new), 0)[at]
        return rank

    def score(self, at: np.ndarray) -> np.ndarray:
        """How rows compare within the list, 0 to 1: probabilities near 1 would all look the same."""
        low, high = (float(self.logit.min()), float(self.logit.max())) if len(self.logit) else (0.0, 1.0)
        result: np.ndarray = (self.logit[at] - low) / ((high - low) or 1.0)
        return result

    def choose(
        self,
        kind: str = "",
        known: str = "",
        together: str = "",
        least: float = 0.0,
        sort: str = "rank",
        drop: np.ndarray | None = None,
    ) -> np.ndarray:
        """Rows that pass the filters and are not in the mask ``drop`` (n,), sorted.

        ``known``: "new" or "known"; ``together``: "yes" or "never".
        """
        keep = self.score(np.arange(len(self.node))) >= least
        if drop is not None:
            keep &= ~drop
        if kind:
            keep &= self.type == kind
        if known in ("new", "known"):
            keep &= self.known == (known == "known")
        if together in ("yes", "never"):
            keep &= (self.together > 0) == (together == "yes")
        at = np.flatnonzero(keep)
        if sort == "together":
            return at[np.argsort(-self.together[at], kind="stable")]
        return at[np.argsort(self.type[at], kind="stable")] if sort == "type" else at

    def left_out(self, drop: np.ndarray, shown: np.ndarray, whole: bool) -> np.ndarray:
        """The rows of the mask ``drop`` that have the log-odds of the last of the rows ``shown`` or more, or all."""
        least = -np.inf if whole else self.logit[shown[~self.contradicted[shown]]].min(initial=np.inf)
        return np.flatnonzero(drop & (self.logit >= least))


class Ranker:
    """Ranks candidates and remembers the last rankings; large work takes turns."""

    def __init__(self, corrected: CorrectedModel, queue: WorkQueue) -> None:
        self._corrected, self._queue = corrected, queue
        self._remembered = lru_cache(REMEMBERED)(self._rank)
        model = corrected.model
        usual, numbers = model.explainer.types, RelationIndex(model.all_relations)
        self.usual_types: dict[str, tuple[dict[str, float], dict[str, float]]] = {  # of heads and of tails, with shares
            name: (usual.of_heads(numbers.number(name)), usual.of_heads(numbers.number(inverse(name))))
            if usual
            else ({}, {})
            for name in model.relations
        }

    def rank(self, relation: str, side: str, node: int) -> CandidateRanking:
        """The ranking for a node at one side of a relation."""
        return self._remembered(self._corrected.version, relation, side, node)

    def side(self, relation: str, node: int) -> str:
        """The side of the relation at which terms of this type stand; "" where neither is usual."""
        kind = self._corrected.model.vocabulary.type[node]
        if not kind:
            return "head"
        head, tail = (shares.get(kind, 0.0) for shares in self.usual_types[relation])
        return "" if head == tail == 0.0 else "head" if head >= tail else "tail"

    def indications(self, ranking: CandidateRanking) -> np.ndarray:
        """Which candidates of a ranking by causes are indications, known or predicted: (n,) bool."""
        check_indications(self._corrected.model, ranking.relation)
        assert ranking.indication is not None
        return ranking.indication

    def _rank(self, version: int, relation: str, side: str, node: int) -> CandidateRanking:
        model = self._corrected.model
        pool = candidates(model, relation, *((node, None) if side == "head" else (None, node)))
        given = np.full(len(pool), node, np.int64)
        column = model.relations.index(relation)
        effects = relation == EFFECT and USE in model.relations

        def work(part: Any) -> list[np.ndarray]:
            others, same = pool[part.start : part.stop], given[part.start : part.stop]
            profiles = model.profiles(*((same, others) if side == "head" else (others, same)))
            verdicts = (profiles.known[:, column], profiles.contradicted(relation))
            use = is_indication(profiles) if effects else np.zeros(len(others), bool)
            return [np.stack([profiles.logit[:, column], *verdicts, use])]

        parts = [np.empty((4, 0)), *self._queue.in_chunks(range(len(pool)), SLICE, work)]
        logit, known, contradicted, use = np.concatenate(parts, axis=1)
        order = np.lexsort((pool, -logit, contradicted))
        pool, logit = pool[order], logit[order]
        known, contradicted, use = (each[order].astype(bool) for each in (known, contradicted, use))
        types = model.vocabulary.type
        kinds = np.array([types[other] for other in pool.tolist()], object)
        together = model.counts.counts(given, pool)
        indication = use if effects else None
        facts = np.isin(pool, model.ends(relation, "tail" if side == "head" else "head"))
        judged = (logit, known, facts, contradicted, indication)
        return CandidateRanking(relation, side, node, pool, *judged, together, kinds)
