"""The Prediction record: one schema for the command line, the API, the pages, the study and the files."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from cogstage.errors import CogstageError, UsageError
from cogstage.graph.kept_examples import Example
from cogstage.relations import inverse

SCHEMA_VERSION = 3  # 2 had no ``pair``

Triple = tuple[str, str, str]  # keys of head and tail, name of the relation between


@dataclass(frozen=True, slots=True)
class Term:
    """A node as people see it."""

    key: str
    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """In how many patients the head came first, the tail came first, both came on one day."""

    head_first: int
    tail_first: int
    same_day: int

    @property
    def patients(self) -> int:
        """Patients whose order is known."""
        return self.head_first + self.tail_first + self.same_day


@dataclass(frozen=True, slots=True)
class SignalValue:
    """A value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Signal:
    """What a safety team computes for a drug and an event from counts alone, beside the model."""

    together: int  # units with both terms
    head: int  # units with the head
    tail: int  # units with the tail
    total: int  # units
    basis: str  # what a unit is, and what was done to the counts
    ror: SignalValue  # reporting odds ratio
    prr: SignalValue  # proportional reporting ratio
    ic: SignalValue  # information component; its lower end is IC025


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """What the counts of head and tail themselves add to the log-odds, without any other term.

    ``count`` and ``ppmi`` are None where the two never occur together.
    """

    count: int | None
    ppmi: float | None
    ppmi_share: float  # summand of the logit: they occur together; never negative
    similarity: float  # cosine of their stage-1 vectors, at least 0
    similarity_share: float  # summand of the logit: they occur beside the same terms; never negative

    @property
    def share(self) -> float:
        """Both summands together."""
        return self.ppmi_share + self.similarity_share


@dataclass(frozen=True, slots=True)
class Association:
    """Why another term stands for one end of the question: how like it is, and how often the two occur together.

    ``count`` and ``ppmi`` are None where the two never occur together.
    """

    likeness: float  # default model: cosine in [-1, 1]; published model: p(association | target)
    weight: float  # share among the associations of that end; sums to 1
    rank: int  # 1 is the likest
    count: int | None
    ppmi: float | None


