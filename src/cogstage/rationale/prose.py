"""A prediction in two to five plain sentences, made from templates: every term named is one of the record."""

from __future__ import annotations

from cogstage.rationale.layout import in_words, opposes
from cogstage.rationale.record import Prediction, Reason
from cogstage.relations import phrase

FOR, AGAINST = 2, 1  # most reasons mentioned


def prose(prediction: Prediction) -> list[str]:
    """Two to five sentences: the answer, the strongest reasons for and against, and what it assumes."""
    p = prediction
    question = f"{p.head.name} {phrase(p.relation)} {p.tail.name}"
    if p.types_fit is False:
        kinds = f"{p.head.type or 'a term'} and {p.tail.type or 'a term'}"
        return [
            f"The question whether {question} does not apply.",
            f"No known fact of this relation joins terms of the types {kinds}, so no probability is given.",
        ]
    known = ", and it is a known fact of the training data" if p.known_fact else ""
    sentences = [f"It is {p.verdict} that {question} (probability {p.probability:.2f}){known}."]
    sentences += [_sentence(reason, p, "for it") for reason in p.reasons_for[:FOR]]
    sentences += [_sentence(reason, p, "against it") for reason in p.reasons_against[:AGAINST]]
    if not p.reasons and abs(p.rest) > 1e-9:
        sentences.append("The reasons for and against it are not shown here.")
    elif not p.reasons:
        sentences.append("No relation was recognised that speaks for or against it.")
    sentences.append(f"The probability assumes that {p.base_rate:.0%} of such pairs are true.")
    return sentences


def _sentence(reason: Reason, p: Prediction, side: str) -> str:
    """One reason: what it says, whether it is known, why it bears on the question."""
    if reason.known_fact:
        standing = "It is known"
    elif reason.recognised:
        standing = f"The model assumes ({reason.relation_probability:.2f})"
    else:
        standing = f"The model does not recognise ({reason.relation_probability:.2f})"
    likenesses = [
        f"{own.name} is like {asked.name}"
        for own, asked, association in (
            (reason.head, p.head, reason.head_association),
            (reason.tail, p.tail, reason.tail_association),
        )
        if association is not None
    ]
    why = f", and {' and '.join(likenesses)}" if likenesses else ""
    caution = (
        "; note that this relation by itself speaks the other way" if side == "for it" and opposes(reason, p) else ""
    )
    return f"{standing} that {in_words(reason)}{why}, which speaks {side} ({reason.share:+.2f}){caution}."
