"""Possible effects of a drug without its indications, which its patients have for another reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.errors import UsageError
from cogstage.rationale.discover import discover
from cogstage.rationale.record import Prediction

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

EFFECT, USE = "causes", "may_treat"
LIKELY = 0.5  # probability from which a predicted use is taken for one


def is_indication(model: CogStage, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
    """Whether each drug is used for the disorder, as a known fact or as the model predicts: (M,), (M,) -> (M,) bool."""
    check_indications(model, EFFECT)
    number = np.full(len(head), model.all_relations.index(USE))
    known = model.facts.contains(head, number, tail)
    used: np.ndarray = known | (model.probabilities(head, tail, USE) >= LIKELY)
    return used


def check_indications(model: CogStage, relation: str) -> None:
    """Raise unless indications can be left out of a ranking by this relation."""
    if relation != EFFECT:
        raise UsageError(f"indications can be left out for {EFFECT} only, not for {relation}")
    if USE not in model.relations:
        raise UsageError(
            f"leaving out indications needs a model that predicts {USE}; it predicts {', '.join(model.relations)}"
        )


def discover_effects(
    model: CogStage, head: int | None = None, tail: int | None = None, top: int = 20, **options: Any
) -> tuple[list[Prediction], list[Prediction]]:
    """What a drug (or which drugs an event) might be caused by, indications left out; and those that were left out.

    The second list holds the indications that would have ranked among the first ``top``, as predictions of may_treat.
    ``options`` are those of :func:`cogstage.rationale.discover.discover`.
    """
    check_indications(model, EFFECT)
    wanted, size = 4 * top, len(model.vocabulary)
    while True:
        found = discover(model, EFFECT, head, tail, wanted, **options)
        index = model.vocabulary.index
        heads, tails = (np.array([index[getattr(p, end).key] for p in found], np.int64) for end in ("head", "tail"))
        used = is_indication(model, heads, tails)
        kept = np.flatnonzero(~used)
        if len(kept) >= top or len(found) < wanted or wanted >= size:
            break
        wanted = min(2 * wanted, size)
    last = int(kept[top - 1]) if len(kept) >= top else len(found)
    out = np.flatnonzero(used[:last])
    left_out = model.predict_batch(heads[out], tails[out], USE, 0) if len(out) else []
    return [found[row] for row in kept[:top].tolist()], left_out


def left_out_text(left_out: list[Prediction], by_head: bool) -> str:
    """Which indications were left out, in one line."""
    if not left_out:
        return "no indications among these candidates"
    named = [
        f"{(p.tail if by_head else p.head).name} ({'known' if p.known_fact else f'predicted {p.probability:.2f}'})"
        for p in left_out
    ]
    return f"left out as indications: {', '.join(named)}"
