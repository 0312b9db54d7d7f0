"""Possible effects of a drug without its indications, which its patients have for another reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.errors import UsageError
from cogstage.rationale.discover import rank_candidates, ranked_records
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction
from cogstage.rationale.verdict import Profiles
from cogstage.rationale.wording import chance
from cogstage.relations import phrase

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

EFFECT, USE = "causes", "may_treat"


def is_indication(profiles: Profiles) -> np.ndarray:
    """Whether each drug is held to treat the disorder rather than to cause it. bool (B,).

    A known *causes* fact is no indication, nor is a pair for which *causes* is likelier than a use that is not known.
    """
    use, effect = (profiles.relations.index(name) for name in (USE, EFFECT))
    likelier = profiles.known[:, use] | (profiles.logit[:, use] >= profiles.logit[:, effect])
    used: np.ndarray = profiles.holds(USE) & ~profiles.holds(EFFECT) & likelier
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
    model: CogStage,
    head: int | None = None,
    tail: int | None = None,
    top: int = 20,
    k: int | None = 0,
    choose: Filter | None = None,
    base_rate: float = 0.5,
    **options: Any,
) -> tuple[list[Prediction], list[Prediction]]:
    """What a drug (or which drugs an event) might be caused by, indications left out; and those that were left out.

    The second list holds the indications that the log-odds of *causes* alone would have put among the first ``top``.
    ``options`` are those of :func:`cogstage.rationale.discover.rank_candidates`.
    """
    check_indications(model, EFFECT)
    best, omitted = rank_candidates(model, EFFECT, head, tail, top, leave_out=is_indication, **options)
    left_out = ranked_records(model, EFFECT, head, tail, omitted, 0, None, base_rate)
    return ranked_records(model, EFFECT, head, tail, best, k, choose, base_rate), left_out


def indications_text(left_out: list[Prediction], by_head: bool) -> str:
    """Which indications were left out, in one line, each with the probabilities of use and effect."""
    if not left_out:
        return "no indications among these candidates"
    named = [f"{(p.tail if by_head else p.head).name} ({use_and_effect(p)})" for p in left_out]
    return f"left out as indications: {', '.join(named)}"


def use_and_effect(prediction: Prediction) -> str:
    """The probabilities of use and effect that the profile of a pair holds: "may treat 0.97, known; causes 0.61"."""
    entries = {entry.relation: entry for entry in prediction.profile}
    known = ", known" if entries[USE].known_fact else ""
    probabilities = [f"{phrase(name)} {chance(entries[name].probability)}" for name in (USE, EFFECT)]
    return f"{probabilities[0]}{known}; {probabilities[1]}"
