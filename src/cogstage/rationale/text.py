"""Predictions as plain text: the whole sum, so that a reader can add it up."""

from __future__ import annotations

from collections.abc import Sequence

from cogstage.graph.kept_examples import Example
from cogstage.rationale.record import Association, Prediction, Reason
from cogstage.rationale.wording import (
    estimate_in_words,
    in_words,
    opposes,
    opposite_flags,
    order_in_words,
    pair_in_words,
    signal_in_words,
    status_in_words,
    verdict_words,
)
from cogstage.relations import phrase

WIDTH = 64  # of the column of triples


def prediction_text(prediction: Prediction) -> str:
    """One prediction: the verdict, all relations of the pair, then the sum of the relation in question."""
    p = prediction
    lines = [p.statement, *profile_lines(p)]
    if p.verdict == "does not apply":
        return "\n".join(lines) + "\n"
    lines.append(f"  why: {p.head.name} {phrase(p.relation)} {p.tail.name}")
    lines.append(_line("baseline", p.baseline))
    lines += [_line(words, share) for words, share in pair_in_words(p)]
    for title, reasons in (("for", p.reasons_for), ("against", p.reasons_against)):
        if reasons:
            lines.append(f"  {title}")
        for reason in reasons:
            lines.append(_line("  " + in_words(reason), reason.share, _details(p, reason)))
            lines += [f"      {example_text(example)}" for example in reason.examples]
    if not p.reasons_for and not p.reasons_against:
        lines.append("  no reasons: nothing was recognised, or no reason passes the filter")
    if abs(p.rest) > 5e-7:
        lines.append(_line("not shown", p.rest))
    total = _line("sum (log-odds)", p.logit, f"1 / (1 + exp({-p.logit:+.3f})) = {p.probability:.3f}")
    lines.append(total)
    if p.order is not None:
        lines.append(f"  order in time: {order_in_words(p.order, p.head, p.tail)}")
    if p.signal is not None:
        lines.append(f"  counts alone: {signal_in_words(p.signal)}")
    return "\n".join(lines) + "\n"


def profile_lines(prediction: Prediction) -> list[str]:
    """All relations of the pair with probability, log-odds and verdict, the strongest first."""
    width = max(len(phrase(entry.relation)) for entry in prediction.profile)
    lines = [f"  relations of the pair (for {100 * prediction.base_rate:g} % true pairs)"]
    for entry in prediction.profile:
        figures = " " * 15 if entry.verdict == "does not apply" else f"{entry.probability:.3f}  {entry.logit:>+8.3f}"
        lines.append(f"    {phrase(entry.relation):<{width}}  {figures}  {verdict_words(entry)}")
    return lines


def example_text(example: Example) -> str:
    """A document that names both terms of a reason, with its sentences."""
    return " ".join([f"[{example.document}]", *example.sentences])


def ranking_text(predictions: Sequence[Prediction], by_head: bool, warnings: Sequence[str] = ()) -> str:
    """A ranked list of candidates, each with its verdict, opposite relations that hold, and its warning."""
    if not predictions:
        return "no candidates\n"
    p = predictions[0]
    question = f"{p.head.name} {phrase(p.relation)} …" if by_head else f"… {phrase(p.relation)} {p.tail.name}"
    names = [(entry.tail if by_head else entry.head).name for entry in predictions]
    width = max(len(question), *(len(name) for name in names))
    signals = any(entry.signal is not None for entry in predictions)
    lines = [f"{'#':>4}  {question:<{width}}  log-odds" + ("  IC (95 % interval)" if signals else "")]
    notes = warnings or [""] * len(predictions)
    for number, (name, entry, note) in enumerate(zip(names, predictions, notes, strict=True), start=1):
        rank = entry.rank or number
        words = [verdict_words(entry.profile_entry), *opposite_flags(entry), *([note] if note else [])]
        verdict = "  " + "; ".join(words)
        ic = "" if not signals else f"  {'-' if entry.signal is None else estimate_in_words(entry.signal.ic):<22}"
        lines.append(f"{rank:>4}  {name:<{width}}  {entry.logit:>+8.2f}{ic}{verdict}")
    return "\n".join(lines) + "\n"


def _line(label: str, value: float, details: str = "") -> str:
    return f"  {label:<{WIDTH}} {value:>+8.3f}" + (f"   {details}" if details else "")


def _details(prediction: Prediction, reason: Reason) -> str:
    parts = [status_in_words(reason)]
    if opposes(reason, prediction):
        parts.append("opposite relation")
    for term, end, question in (
        (reason.head, reason.head_association, prediction.head),
        (reason.tail, reason.tail_association, prediction.tail),
    ):
        if end is not None:
            parts.append(f"{term.name} is similar to {question.name} ({end.similarity:.2f}{_together(end)})")
    if reason.order is not None:
        parts.append(order_in_words(reason.order, reason.head, reason.tail))
    return "; ".join(parts)


def _together(association: Association) -> str:
    return "" if association.count is None else f", together {association.count:,}×"
