"""Filters for the reasons of a prediction: by term, by relation, known facts only."""

from __future__ import annotations

from dataclasses import dataclass

from cogstage.corpus.tokens import casefold_text
from cogstage.rationale.record import Prediction, Reason
from cogstage.relations import inverse


@dataclass(frozen=True)
class Filter:
    """A filter for the reasons of a prediction. By default, all reasons pass.

    Parameters
    ----------
    through
        Key, or part of the name, of a term that must be the head or tail of the triple.
    relation
        Only triples of this relation, in either direction.
    known_only
        Only triples that are training facts.

    Examples
    --------
    >>> prediction = cs.CogStage.load("model").predict("Drug number 4", "Disorder number 5", "may_treat")
    >>> shown = cs.Filter(relation="may_treat", known_only=True).apply(prediction)
    >>> all(reason.known_fact for reason in shown.reasons)
    True
    >>> abs(shown.rest + sum(r.share for r in shown.reasons) - sum(r.share for r in prediction.reasons)) < 1e-9
    True
    """

    through: str | None = None
    relation: str | None = None
    known_only: bool = False

    def __bool__(self) -> bool:
        return self != Filter()

    def apply(self, prediction: Prediction) -> Prediction:
        """Hide the reasons of a prediction that do not pass.

        Parameters
        ----------
        prediction
            A prediction with its reasons.

        Returns
        -------
        Prediction
            The same prediction with the reasons that pass; the sum of the others is in ``rest``.
        """
        return prediction.showing(tuple(reason for reason in prediction.reasons if self.passes(reason)))

    def passes(self, reason: Reason) -> bool:
        """Return whether a reason passes all conditions.

        Parameters
        ----------
        reason
            A reason of a prediction.

        Returns
        -------
        bool
            True if no condition excludes it.
        """
        if self.known_only and not reason.known_fact:
            return False
        if self.relation is not None and self.relation not in (reason.relation, inverse(reason.relation)):
            return False
        if self.through is not None:
            wanted = casefold_text(self.through)
            ends = (reason.head, reason.tail)
            return any(wanted == casefold_text(term.key) or wanted in casefold_text(term.name) for term in ends)
        return True
