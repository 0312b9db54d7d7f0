"""Parts of a prediction in words: the steps of its sum, its triples, the counts of the pair, orders and signals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cogstage.rationale.record import Order, Prediction, Reason, Signal, SignalValue, Term
from cogstage.relations import contradict, phrase


@dataclass(frozen=True)
class SumStep:
    """One step of the sum that makes an answer: what it is, its share, and the sum before it."""

    words: str
    share: float
    before: float
    reason: Reason | None = None
    number: int = 0


def steps(prediction: Prediction) -> list[SumStep]:
    """Baseline, counts of the pair, reasons for, reasons against, the rest: the shares add up to the logit."""
    found = [SumStep("Baseline: before any evidence", prediction.baseline, 0.0)]
    total = prediction.baseline
    for words, share in pair_in_words(prediction):
        found.append(SumStep(words, share, total))
        total += share
    for number, reason in enumerate(prediction.reasons_for + prediction.reasons_against, start=1):
        found.append(SumStep(in_words(reason), reason.share, total, reason, number))
        total += reason.share
    if abs(prediction.rest) > 1e-12:
        found.append(SumStep("Reasons that are not shown", prediction.rest, total))
    return found


def pair_in_words(prediction: Prediction) -> list[tuple[str, float]]:
    """What the counts of head and tail themselves say, each with its share."""
    pair = prediction.pair
    if pair is None:
        return []
    if pair.count is not None:
        together = f"The two terms occur together {pair.count:,}× (PPMI {pair.ppmi:.2f})"
    else:  # never counted together, or counts are hidden
        often = "" if pair.ppmi_share else "not "
        together = f"The two terms do {often}occur together more often than by chance"
    similar = f"Similarity of their contexts: {pair.similarity:.2f}"
    return [(together, pair.ppmi_share), (similar, pair.similarity_share)]


def in_words(reason: Reason) -> str:
    """A reason's triple as a clause."""
    return f"{reason.head.name} {phrase(reason.relation)} {reason.tail.name}"


def order_in_words(order: Order, head: Term, tail: Term) -> str:
    """Which of two terms came first, in most patients: "Aspirin first in 83 % of 41 patients"."""
    first, count = (head, order.head_first) if order.head_first >= order.tail_first else (tail, order.tail_first)
    if count == 0:
        return f"both on the same day in all of {order.patients:,} patients"
    return f"{first.name} first in {100 * count / order.patients:.0f} % of {order.patients:,} patients"


def estimate_in_words(estimate: SignalValue) -> str:
    """A value with its interval."""
    return f"{estimate.value:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"


def signal_in_words(signal: Signal) -> str:
    """The statistics of a drug and an event, and what they rest on."""
    s = signal
    named = ", ".join(f"{name} {estimate_in_words(x)}" for name, x in (("ROR", s.ror), ("PRR", s.prr), ("IC", s.ic)))
    return f"{named}; {s.together:,} of {s.total:,} have both ({s.basis})"


def opposes(reason: Reason, prediction: Prediction) -> bool:
    """Whether the triple is of a relation that speaks against the one in question."""
    return contradict(reason.relation, prediction.relation)


def likelier_opposites(prediction: Prediction, others: Sequence[Prediction]) -> list[Prediction]:
    """Those predictions of the same pair whose relation contradicts this one's and is likelier."""
    least = max(prediction.probability, 0.5)
    return [other for other in others if contradict(other.relation, prediction.relation) and other.probability > least]


def opposite_in_words(prediction: Prediction, other: Prediction) -> str:
    """Return a sentence that names a more likely relation that contradicts this one."""
    return (
        f"{prediction.head.name} {phrase(other.relation)} {prediction.tail.name}"
        f" is more likely ({other.probability:.3f}) and contradicts “{phrase(prediction.relation)}”"
    )
