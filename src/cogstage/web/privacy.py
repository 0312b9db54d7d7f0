"""What a served model may show of the counts that it was trained on."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any, TypeVar

import numpy as np

from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.graph.pair_counts import PairCounts
from cogstage.provenance import LEAST_SUPPRESSION, MOST_DELTA, MOST_EPSILON, privacy_weakness
from cogstage.rationale.record import Prediction

T = TypeVar("T")
COUNTS = frozenset({"count", "ppmi", "order", "signal"})  # fields of a record that tell how often terms were counted


def without_cited_counts(model: CogStage) -> CogStage:
    """A model that predicts the same and has no counts to show, sort, search or filter by.

    Only the predictor keeps them. Whatever else reads the model gets none, so that no page can give one away.
    """
    fitted = model.fitted
    counts = PairCounts(
        np.zeros(len(model.vocabulary) + 1, np.int64),
        np.empty(0, np.int32),
        np.empty(0, np.int32),
        np.zeros(len(model.vocabulary)),
        np.zeros(1),
    )
    hidden = copy.copy(model)
    for name in ("explainer", "graph"):
        vars(hidden).pop(name, None)
    vars(hidden).update(facts=model.facts, predictor=model.predictor)
    hidden._fitted = dataclasses.replace(
        fitted,
        vocabulary=dataclasses.replace(fitted.vocabulary, count=np.zeros(len(model.vocabulary), np.int64)),
        counts=counts,
        graph_hash="",
        order=None,
        population=None,
        examples=None,
    )
    return hidden


def without_evidence_of_counts(prediction: Prediction) -> Prediction:
    """The same prediction with no count in it. The share of the pair's own counts is part of the rest."""
    share = prediction.pair_share
    return dataclasses.replace(without_counts(prediction), pair=None, rest=prediction.rest + share)


def without_counts(record: T) -> T:
    """The same record with no count in it, and none of the documents that were counted."""
    if isinstance(record, tuple):
        return tuple(without_counts(part) for part in record)  # type: ignore[return-value]
    if not dataclasses.is_dataclass(record) or isinstance(record, type):
        return record
    changed: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        value = getattr(record, field.name)
        if field.name in COUNTS:
            changed[field.name] = None
        elif field.name == "examples":
            changed[field.name] = ()
        elif isinstance(value, tuple) or dataclasses.is_dataclass(value):
            changed[field.name] = without_counts(value)
    return dataclasses.replace(record, **changed)


def privacy_warning(privacy: str, required: bool, hidden: bool) -> str | None:
    """Return a warning to show before a model is served; raise if protection is ``required`` and missing.

    ``privacy`` is the protection recorded in the model's provenance; ``hidden`` says whether counts are hidden.
    """
    weakness = privacy_weakness(privacy)
    if required and weakness is not None:
        raise UsageError(
            f"the counts of this model are not protected enough for `require_private`: {weakness}; build the graph"
            f" with `suppress_below` {LEAST_SUPPRESSION} or more (11 is common), or with `private`, ε up to"
            f" {MOST_EPSILON:g} and δ up to {MOST_DELTA:g}, and train again"
        )
    if privacy != "" and not privacy.startswith("none"):
        return None
    shown = "Counts are hidden, but predictions still depend on them" if hidden else "All users can see the counts"
    return (
        "The counts of this model are not protected. This is fine for public text. If they come from patients,"
        f" build the graph with `suppress_below` 11 or `private`. {shown}."
    )
