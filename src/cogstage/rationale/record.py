"""The prediction record, which the command line, the API, the pages, the study and all files share."""

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
    """A node of the graph.

    Attributes
    ----------
    key
        Identifier in the graph.
    name
        Name for people.
    type
        Type of the concept, such as drug or disorder; empty if unknown.
    """

    key: str
    name: str
    type: str = ""


@dataclass(frozen=True, slots=True)
class Order:
    """Number of patients with the head first, with the tail first, and with both on the same day.

    Attributes
    ----------
    head_first, tail_first, same_day
        Number of patients.
    """

    head_first: int
    tail_first: int
    same_day: int

    @property
    def patients(self) -> int:
        """Number of patients whose order is known."""
        return self.head_first + self.tail_first + self.same_day


@dataclass(frozen=True, slots=True)
class SignalValue:
    """A statistic with its 95 % interval.

    Attributes
    ----------
    value
        Estimate.
    low, high
        Ends of the interval.
    """

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Signal:
    """Disproportionality statistics of a drug and an event, computed from counts alone, without the model.

    Attributes
    ----------
    together, head, tail, total
        Number of units with both terms, with the head, with the tail, and in total.
    basis
        What a unit is, and how the counts were protected.
    ror
        Reporting odds ratio.
    prr
        Proportional reporting ratio.
    ic
        Information component; the lower end of its interval is IC025.
    """

    together: int
    head: int
    tail: int
    total: int
    basis: str
    ror: SignalValue
    prr: SignalValue
    ic: SignalValue


@dataclass(frozen=True, slots=True)
class PairEvidence:
    """What the counts of head and tail themselves add to the log-odds, without any other term.

    Attributes
    ----------
    count, ppmi
        How often the two terms co-occur; null if never.
    ppmi_share
        Summand of the logit because the two terms co-occur; never negative.
    similarity
        Cosine of their stage-1 vectors, at least 0.
    similarity_share
        Summand of the logit because the two terms co-occur with the same terms; never negative.
    """

    count: int | None
    ppmi: float | None
    ppmi_share: float
    similarity: float
    similarity_share: float

    @property
    def share(self) -> float:
        """Sum of the two summands."""
        return self.ppmi_share + self.similarity_share


@dataclass(frozen=True, slots=True)
class Association:
    """Why a term replaces one end of the question: how similar it is, and how often the two co-occur.

    Attributes
    ----------
    likeness
        Similarity. Default model: cosine in [-1, 1]; published model: p(association | target).
    weight
        Weight among the associations of that end; the weights sum to 1.
    rank
        Rank by similarity; 1 is the most similar.
    count, ppmi
        How often the two terms co-occur; null if never.
    """

    likeness: float
    weight: float
    rank: int
    count: int | None
    ppmi: float | None


