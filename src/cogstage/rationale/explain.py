"""From the assumptions of a forward pass to Prediction records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.relations import inverse
from cogstage.rationale.evidence import Evidence
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction, Provenance, Rationale, Recall, Term

if TYPE_CHECKING:
    from cogstage.model.cogstage import Assumptions

FILTERED_POOL = 200  # how many of the strongest triples a filter chooses from


@dataclass(frozen=True)
class Explainer:
    """Turns weighed assumptions into records: names, evidence and provenance added."""

    vocabulary: Vocabulary
    relations: tuple[str, ...]
    evidence: Evidence
    provenance: Provenance

    def records(
        self,
        head: np.ndarray,
        tail: np.ndarray,
        relation: str,
        assumptions: Assumptions,
        raw: np.ndarray,
        calibrated: np.ndarray | None,
        k: int = 5,
        choose: Filter | None = None,
    ) -> list[Prediction]:
        """One record a pair, each with the ``k`` triples of highest score that pass ``choose``."""
        choose = choose or Filter()
        weighed = _Weighed.strongest(assumptions, max(k, FILTERED_POOL) if choose else k)
        index = self.relations.index(relation)
        known = self.evidence.is_fact(head, np.full(len(head), index), tail)
        rationales = self._rationales(head, tail, weighed)
        attention = weighed.attention_of_all
        safe = np.where(attention > 0, attention, 1.0)
        effective = np.exp(-(attention * np.log(safe)).sum(axis=1))
        final = raw if calibrated is None else calibrated
        return [
            Prediction(
                head=self.term(int(head[row])),
                relation=relation,
                tail=self.term(int(tail[row])),
                probability=float(final[row]),
                raw_probability=float(raw[row]),
                calibrated=calibrated is not None,
                known_fact=bool(known[row]),
                rationales=tuple(choose.apply(rationales[row])[:k]),
                assumptions=int(weighed.readable[row]),
                effective_assumptions=float(effective[row]),
                provenance=self.provenance,
            )
            for row in range(len(head))
        ]

    def term(self, node: int) -> Term:
        """A node as people see it."""
        return Term(self.vocabulary.term[node], self.vocabulary.name[node], self.vocabulary.type[node])

    def relation_name(self, number: int) -> str:
        """Relations come first, then their inverses in the same order."""
        count = len(self.relations)
        return self.relations[number] if number < count else inverse(self.relations[number - count])

    def _rationales(self, head: np.ndarray, tail: np.ndarray, w: _Weighed) -> list[list[Rationale]]:
        rows, places = np.nonzero(w.score > 0)
        a, b, r = w.head[rows, places], w.tail[rows, places], w.relation[rows, places]
        facts = self.evidence.is_fact(a, r, b)
        together = self.evidence.counts(a, b)
        sides = [
            (self.evidence.counts(target[rows], association), self.evidence.ppmi(target[rows], association))
            for target, association in ((head, a), (tail, b))
        ]
        found: list[list[Rationale]] = [[] for _ in head]
        for n, (row, place) in enumerate(zip(rows.tolist(), places.tolist(), strict=True)):
            recalls = [
                Recall(float(p[row, place]), int(rank[row, place]), _count(c[n]), float(m[n]) if c[n] else None)
                for (p, rank), (c, m) in zip(w.recalls, sides, strict=True)
            ]
            found[row].append(
                Rationale(
                    head=self.term(int(a[n])),
                    relation=self.relation_name(int(r[n])),
                    tail=self.term(int(b[n])),
                    score=float(w.score[row, place]),
                    attention=float(w.attention[row, place]),
                    relation_probability=float(w.probability[row, place]),
                    contribution=float(w.contribution[row, place]),
                    head_recall=recalls[0],
                    tail_recall=recalls[1],
                    known_fact=bool(facts[n]),
                    types_fit=self.evidence.types_fit(int(a[n]), int(r[n]), int(b[n])),
                    cooccurrence=_count(together[n]),
                )
            )
        return found


def _count(value: np.integer) -> int | None:
    return int(value) or None


@dataclass(frozen=True)
class _Weighed:
    """The strongest triples of each pair, (B, k) each, and the attention over all assumptions (B, P)."""

    head: np.ndarray
    tail: np.ndarray
    relation: np.ndarray
    score: np.ndarray
    attention: np.ndarray
    probability: np.ndarray
    contribution: np.ndarray
    recalls: Sequence[tuple[np.ndarray, np.ndarray]]  # (probability, rank) for head and tail, (B, k) each
    attention_of_all: np.ndarray
    readable: np.ndarray  # (B,) assumptions in which some relation was recognised

    @classmethod
    def strongest(cls, assumptions: Assumptions, k: int) -> _Weighed:
        """Rank all triples (i, k, j) by p_ij · p(k|i,j)."""
        probability = assumptions.relation_probability.numpy()  # (B, P, K)
        attention = assumptions.attention.numpy()  # (B, P)
        batch, _, relations = probability.shape
        score = (attention[:, :, None] * probability).reshape(batch, -1)
        k = min(k, score.shape[1])
        if k < score.shape[1]:
            top = np.argpartition(-score, k - 1, axis=1)[:, :k]
        else:
            top = np.broadcast_to(np.arange(score.shape[1]), score.shape)
        best = np.take_along_axis(score, top, 1)
        order = np.lexsort((top, -best), axis=1)  # ties in the order of the assumptions, so that runs agree
        top, best = np.take_along_axis(top, order, 1), np.take_along_axis(best, order, 1)
        pair, relation = np.divmod(top, relations)

        def at(values: np.ndarray) -> np.ndarray:
            return np.take_along_axis(values, pair, 1)

        chosen = np.take_along_axis(probability.reshape(batch, -1), top, 1)
        recalls = [
            (at(assumptions.head_recall.numpy()), at(assumptions.head_rank.numpy())),
            (at(assumptions.tail_recall.numpy()), at(assumptions.tail_rank.numpy())),
        ]
        return cls(
            at(assumptions.pair_head.numpy()),
            at(assumptions.pair_tail.numpy()),
            relation,
            best,
            at(attention),
            chosen,
            at(attention * assumptions.value.numpy()) * chosen,
            recalls,
            attention,
            (probability.sum(axis=2) > 0).sum(axis=1),
        )
