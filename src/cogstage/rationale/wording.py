"""A prediction in words: the verdict, the steps of its sum, its triples, the counts of the pair, orders and signals.

Every output takes its sentences from here, so that the same pair reads the same everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

from cogstage.rationale.record import Order, Prediction, ProfileEntry, Reason, Signal, SignalValue, Term
from cogstage.relations import contradict, infinitive, phrase

NAMED = 0.05  # a type is named if at least this share of the facts of the relation has it
_ASKED = {  # the term as head, the term as tail
    "may_treat": ("What might {} treat?", "What might treat {}?"),
    "may_prevent": ("What might {} prevent?", "What might prevent {}?"),
    "contraindicates": ("In what might {} be contraindicated?", "What might be contraindicated in {}?"),
    "causes": ("What might {} cause?", "What might cause {}?"),
    "symptom_of": ("Of what might {} be a symptom?", "What might be a symptom of {}?"),
}


def chance(probability: float) -> str:
    """A probability for people: two digits, and never a flat 0 or 1."""
    if probability < 0.01:
        return "<0.01"
    return ">0.99" if probability > 0.99 else f"{probability:.2f}"


def negated(relation: str) -> str:
    """How a relation that is not believed reads between its two terms: "is not thought to treat"."""
    return f"is not thought to {infinitive(relation)}"


def triple_phrase(relation: str, believed: bool) -> str:
    """How a triple reads between its two terms: the phrase of the relation, negated unless the model believes it."""
    return phrase(relation) if believed else negated(relation)


def statement(prediction: Prediction) -> str:
    """The verdict on a pair in one sentence, and what is said of a relation that matters beside it."""
    p, entry = prediction, prediction.profile_entry
    head, tail, alone = p.head.name, p.tail.name, chance(p.probability)
    denied = f"{head} {negated(p.relation)} {tail}"
    if entry.verdict == "does not apply":
        return f"{head} {phrase(p.relation)} {tail}: does not apply, since {_misfit(p)}{_instead(p)}."
    if entry.verdict == "known fact":
        known = f"{head} is known to {infinitive(p.relation)} {tail} (known fact; the model alone: {alone})"
        return f"{known}{_opposite_clause(p)}."
    if entry.verdict == "likely":
        return f"{head} {phrase(p.relation)} {tail} (likely, {alone}){_opposite_clause(p)}."
    if entry.verdict == "contradicted":
        by = next(other for other in p.profile if other.relation == entry.contradicted_by)
        return f"{denied}: contradicted ({alone} on its own), since it {_held(by)}."
    why = f"marked wrong by a reader; {alone} on its own" if entry.marked_wrong else f"unlikely, {alone}"
    others = [other for other in p.profile if other.holds and other.relation != p.relation]
    return f"{denied} ({why}){f'; it {_held(others[0])}' if others else ''}."


def verdict_words(entry: ProfileEntry) -> str:
    """The verdict on one relation of a pair in a few words: "contradicted by may treat"."""
    if entry.contradicted_by is not None:
        return f"contradicted by {phrase(entry.contradicted_by)}"
    return "marked wrong by a reader" if entry.marked_wrong and entry.verdict == "unlikely" else entry.verdict


def _held(entry: ProfileEntry) -> str:
    """A relation that is known or likely, after "it": "is known to treat it"."""
    if entry.verdict == "known fact":
        return f"is known to {infinitive(entry.relation)} it"
    return f"is thought to {infinitive(entry.relation)} it (likely, {chance(entry.probability)})"


def _opposite_clause(p: Prediction) -> str:
    """What is said of the opposite relations that join these types."""
    opposites = [e for e in p.profile if e.types_fit is not False and contradict(e.relation, p.relation)]
    known = [f"{infinitive(entry.relation)} it" for entry in opposites if entry.verdict == "known fact"]
    denied = [f"{infinitive(entry.relation)} it" for entry in opposites if entry.verdict != "known fact"]
    clauses = [f"it is also known to {' and to '.join(known)}"] if known else []
    clauses += [f"it is not thought to {' or to '.join(denied)}"] if denied else []
    return "".join(f"; {clause}" for clause in clauses)


def _misfit(p: Prediction) -> str:
    return f"“{phrase(p.relation)}” does not join terms of the types {p.head.type} and {p.tail.type}"


def _instead(p: Prediction) -> str:
    """Questions that would apply: the terms exchanged, a sibling, another relation of the pair."""
    questions = [(one.head.name, one.relation, one.tail.name) for one in p.alternatives]
    questions += [(p.head.name, one.relation, p.tail.name) for one in p.profile[:1] if one.types_fit]
    named = " or ".join(f"“{head} {phrase(relation)} {tail}”" for head, relation, tail in questions)
    return f"; {named} would apply" if named else ""


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
    parts = [SumStep("Baseline: before any evidence", prediction.baseline, 0.0)]
    total = prediction.baseline
    for words, share in pair_in_words(prediction):
        parts.append(SumStep(words, share, total))
        total += share
    for number, reason in enumerate(prediction.reasons_for + prediction.reasons_against, start=1):
        parts.append(SumStep(in_words(reason), reason.share, total, reason, number))
        total += reason.share
    if abs(prediction.rest) > 1e-12:
        parts.append(SumStep("Reasons that are not shown", prediction.rest, total))
    return parts


def pair_in_words(prediction: Prediction) -> list[tuple[str, float]]:
    """What the counts of head and tail themselves say, each with its share."""
    pair = prediction.pair
    if pair is None:
        return []
    if pair.count is not None:
        together = f"The two terms occur together {pair.count:,}× (PPMI {pair.ppmi:.2f})"
    else:  # never counted together, or counts are hidden
        negation = "" if pair.ppmi_share else "not "
        together = f"The two terms do {negation}occur together more often than by chance"
    similar = f"Similarity of their contexts: {pair.similarity:.2f}"
    return [(together, pair.ppmi_share), (similar, pair.similarity_share)]


def in_words(reason: Reason) -> str:
    """A reason's triple as a clause; one that the model considers unlikely is denied."""
    return f"{reason.head.name} {triple_phrase(reason.relation, reason.recognised)} {reason.tail.name}"


def status_in_words(reason: Reason) -> str:
    """Whether a reason's triple is known or assumed, and its probability: "assumed, 0.83"."""
    return reason.status if reason.known_fact else f"{reason.status}, {chance(reason.relation_probability)}"


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


def opposite_flags(prediction: Prediction) -> list[str]:
    """Opposite relations that are known or likely, apart from the one that the verdict names.

    For example "is contraindicated in (known fact)".
    """
    return [
        f"{phrase(entry.relation)} ({entry.verdict})"
        for entry in prediction.profile
        if entry.holds
        and contradict(entry.relation, prediction.relation)
        and entry.relation != prediction.contradicted_by
    ]


def question_text(relation: str, side: str, term: str = "___") -> str:
    """What is asked about ``term`` at one side of a relation."""
    words = _ASKED.get(relation, (f"{{}} {phrase(relation)} what?", f"What {phrase(relation)} {{}}?"))
    return words[0 if side == "head" else 1].format(term)


def joined_types(usual: tuple[dict[str, float], dict[str, float]]) -> str:
    """Which types a relation joins, in words: the commonest of its heads and of its tails."""
    parts = [" or ".join([kind for kind, share in shares.items() if share >= NAMED][:3]) for shares in usual]
    return f"{parts[0] or 'any term'} with {parts[1] or 'any term'}"
