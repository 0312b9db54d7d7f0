"""From the arrays of a decision to Prediction records: names, counts and provenance added."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from cogstage.graph.disproportionality import Margins, disproportionality
from cogstage.graph.kept_examples import Examples
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.network import Answer
from cogstage.rationale.record import (
    Association,
    Order,
    PairEvidence,
    Prediction,
    Provenance,
    Reason,
    Signal,
    SignalValue,
    Term,
    Triple,
    sigmoid,
)
from cogstage.relations import RelationIndex
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex, UsualTypes

ROUNDING = 1e-9  # a rest below it is the rounding of sums
Revise = Callable[[Mapping[Triple, bool]], Prediction]
DRUGS = ("drug", "chemical", "medication", "immunization", "vaccine", "device", "pharmacologic")  # how types begin


def is_drug(kind: str) -> bool:
    """Whether a semantic type is that of something given to a patient; the types of all readers are known."""
    return kind.lower().startswith(DRUGS)


@dataclass(frozen=True)
class EndArrays:
    """How one end of each reason's triple stands for that end of the question; rank 0: it is the question's own."""

    likeness: np.ndarray  # (B, n)
    weight: np.ndarray  # (B, n)
    rank: np.ndarray  # (B, n)


@dataclass(frozen=True)
class ReasonArrays:
    """The reasons of a batch of questions; share 0 is no reason. What they leave of the logit is the rest."""

    head: np.ndarray  # (B, n) node ids
    relation: np.ndarray  # (B, n) numbers below 2R
    tail: np.ndarray  # (B, n)
    share: np.ndarray  # (B, n) signed, calibrated
    effect: np.ndarray  # (B, n)
    probability: np.ndarray  # (B, n)
    known: np.ndarray  # (B, n)
    head_end: EndArrays
    tail_end: EndArrays
    baseline: float
    logit: np.ndarray  # (B,) calibrated
    similarity: np.ndarray | None = None  # (B,) of head and tail
    pair_share: np.ndarray | None = None  # (B, 2) calibrated: of their PPMI and of their similarity

    @classmethod
    def from_answer(cls, answer: Answer, reasons: int, calibration: Calibration) -> ReasonArrays:
        """The reasons of the default model: at most ``reasons`` for and as many against."""
        weighed, slope = answer.weighed, calibration.slope
        contribution = weighed.contribution.numpy()
        rows = np.arange(len(contribution))[:, None]
        at, share, effect = [], [], []
        for positions, sign in ((weighed.strongest_for, 1.0), (weighed.strongest_against, -1.0)):
            c = np.maximum(sign * contribution[rows, positions.numpy()].astype(np.float64), 0.0)
            following = c[:, reasons:].sum(1, keepdims=True)  # the one that steps in; none is 0
            at.append(positions.numpy()[:, :reasons])
            share.append(sign * slope * c[:, :reasons])
            effect.append(-sign * slope * (c[:, :reasons] - following))
        where = np.concatenate(at, 1)
        _, _, many, relations = answer.score.shape
        kind, rest = np.divmod(where, many * relations)
        which, relation = np.divmod(rest, relations)
        association = answer.association.numpy()[rows, kind, which]
        head, tail = answer.head.numpy()[:, None], answer.tail.numpy()[:, None]
        likeness, weight = answer.likeness.numpy()[rows, kind, which], weighed.weight.numpy()[rows, kind, which]
        known = answer.known.numpy()[rows, kind, which, relation]
        score = answer.score.numpy()[rows, kind, which, relation].astype(np.float64)
        shares = np.concatenate(share, 1)
        baseline = float(calibration.logits(np.array(float(weighed.baseline.detach()))))
        pair_share = slope * weighed.pair.double().numpy()
        return cls(
            np.where(kind == 0, head, association),
            relation,
            np.where(kind == 0, association, tail),
            shares,
            np.concatenate(effect, 1),
            np.where(known, 1.0, 1.0 / (1.0 + np.exp(-score))),
            known,
            EndArrays(likeness, weight, np.where(kind == 1, which + 1, 0)),
            EndArrays(likeness, weight, np.where(kind == 0, which + 1, 0)),
            baseline,
            baseline + pair_share.sum(1) + shares.sum(1),
            answer.pair[:, 1].double().numpy(),
            pair_share,
        )


@dataclass(frozen=True)
class Explainer:
    """Turns arrays of reasons into prediction records with names, counts and provenance."""

    vocabulary: Vocabulary
    relations: RelationIndex
    counts: PairCounts
    facts: TripleIndex
    types: UsualTypes | None
    provenance: Provenance
    order: PairOrder | None = None
    margins: Margins | None = None
    base_rate: float = 0.5
    examples: Examples | None = None
    _terms: dict[int, Term] = field(default_factory=dict, repr=False, compare=False)  # those shown so far

    def records(
        self,
        head: np.ndarray,
        tail: np.ndarray,
        relation: str,
        arrays: ReasonArrays,
        revise: Callable[[int, int], Revise] | None = None,
        reasons: bool = True,
    ) -> list[Prediction]:
        """One record per pair; ``revise`` gives what answers a pair's what-if questions."""
        number = self.relations.number(relation)
        known = self.facts.contains(head, np.full(len(head), number), tail)
        found: list[tuple[list[Reason], list[Reason]]] = [([], []) for _ in head]
        rest = arrays.logit - arrays.baseline
        if arrays.pair_share is not None:
            rest = rest - arrays.pair_share.sum(1)
        if reasons:
            found = self._reasons(head, tail, arrays)
            rest = rest - arrays.share.sum(1)
            rest[np.abs(rest) < ROUNDING] = 0.0
        pairs = self.pair_evidence(head, tail, arrays)
        effective, orders, signals = _effective(arrays.share), self.orders(head, tail), self.signals(head, tail)
        return [
            Prediction(
                self.term(h),
                relation,
                self.term(t),
                sigmoid(logit),
                logit,
                arrays.baseline,
                pairs[row],
                tuple(found[row][0]),
                tuple(found[row][1]),
                left,
                self.base_rate,
                fact,
                None if self.types is None else self.types.fit(h, number, t),
                width,
                self.provenance,
                orders[row],
                signals[row],
                _ask_again=None if revise is None else revise(h, t),
            )
            for row, (h, t, logit, left, fact, width) in enumerate(
                zip(*(column.tolist() for column in (head, tail, arrays.logit, rest, known, effective)), strict=True)
            )
        ]

    def pair_evidence(self, head: np.ndarray, tail: np.ndarray, arrays: ReasonArrays) -> list[PairEvidence | None]:
        """What the counts of head and tail themselves say; None for a model that does not use them."""
        if arrays.pair_share is None or arrays.similarity is None:
            return [None] * len(head)
        count, ppmi = self.counts.look_up(head, tail)
        columns = (count, ppmi, arrays.similarity, arrays.pair_share)
        return [
            PairEvidence(n or None, m if n else None, together, similarity, beside)
            for n, m, similarity, (together, beside) in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def signals(self, head: np.ndarray, tail: np.ndarray) -> list[Signal | None]:
        """ROR, PRR and IC of pairs of a drug and an event; None for other pairs and those never counted together."""
        found: list[Signal | None] = [None] * len(head)
        kinds, margins = self.vocabulary.type, self.margins
        if margins is None:
            return found
        pairs = enumerate(zip(head.tolist(), tail.tolist(), strict=True))
        rows = np.array([row for row, (h, t) in pairs if is_drug(kinds[h]) and not is_drug(kinds[t])], np.int64)
        if not len(rows):
            return found
        together = self.counts.counts(head[rows], tail[rows])
        ends = margins.term[head[rows]], margins.term[tail[rows]]
        estimates = disproportionality(together, *ends, margins.total).tolist()
        for row, both, one, other, (ror, prr, ic) in zip(
            rows.tolist(), together.tolist(), *(end.tolist() for end in ends), estimates, strict=True
        ):
            if ror[0] == ror[0]:  # not NaN: counted together, and within the margins
                total = round(margins.total)
                rest = (SignalValue(*ror), SignalValue(*prr), SignalValue(*ic))
                found[row] = Signal(both, round(one), round(other), total, margins.basis, *rest)
        return found

    def orders(self, one: np.ndarray, other: np.ndarray) -> list[Order | None]:
        """In how many patients each came first; None where that is not known."""
        if self.order is None:
            return [None] * len(one)
        return [Order(*cells) if any(cells) else None for cells in self.order.look_up(one, other).tolist()]

    def term(self, node: int) -> Term:
        """A node as people see it."""
        found = self._terms.get(node)
        if found is None:
            found = Term(self.vocabulary.term[node], self.vocabulary.name[node], self.vocabulary.type[node])
            self._terms[node] = found
        return found

    def _reasons(self, head: np.ndarray, tail: np.ndarray, a: ReasonArrays) -> list[tuple[list[Reason], list[Reason]]]:
        rows, at = np.nonzero(a.share)
        one, k, other = a.head[rows, at], a.relation[rows, at], a.tail[rows, at]
        together, ppmi = self.counts.look_up(one, other)
        ends = [
            self._associations(question[rows], term, end, rows, at)
            for question, term, end in ((head, one, a.head_end), (tail, other, a.tail_end))
        ]
        columns = (a.share, a.effect, a.probability, a.known)
        found: list[tuple[list[Reason], list[Reason]]] = [([], []) for _ in head]
        names, types = self.relations.all_names, self.types
        for row, i, r, j, share, effect, probability, known, count, value, of_head, of_tail, order in zip(
            rows.tolist(),
            one.tolist(),
            k.tolist(),
            other.tolist(),
            *(column[rows, at].tolist() for column in columns),
            together.tolist(),
            ppmi.tolist(),
            *ends,
            self.orders(one, other),
            strict=True,
        ):
            reason = Reason(
                self.term(i),
                names[r],
                self.term(j),
                share,
                effect,
                probability,
                known,
                None if types is None else types.fit(i, r, j),
                count or None,
                value if count else None,
                of_head,
                of_tail,
                order,
                self.examples.between(i, j) if count and self.examples is not None else (),
            )
            found[row][share < 0].append(reason)
        for side in (side for sides in found for side in sides):
            side.sort(key=lambda reason: -abs(reason.share))
        return found

    def _associations(
        self, question: np.ndarray, term: np.ndarray, end: EndArrays, rows: np.ndarray, at: np.ndarray
    ) -> list[Association | None]:
        count, ppmi = self.counts.look_up(question, term)
        columns = (values[rows, at].tolist() for values in (end.likeness, end.weight, end.rank))
        return [
            Association(likeness, weight, rank, n or None, m if n else None) if rank else None
            for likeness, weight, rank, n, m in zip(*columns, count.tolist(), ppmi.tolist(), strict=True)
        ]


def _effective(share: np.ndarray) -> np.ndarray:
    """On how many reasons each decision rests: exp of the entropy of |share| (B, n); 0 without any."""
    size = np.abs(share)
    total = size.sum(1, keepdims=True)
    p = np.divide(size, total, out=np.zeros_like(size), where=total > 0)
    entropy = -(p * np.log(np.where(p > 0, p, 1.0))).sum(1)
    result: np.ndarray = np.where(total[:, 0] > 0, np.exp(entropy), 0.0)
    return result