@dataclass(frozen=True, slots=True)
class Reason:
    """One assumption (head, relation, tail) with its share in the decision.

    Examples
    --------
    >>> prediction = cs.CogStage.load("model").predict("Drug number 4", "Disorder number 5", "may_treat")
    >>> reason = prediction.reasons[0]
    >>> len(reason.triple), reason.known_fact or 0 <= reason.relation_probability <= 1
    (3, True)
    """

    head: Term
    relation: str
    tail: Term
    share: float  # signed summand of the logit
    effect: float  # change of the logit had this triple not been recognised (the next reason steps in)
    relation_probability: float  # how sure recognition is that the triple holds; 1 for a known fact
    known_fact: bool  # a training fact; otherwise a recognised assumption
    types_fit: bool | None  # the relation usually joins terms of these types; None without types
    count: int | None  # how often the triple's two terms occur together; None if never
    ppmi: float | None
    head_association: Association | None  # None: the head is the question's own
    tail_association: Association | None  # None: the tail is the question's own
    order: Order | None = None  # of the triple's two terms; None where it is not known
    examples: tuple[Example, ...] = ()  # documents that name both terms, where the graph keeps any

    @property
    def recognised(self) -> bool:
        """Whether the triple is a known fact or more likely than not; an unrecognised one may speak against."""
        return self.known_fact or self.relation_probability >= 0.5

    @property
    def triple(self) -> Triple:
        """Keys and relation, as what-if questions and corrections name it."""
        return self.head.key, self.relation, self.tail.key


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made the prediction."""

    model: str  # hash of the model's weights
    graph: str  # hash of the graph
    version: str  # of cogstage
    world: str = "open"
    privacy: str = "none"  # what was done to the counts


@dataclass(frozen=True, slots=True)
class Prediction:
    """The probability that ``head`` holds ``relation`` to ``tail``, and the reasons that add up to it.

    ``logit`` = ``baseline`` + ``pair_share`` + Σ shares of ``reasons_for`` and ``reasons_against`` + ``rest``.

    Examples
    --------
    >>> prediction = cs.CogStage.load("model").predict("Drug number 4", "Disorder number 5", "may_treat")
    >>> reasons = sum(reason.share for reason in prediction.reasons) + prediction.rest
    >>> abs(prediction.baseline + prediction.pair_share + reasons - prediction.logit) < 1e-9
    True
    >>> cs.Prediction.from_json(prediction.to_json()).logit == prediction.logit
    True
    """

    head: Term
    relation: str
    tail: Term
    probability: float  # σ(logit)
    logit: float
    baseline: float
    pair: PairEvidence | None  # None for the published model, which has no such summand
    reasons_for: tuple[Reason, ...]  # share > 0, largest first
    reasons_against: tuple[Reason, ...]  # share < 0, strongest first
    rest: float  # reasons that are not shown; 0 for the default model unless a filter hides some
    base_rate: float  # the share of true pairs that the probability assumes
    known_fact: bool  # the pair is itself a training fact of this relation
    types_fit: bool | None  # False: the relation does not join terms of these types; None without types
    effective_reasons: float  # exp of the entropy of |share| among the reasons
    provenance: Provenance
    order: Order | None = None  # of head and tail; None where it is not known
    signal: Signal | None = None  # of a drug and an event that were counted together
    schema: int = SCHEMA_VERSION
    _ask_again: Callable[[Mapping[Triple, bool]], Prediction] | None = field(default=None, repr=False, compare=False)

    @property
    def pair_share(self) -> float:
        """What the counts of head and tail themselves add to the logit."""
        return 0.0 if self.pair is None else self.pair.share

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All reasons, for and against, strongest first."""
        return tuple(sorted(self.reasons_for + self.reasons_against, key=lambda reason: -abs(reason.share)))

    @property
    def verdict(self) -> str:
        """ "likely" or "unlikely"; "not applicable" where the types do not fit the relation."""
        if self.types_fit is False:
            return "not applicable"
        return "likely" if self.probability >= 0.5 else "unlikely"

    def top(self, k: int) -> Prediction:
        """The same prediction with the ``k`` strongest reasons; the others go into ``rest``."""
        return self.showing(self.reasons[:k])

    def showing(self, reasons: tuple[Reason, ...]) -> Prediction:
        """The same prediction with some of its reasons; the others go into ``rest``."""
        if len(reasons) == len(self.reasons_for) + len(self.reasons_against):
            return self
        kept = {reason.triple for reason in reasons}
        parts = [tuple(r for r in side if r.triple in kept) for side in (self.reasons_for, self.reasons_against)]
        hidden = sum(r.share for r in self.reasons if r.triple not in kept)
        return replace(self, reasons_for=parts[0], reasons_against=parts[1], rest=self.rest + hidden)

    def with_base_rate(self, rate: float) -> Prediction:
        """The same prediction for another base rate: baseline, logit and probability shift, reasons stay.

        Parameters
        ----------
        rate
            Share of true pairs among those asked, between 0 and 1.
        """
        if not 0 < rate < 1:
            raise UsageError(f"base rate {rate}: must lie between 0 and 1")
        shift = _log_odds(rate) - _log_odds(self.base_rate)
        logit = self.logit + shift
        return replace(self, probability=sigmoid(logit), logit=logit, baseline=self.baseline + shift, base_rate=rate)

    def without(self, triple: Triple) -> Prediction:
        """The prediction had this triple not been recognised; the next strongest reason steps in."""
        return self.assuming(triple, False)

    def assuming(self, triple: Triple, verdict: bool) -> Prediction:
        """The prediction if this triple were a known fact, or known to be wrong.

        Parameters
        ----------
        triple
            Keys of head and tail with the relation between them, as :attr:`Reason.triple` gives it.
        verdict
            True for a known fact, False for a wrong triple.

        Raises
        ------
        CogstageError
            If the prediction was read from a file, and there is no model to ask.
        """
        if self._ask_again is None:
            raise CogstageError("this prediction was read from a file; ask the model again to change its reasons")
        return self._ask_again({triple: verdict, (triple[2], inverse(triple[1]), triple[0]): verdict})

    def _repr_svg_(self) -> str:
        """The picture of the reasons, for notebooks."""
        from cogstage.rationale.picture import svg

        return svg(self)

    def _repr_html_(self) -> str:
        """The same picture, for notebooks that prefer HTML."""
        return self._repr_svg_()

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as in the JSON form."""
        result: dict[str, Any] = _plain(self)
        return result

    def to_json(self) -> str:
        """One line of JSON."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Prediction:
        """The record behind plain values; anything that does not fit raises with one line."""
        try:
            if record["schema"] != SCHEMA_VERSION:
                raise CogstageError(
                    f"prediction record of schema {record['schema']}, this version reads {SCHEMA_VERSION};"
                    " make the predictions again"
                )
            nested = {
                "head": Term(**record["head"]),
                "tail": Term(**record["tail"]),
                "reasons_for": tuple(_reason(entry) for entry in record["reasons_for"]),
                "reasons_against": tuple(_reason(entry) for entry in record["reasons_against"]),
                "pair": None if record["pair"] is None else PairEvidence(**record["pair"]),
                "provenance": Provenance(**record["provenance"]),
                "order": _order(record),
                "signal": _signal(record.get("signal")),
            }
            return cls(**{**record, **nested})
        except (KeyError, TypeError) as error:
            raise CogstageError(f"not a prediction record: {error}") from None

    @classmethod
    def from_json(cls, line: str) -> Prediction:
        """The record behind one line of JSON."""
        try:
            record = json.loads(line)
        except ValueError as error:
            raise CogstageError(f"not a prediction record: {error}") from None
        if not isinstance(record, dict):
            raise CogstageError("not a prediction record: expected a JSON object")
        return cls.from_dict(record)


def sigmoid(logit: float) -> float:
    """σ of one number, without overflow."""
    small = math.exp(-abs(logit))
    return 1.0 / (1.0 + small) if logit >= 0 else small / (1.0 + small)


def _log_odds(rate: float) -> float:
    return math.log(rate / (1.0 - rate))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        return {f.name: _plain(getattr(value, f.name)) for f in fields(value) if not f.name.startswith("_")}
    return [_plain(entry) for entry in value] if isinstance(value, tuple) else value


def _reason(entry: Mapping[str, Any]) -> Reason:
    ends = {
        name: None if entry[name] is None else Association(**entry[name])
        for name in ("head_association", "tail_association")
    }
    examples = tuple(Example(e["document"], tuple(e["sentences"])) for e in entry.get("examples", ()))
    terms = {name: Term(**entry[name]) for name in ("head", "tail")}
    return Reason(**{**entry, **terms, **ends, "order": _order(entry), "examples": examples})


def _order(entry: Mapping[str, Any]) -> Order | None:
    return None if entry.get("order") is None else Order(**entry["order"])


def _signal(entry: Mapping[str, Any] | None) -> Signal | None:
    if entry is None:
        return None
    return Signal(**{**entry, **{name: SignalValue(**entry[name]) for name in ("ror", "prr", "ic")}})
