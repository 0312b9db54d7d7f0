"""From the assumptions of a forward pass to Prediction records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.decision import effective_number
from cogstage.rationale.evidence import Evidence
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction, Provenance, Rationale, Recall, Term
from cogstage.relations import inverse

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
    _terms: dict[int, Term] = field(default_factory=dict, repr=False, compare=False)  # those shown so far

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
        formed = assumptions.formed
        readable, effective = formed.sum(1), effective_number(assumptions.attention * formed)
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
                assumptions=int(readable[row]),
                effective_assumptions=float(effective[row]),
                provenance=self.provenance,
            )
            for row in range(len(head))
        ]

    def term(self, node: int) -> Term:
        """A node as people see it."""
        found = self._terms.get(node)
        if found is None:
            found = Term(self.vocabulary.term[node], self.vocabulary.name[node], self.vocabulary.type[node])
            self._terms[node] = found
        return found

    def relation_name(self, number: int) -> str:
        """Relations come first, then their inverses in the same order."""
        count = len(self.relations)
        return self.relations[number] if number < count else inverse(self.relations[number - count])

    def _rationales(self, head: np.ndarray, tail: np.ndarray, w: _Weighed) -> list[list[Rationale]]:
        rows, places = np.nonzero(w.score > 0)
        a, b, r = w.head[rows, places], w.tail[rows, places], w.relation[rows, places]
        sides = [
            self._recalls(target[rows], association, p[rows, places], rank[rows, places])
            for target, association, (p, rank) in ((head, a, w.recalls[0]), (tail, b, w.recalls[1]))
        ]
        columns = [
            values.tolist()
            for values in (
                rows,
                a,
                r,
                b,
                w.score[rows, places],
                w.attention[rows, places],
                w.probability[rows, places],
                w.contribution[rows, places],
                self.evidence.is_fact(a, r, b),
                self.evidence.counts(a, b),
            )
        ]
        found: list[list[Rationale]] = [[] for _ in head]
        for row, i, k, j, score, attention, probability, share, fact, together, of_head, of_tail in zip(
            *columns, *sides, strict=True
        ):
            rationale = Rationale(
                head=self.term(i),
                relation=self.relation_name(k),
                tail=self.term(j),
                score=score,
                attention=attention,
                relation_probability=probability,
                contribution=share,
                head_recall=of_head,
                tail_recall=of_tail,
                known_fact=fact,
                types_fit=self.evidence.types_fit(i, k, j),
                cooccurrence=together or None,
            )
            found[row].append(rationale)
        return found

    def _recalls(
        self, target: np.ndarray, association: np.ndarray, probability: np.ndarray, rank: np.ndarray
    ) -> list[Recall]:
        """Why each association was recalled for its target."""
        count, ppmi = self.evidence.counts_and_ppmi(target, association)
        columns = (values.tolist() for values in (probability, rank, count, ppmi))
        return [Recall(p, place, n or None, m if n else None) for p, place, n, m in zip(*columns, strict=True)]


@dataclass(frozen=True)
class _Weighed:
    """The strongest triples of each pair, (B, k) each."""

    head: np.ndarray
    tail: np.ndarray
    relation: np.ndarray
    score: np.ndarray
    attention: np.ndarray
    probability: np.ndarray
    contribution: np.ndarray
    recalls: Sequence[tuple[np.ndarray, np.ndarray]]  # (probability, rank) for head and tail, (B, k) each

    @classmethod
    def strongest(cls, assumptions: Assumptions, k: int) -> _Weighed:
        """Rank all triples (i, k, j) by p_ij · p(k|i,j)."""
        p, which = assumptions.distinct_probability.numpy(), assumptions.distinct.numpy()  # (U, K), (B, P)
        attention, recalled = assumptions.attention.numpy(), assumptions.recalled
        # the k best triples lie in the k pairs whose own best are highest
        pair = np.sort(_largest(attention * assumptions.best_probability.numpy(), k), axis=1)
        probability = p[np.take_along_axis(which, pair, 1)]  # (B, k, K)
        score = (np.take_along_axis(attention, pair, 1)[:, :, None] * probability).reshape(len(pair), -1)
        top = _largest(score, k)
        best = np.take_along_axis(score, top, 1)
        order = np.lexsort((top, -best), axis=1)  # ties in the order of the assumptions, so that runs agree
        top, best = np.take_along_axis(top, order, 1), np.take_along_axis(best, order, 1)
        chosen = np.take_along_axis(probability.reshape(len(pair), -1), top, 1)
        place, relation = np.divmod(top, p.shape[1])
        pair = np.take_along_axis(pair, place, 1)
        weight = np.take_along_axis(attention, pair, 1)
        sides = [
            [np.take_along_axis(values.numpy(), places.numpy()[pair], 1) for values in (s.term, s.probability, s.rank)]
            for s, places in ((recalled.heads, recalled.first), (recalled.tails, recalled.second))
        ]
        return cls(
            sides[0][0],
            sides[1][0],
            relation,
            best,
            weight,
            chosen,
            weight * np.take_along_axis(assumptions.value.numpy(), pair, 1) * chosen,
            [(side[1], side[2]) for side in sides],
        )


def _largest(values: np.ndarray, k: int) -> np.ndarray:
    """Places of the ``k`` largest in each row, in no order: (B, n) -> (B, k), or all where there are fewer."""
    if k >= values.shape[1]:
        return np.broadcast_to(np.arange(values.shape[1]), values.shape)
    places: np.ndarray = np.argpartition(-values, k - 1, axis=1)[:, :k]
    return places
