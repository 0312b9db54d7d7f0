"""From the arrays of a decision to Prediction records: names, counts and provenance added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cogstage.graph.disproportionality import Margins, disproportionality
from cogstage.graph.kept_examples import Examples
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.decision import Decision, PairView
from cogstage.rationale.alternatives import Siblings
from cogstage.rationale.record import (
    Alternative,
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
from cogstage.rationale.verdict import Profiles, Verdict, log_odds
from cogstage.relations import RelationIndex
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex, UsualTypes

ROUNDING = 1e-9  # a rest below it is the rounding of sums
ALTERNATIVES = 3  # questions offered in place of one that does not apply
Revise = Callable[[Mapping[Triple, bool]], Prediction]
DRUGS = ("drug", "chemical", "medication", "immunization", "vaccine", "device", "pharmacologic")  # how types begin


def is_drug(kind: str) -> bool:
    """Whether a semantic type is that of something given to a patient; the types of all readers are known."""
    return kind.lower().startswith(DRUGS)


@dataclass(frozen=True)
class EndArrays:
    """How one end of each reason's triple stands for that end of the question; rank 0: it is the question's own."""

    similarity: np.ndarray  # (B, n)
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
    def from_decision(cls, view: PairView, decision: Decision, reasons: int, calibration: Calibration) -> ReasonArrays:
        """The reasons of the default model: at most ``reasons`` for and as many against."""
        slope, rows = calibration.slope, np.arange(len(view.head))[:, None]
        at, share, effect = [], [], []
        for positions, sign in ((decision.strongest_for, 1.0), (decision.strongest_against, -1.0)):
            c = np.maximum(sign * decision.contribution[rows, positions], 0.0)
            following = c[:, reasons:].sum(1, keepdims=True)  # the next one, which takes the place; 0 if there is none
            at.append(positions[:, :reasons])
            share.append(sign * slope * c[:, :reasons])
            effect.append(-sign * slope * (c[:, :reasons] - following))
        _, _, n_associations, relations = view.score.shape
        kind, rest = np.divmod(np.concatenate(at, 1), n_associations * relations)
        which, relation = np.divmod(rest, relations)
        association = view.association[rows, kind, which]
        head, tail = view.head[:, None], view.tail[:, None]
        similarity, weight = view.similarity[rows, kind, which], decision.weight[rows, kind, which]
        known = view.known[rows, kind, which, relation]
        score = view.score[rows, kind, which, relation].astype(np.float64)
        shares = np.concatenate(share, 1)
        baseline = float(calibration.logits(np.array(decision.baseline)))
        pair_share = slope * decision.pair
        return cls(
            np.where(kind == 0, head, association),
            relation,
            np.where(kind == 0, association, tail),
            shares,
            np.concatenate(effect, 1),
            np.where(known, 1.0, 1.0 / (1.0 + np.exp(-score))),
            known,
            EndArrays(similarity, weight, np.where(kind == 1, which + 1, 0)),
            EndArrays(similarity, weight, np.where(kind == 0, which + 1, 0)),
            baseline,
            baseline + pair_share.sum(1) + shares.sum(1),
            view.pair[:, 1].astype(np.float64),
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
    right: TripleIndex | None = None  # triples that readers marked right
    wrong: TripleIndex | None = None  # triples that readers marked wrong
    _terms: dict[int, Term] = field(default_factory=dict, repr=False, compare=False)  # those shown so far

    @cached_property
    def siblings(self) -> Siblings:
        """Finds terms whose names begin alike."""
        return Siblings(self.vocabulary)

    def profiles(
        self, head: np.ndarray, tail: np.ndarray, relations: Sequence[str], logit: np.ndarray, base_rate: float = 0.5
    ) -> Profiles:
        """Judge all relations of a model for pairs, given their calibrated log-odds (B, Q) at a base rate of 0.5."""
        numbers = [self.relations.number(name) for name in relations]
        known, wrong = self.facts.relations_of(head, tail)[:, numbers], np.zeros(logit.shape, bool)
        if self.right is not None:
            known = known | self.right.relations_of(head, tail)[:, numbers]
        if self.wrong is not None:
            wrong = self.wrong.relations_of(head, tail)[:, numbers]
        fits, typed = np.ones(logit.shape, bool), np.zeros(len(logit), bool)
        if self.types is not None:
            fits, untyped = self.types.allowed(head, tail)[:, numbers], len(self.types.usual) - 1
            typed = (self.types.kind[head] != untyped) & (self.types.kind[tail] != untyped)
        return Profiles.judge(relations, logit + log_odds(base_rate), known, fits, typed, wrong)

    def records(
        self,
        head: np.ndarray,
        tail: np.ndarray,
        relation: str,
        arrays: ReasonArrays,
        profiles: Profiles,
        revise: Callable[[int, int], Revise] | None = None,
        reasons: bool = True,
    ) -> list[Prediction]:
        """One record per pair; ``revise`` gives what answers a pair's what-if questions."""
        column = profiles.relations.index(relation)
        judged = [each.tolist() for each in (profiles.known[:, column], profiles.fits[:, column], profiles.typed)]
        applies = (profiles.code[:, column] != Verdict.DOES_NOT_APPLY).tolist()
        sides: list[tuple[list[Reason], list[Reason]]] = [([], []) for _ in head]
        rest = arrays.logit - arrays.baseline
        if arrays.pair_share is not None:
            rest = rest - arrays.pair_share.sum(1)
        if reasons:
            sides = self._reasons(head, tail, arrays)
            rest = rest - arrays.share.sum(1)
            rest[np.abs(rest) < ROUNDING] = 0.0
        pairs, entries = self.pair_evidence(head, tail, arrays), profiles.entries()
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
                tuple(sides[row][0]),
                tuple(sides[row][1]),
                left,
                self.base_rate,
                known,
                fits if typed else None,
                width,
                self.provenance,
                entries[row],
                () if applies[row] else self.alternatives(h, relation, t),
                None,
                orders[row],
                signals[row],
                _ask_again=None if revise is None else revise(h, t),
            )
            for row, (h, t, logit, left, width, known, fits, typed) in enumerate(
                zip(
                    *(each.tolist() for each in (head, tail, arrays.logit, rest, effective)),
                    *judged,
                    strict=True,
                )
            )
        ]

    def alternatives(self, head: int, relation: str, tail: int) -> tuple[Alternative, ...]:
        """Questions that apply in place of one that does not: the terms exchanged, or a sibling of one of them."""
        if self.types is None:
            return ()
        number, pairs = self.relations.number(relation), [(tail, head)]
        pairs += [(node, tail) for node in self.siblings.of(head)] + [(head, node) for node in self.siblings.of(tail)]
        fitting = [(h, t) for h, t in pairs if h != t and self.types.fit(h, number, t)]
        return tuple(Alternative(self.term(h), relation, self.term(t)) for h, t in fitting[:ALTERNATIVES])

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
        signals: list[Signal | None] = [None] * len(head)
        kinds, margins = self.vocabulary.type, self.margins
        if margins is None:
            return signals
        pairs = enumerate(zip(head.tolist(), tail.tolist(), strict=True))
        rows = np.array([row for row, (h, t) in pairs if is_drug(kinds[h]) and not is_drug(kinds[t])], np.int64)
        if not len(rows):
            return signals
        together = self.counts.counts(head[rows], tail[rows])
        ends = margins.term[head[rows]], margins.term[tail[rows]]
        estimates = disproportionality(together, *ends, margins.total).tolist()
        for row, both, one, other, (ror, prr, ic) in zip(
            rows.tolist(), together.tolist(), *(end.tolist() for end in ends), estimates, strict=True
        ):
            if ror[0] == ror[0]:  # not NaN: counted together, and within the margins
                total = round(margins.total)
                rest = (SignalValue(*ror), SignalValue(*prr), SignalValue(*ic))
                signals[row] = Signal(both, round(one), round(other), total, margins.basis, *rest)
        return signals

    def orders(self, one: np.ndarray, other: np.ndarray) -> list[Order | None]:
        """In how many patients each came first; None where that is not known."""
        if self.order is None:
            return [None] * len(one)
        return [Order(*cells) if any(cells) else None for cells in self.order.look_up(one, other).tolist()]

    def term(self, node: int) -> Term:
        """A node as people see it."""
        term = self._terms.get(node)
        if term is None:
            term = Term(self.vocabulary.term[node], self.vocabulary.name[node], self.vocabulary.type[node])
            self._terms[node] = term
        return term

    def _reasons(self, head: np.ndarray, tail: np.ndarray, a: ReasonArrays) -> list[tuple[list[Reason], list[Reason]]]:
        rows, at = np.nonzero(a.share)
        one, k, other = a.head[rows, at], a.relation[rows, at], a.tail[rows, at]
        together, ppmi = self.counts.look_up(one, other)
        ends = [
            self._associations(question[rows], term, end, rows, at)
            for question, term, end in ((head, one, a.head_end), (tail, other, a.tail_end))
        ]
        columns = (a.share, a.effect, a.probability, a.known)
        sides: list[tuple[list[Reason], list[Reason]]] = [([], []) for _ in head]
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
            sides[row][share < 0].append(reason)
        for side in (side for both in sides for side in both):
            side.sort(key=lambda reason: -abs(reason.share))
        return sides

    def _associations(
        self, question: np.ndarray, term: np.ndarray, end: EndArrays, rows: np.ndarray, at: np.ndarray
    ) -> list[Association | None]:
        count, ppmi = self.counts.look_up(question, term)
        columns = (values[rows, at].tolist() for values in (end.similarity, end.weight, end.rank))
        return [
            Association(similarity, weight, rank, n or None, m if n else None) if rank else None
            for similarity, weight, rank, n, m in zip(*columns, count.tolist(), ppmi.tolist(), strict=True)
        ]


def _effective(share: np.ndarray) -> np.ndarray:
    """On how many reasons each decision rests: exp of the entropy of |share| (B, n); 0 without any."""
    size = np.abs(share)
    total = size.sum(1, keepdims=True)
    p = np.divide(size, total, out=np.zeros_like(size), where=total > 0)
    entropy = -(p * np.log(np.where(p > 0, p, 1.0))).sum(1)
    result: np.ndarray = np.where(total[:, 0] > 0, np.exp(entropy), 0.0)
    return result
