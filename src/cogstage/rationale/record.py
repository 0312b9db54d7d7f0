"""The prediction record, which the command line, the API, the pages, the study and all files share."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from cogstage.errors import CogstageError, UsageError
from cogstage.rationale.evidence import (
    UNLIKELY,
    Alternative,
    Association,
    Order,
    PairEvidence,
    ProfileEntry,
    Provenance,
    Reason,
    RecordPart,
    Signal,
    SignalValue,
    Term,
    Triple,
)
from cogstage.rationale.verdict import judge_again, log_odds, sigmoid
from cogstage.relations import inverse

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = [
    "SCHEMA_VERSION",
    "UNLIKELY",
    "Alternative",
    "Association",
    "Order",
    "PairEvidence",
    "Prediction",
    "ProfileEntry",
    "Provenance",
    "Reason",
    "Signal",
    "SignalValue",
    "Term",
    "Triple",
    "sigmoid",
]

SCHEMA_VERSION = 4  # 3 had no ``profile``
DERIVED = ("verdict", "contradicted_by", "statement")  # written for readers of the file, computed again when it is read


@dataclass(frozen=True, slots=True)
class Prediction(RecordPart):
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
        Whether the pair itself is a training fact of the relation, or a reader marked it right.
    types_fit
        Whether the relation joins terms of these types; null if types are unknown.
    effective_reasons
        Exponential of the entropy of |share| among the reasons.
    provenance
        Model, graph and version behind the prediction.
    profile
        What is said of each relation of the model for this pair, known facts and the likeliest first.
    alternatives
        Questions that apply to terms of these types, if this one does not.
    rank
        Rank among the candidates of a list; null for a pair that was asked alone.
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
    profile: tuple[ProfileEntry, ...]
    alternatives: tuple[Alternative, ...] = ()
    rank: int | None = None
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
    def profile_entry(self) -> ProfileEntry:
        """What the profile says of the relation in question."""
        return next(entry for entry in self.profile if entry.relation == self.relation)

    @property
    def verdict(self) -> str:
        """ "known fact", "likely", "contradicted", "unlikely" or "does not apply", given all relations of the pair."""
        return self.profile_entry.verdict

    @property
    def contradicted_by(self) -> str | None:
        """The opposite relation that is known or more likely; None unless the verdict is "contradicted"."""
        return self.profile_entry.contradicted_by

    @property
    def statement(self) -> str:
        """The verdict in one sentence."""
        from cogstage.rationale.wording import statement

        return statement(self)

    def __str__(self) -> str:
        return self.statement

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
        """Return the prediction for another base rate.

        Baseline, logit, probability and all verdicts of the profile change; reasons do not.

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
        if rate == self.base_rate:
            return self
        shift = log_odds(rate) - log_odds(self.base_rate)
        logit = self.logit + shift
        return replace(
            self,
            probability=sigmoid(logit),
            logit=logit,
            baseline=self.baseline + shift,
            base_rate=rate,
            profile=judge_again(self.profile, shift),
        )

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
            Values that follow the JSON schema; the verdict and its sentence are added for readers of the file.
        """
        plain = record_type().dump_python(self, mode="json", exclude={"_ask_again"})
        return {**plain, **{name: getattr(self, name) for name in DERIVED}}

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
        from pydantic import ValidationError

        if record.get("schema") != SCHEMA_VERSION:
            raise CogstageError(
                f"prediction record of schema {record.get('schema')}, but this version reads {SCHEMA_VERSION};"
                " predict again"
            )
        try:
            prediction = record_type().validate_python({name: record[name] for name in record if name not in DERIVED})
        except ValidationError as error:
            first = error.errors()[0]
            raise CogstageError(
                f"not a prediction record: {'.'.join(map(str, first['loc']))}: {first['msg']}"
            ) from None
        if all(entry.relation != prediction.relation for entry in prediction.profile):
            raise CogstageError(f"not a prediction record: the profile has no entry for {prediction.relation}")
        return prediction

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


@cache
def record_type() -> TypeAdapter[Prediction]:
    """Reads, writes and describes records; pydantic is imported when the first one is read or written."""
    from pydantic import TypeAdapter

    return TypeAdapter(Prediction)