@dataclass(frozen=True, slots=True)
class Reason:
    """One assumption (head, relation, tail) with its share in the decision.

    Attributes
    ----------
    head, relation, tail
        The triple.
    share
        Signed summand of the logit.
    effect
        Change of the logit if the triple were not recognised and the next reason took its place.
    relation_probability
        Probability of the triple according to the recognition stage; 1 for a known fact.
    known_fact
        Whether the triple is a training fact; otherwise it is an assumption.
    types_fit
        Whether the relation usually joins terms of these types; null if types are unknown.
    count, ppmi
        How often the two terms of the triple co-occur; null if never.
    head_association, tail_association
        Why the term replaces that end of the question; null for the end that is unchanged.
    order
        Order in time of the two terms of the triple; null if unknown.
    examples
        Documents that mention both terms, if the graph has examples.

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
    share: float
    effect: float
    relation_probability: float
    known_fact: bool
    types_fit: bool | None
    count: int | None
    ppmi: float | None
    head_association: Association | None
    tail_association: Association | None
    order: Order | None = None
    examples: tuple[Example, ...] = ()

    @property
    def recognised(self) -> bool:
        """Whether the triple is a known fact or has a probability of at least 0.5; others can count against."""
        return self.known_fact or self.relation_probability >= 0.5

    @property
    def status(self) -> str:
        """ "known fact", "assumed" or "considered unlikely"."""
        if self.known_fact:
            return "known fact"
        return "assumed" if self.recognised else "considered unlikely"

    @property
    def triple(self) -> Triple:
        """Key of the head, relation, and key of the tail, for :meth:`Prediction.without` and corrections."""
        return self.head.key, self.relation, self.tail.key


@dataclass(frozen=True, slots=True)
class Provenance:
    """Model, graph and version behind a prediction.

    Attributes
    ----------
    model
        Hash of the weights of the model.
    graph
        Hash of the graph.
    version
        Version of cogstage.
    world
        "open" or "closed".
    privacy
        How the counts are protected.
    """

    model: str
    graph: str
    version: str
    world: str = "open"
    privacy: str = "none"


@dataclass(frozen=True, slots=True)
class Prediction:
    """The probability that ``relation`` holds between ``head`` and ``tail``, and the reasons that add up to it.

    ``logit`` = ``baseline`` + ``pair_share`` + Σ shares of ``reasons_for`` and ``reasons_against`` + ``rest``.

    Attributes
    ----------
    head, relation, tail
        The question.
    probability
        Probability that the relation holds, σ(logit).
    logit
        Log-odds of the answer.
    baseline
        Log-odds before any evidence is added.
    pair
        What the counts of head and tail themselves add; null for the published model.
    reasons_for, reasons_against
        Reasons with a positive and with a negative share, strongest first.
    rest
        Sum of the reasons that are not shown; 0 for the default model unless a filter hides some.
    base_rate
        Share of true pairs that the probability assumes.
    known_fact
        Whether the pair itself is a training fact of the relation.
    types_fit
        Whether the relation joins terms of these types; null if types are unknown.
    effective_reasons
        Exponential of the entropy of |share| among the reasons.
    provenance
        Model, graph and version behind the prediction.
    order
        Order in time of head and tail; null if unknown.
    signal
        Disproportionality statistics of a drug and an event that co-occur; otherwise null.
    schema
        Version of the record.

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
    probability: float
    logit: float
    baseline: float
    pair: PairEvidence | None
    reasons_for: tuple[Reason, ...]
    reasons_against: tuple[Reason, ...]
    rest: float
    base_rate: float
    known_fact: bool
    types_fit: bool | None
    effective_reasons: float
    provenance: Provenance
    order: Order | None = None
    signal: Signal | None = None
    schema: int = SCHEMA_VERSION
    _ask_again: Callable[[Mapping[Triple, bool]], Prediction] | None = field(default=None, repr=False, compare=False)

    @property
    def pair_share(self) -> float:
        """Sum that the counts of head and tail themselves add to the logit."""
        return 0.0 if self.pair is None else self.pair.share

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """All reasons, for and against, strongest first."""
        return tuple(sorted(self.reasons_for + self.reasons_against, key=lambda reason: -abs(reason.share)))

    @property
    def verdict(self) -> str:
        """ "likely" or "unlikely"; "not applicable" if the relation does not join terms of these types."""
        if self.types_fit is False:
            return "not applicable"
        return "likely" if self.probability >= 0.5 else "unlikely"

    def top(self, k: int) -> Prediction:
        """Return the prediction with its strongest reasons.

        Parameters
        ----------
        k
            Number of reasons to keep.

        Returns
        -------
        Prediction
            A copy; the sum of the other reasons is in ``rest``.
        """
        return self.showing(self.reasons[:k])

    def showing(self, reasons: tuple[Reason, ...]) -> Prediction:
        """Return the prediction with some of its reasons.

        Parameters
        ----------
        reasons
            Reasons of this prediction to keep.

        Returns
        -------
        Prediction
            A copy; the sum of the other reasons is in ``rest``.
        """
        if len(reasons) == len(self.reasons_for) + len(self.reasons_against):
            return self
        kept = {reason.triple for reason in reasons}
        parts = [tuple(r for r in side if r.triple in kept) for side in (self.reasons_for, self.reasons_against)]
        hidden = sum(r.share for r in self.reasons if r.triple not in kept)
        return replace(self, reasons_for=parts[0], reasons_against=parts[1], rest=self.rest + hidden)

    def with_base_rate(self, rate: float) -> Prediction:
        """Return the prediction for another base rate; baseline, logit and probability change, reasons do not.

        Parameters
        ----------
        rate
            Share of true pairs among the pairs in question, between 0 and 1.

        Returns
        -------
        Prediction
            A copy with ``base_rate`` set to ``rate``.
        """
        if not 0 < rate < 1:
            raise UsageError(f"base rate {rate}: must be between 0 and 1")
        shift = _log_odds(rate) - _log_odds(self.base_rate)
        logit = self.logit + shift
        return replace(self, probability=sigmoid(logit), logit=logit, baseline=self.baseline + shift, base_rate=rate)

    def without(self, triple: Triple) -> Prediction:
        """Predict as if a triple were not recognised; the next strongest reason takes its place.

        Parameters
        ----------
        triple
            Key of the head, relation, and key of the tail, as in :attr:`Reason.triple`.

        Returns
        -------
        Prediction
            The new prediction of the same model.

        Raises
        ------
        CogstageError
            If the prediction was read from a file and has no model.
        """
        return self.assuming(triple, False)

    def assuming(self, triple: Triple, verdict: bool) -> Prediction:
        """Predict as if a triple were a known fact, or known to be wrong.

        Parameters
        ----------
        triple
            Key of the head, relation, and key of the tail, as in :attr:`Reason.triple`.
        verdict
            True for a known fact, False for a wrong triple.

        Returns
        -------
        Prediction
            The new prediction of the same model.

        Raises
        ------
        CogstageError
            If the prediction was read from a file and has no model.
        """
        if self._ask_again is None:
            raise CogstageError(
                "this prediction was read from a file and has no model; predict the pair again to change its reasons"
            )
        return self._ask_again({triple: verdict, (triple[2], inverse(triple[1]), triple[0]): verdict})

    def _repr_svg_(self) -> str:
        """Draw the reasons, for notebooks."""
        from cogstage.rationale.picture import svg

        return svg(self)

    def _repr_html_(self) -> str:
        """Draw the reasons, for notebooks that prefer HTML."""
        return self._repr_svg_()

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values.

        Returns
        -------
        dict
            Values that follow the JSON schema.
        """
        result: dict[str, Any] = _plain(self)
        return result

    def to_json(self) -> str:
        """Return the record as JSON.

        Returns
        -------
        str
            One line.
        """
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Prediction:
        """Create a record from plain values.

        Parameters
        ----------
        record
            Values as returned by :meth:`to_dict`.

        Returns
        -------
        Prediction
            The record, without a model to change its reasons.

        Raises
        ------
        CogstageError
            If the values do not follow the schema, or have another version of it.
        """
        try:
            if record["schema"] != SCHEMA_VERSION:
                raise CogstageError(
                    f"prediction record of schema {record['schema']}, but this version reads {SCHEMA_VERSION};"
                    " predict again"
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
        """Create a record from JSON.

        Parameters
        ----------
        line
            JSON as returned by :meth:`to_json`.

        Returns
        -------
        Prediction
            The record, without a model to change its reasons.

        Raises
        ------
        CogstageError
            If the text is not JSON or does not follow the schema.
        """
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
