"""A prediction in two to five sentences from templates; every term is from the record."""

from __future__ import annotations

from cogstage.rationale.record import Prediction, Reason
from cogstage.rationale.wording import in_words, opposes, pair_in_words, status_in_words

FOR, AGAINST = 2, 1  # sentences for and against at most
TOO_SMALL = 0.005  # a share against the answer that would be shown as -0.00


def prose(prediction: Prediction) -> list[str]:
    """Two to five sentences: the verdict, the strongest reasons for and against, and what it assumes."""
    p = prediction
    if p.verdict == "does not apply":
        return [p.statement, "No known fact of this relation joins terms of these types, so no probability is given."]
    sentences = [p.statement]
    speaking_for = [(reason.share, _sentence(reason, p, "for it")) for reason in p.reasons_for]
    if p.pair is not None and p.pair.ppmi_share > 0:
        words, share = pair_in_words(p)[0]
        speaking_for.append((share, f"{words}, which counts for it ({share:+.2f})."))
    sentences += [sentence for _, sentence in sorted(speaking_for, reverse=True)[:FOR]]
    speaking_against = [reason for reason in p.reasons_against if reason.share <= -TOO_SMALL]
    sentences += [_sentence(reason, p, "against it") for reason in speaking_against[:AGAINST]]
    if not p.reasons and abs(p.rest) > 1e-9:
        sentences.append("The reasons for and against it are not shown here.")
    elif not p.reasons:
        sentences.append("No relation was recognised that counts for or against it.")
    sentences.append(f"The probability assumes that {100 * p.base_rate:g} % of such pairs are true.")
    return sentences


def _sentence(reason: Reason, p: Prediction, side: str) -> str:
    """One reason: its triple, whether it is known, and why it is relevant."""
    similarities = [
        f"{own.name} is similar to {asked.name}"
        for own, asked, association in (
            (reason.head, p.head, reason.head_association),
            (reason.tail, p.tail, reason.tail_association),
        )
        if association is not None
    ]
    why = f", and {' and '.join(similarities)}" if similarities else ""
    caution = (
        "; note that this relation contradicts the one in question" if side == "for it" and opposes(reason, p) else ""
    )
    return f"{in_words(reason)} ({status_in_words(reason)}){why}, which counts {side} ({reason.share:+.2f}){caution}."
