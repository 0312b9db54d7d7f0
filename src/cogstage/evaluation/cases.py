"""Case studies: held-out pairs, sampled by seed and never chosen by hand, with their predictions and reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from markupsafe import Markup

from cogstage.choices import OutputFormat
from cogstage.errors import UsageError
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.picture import svg
from cogstage.rationale.record import Prediction, Reason
from cogstage.rationale.wording import in_words, order_in_words, signal_in_words, status_in_words, triple_phrase
from cogstage.relations import phrase
from cogstage.reporting import Report, Section, Table, escape
from cogstage.reporting.report import template

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


@dataclass(frozen=True)
class Case:
    """A prediction and, where it is known, the held-out answer."""

    prediction: Prediction
    label: bool | None = None

    @property
    def correct(self) -> bool | None:
        """Whether the decision at 0.5 is correct."""
        return None if self.label is None else (self.prediction.probability >= 0.5) == self.label


def choose_cases(
    model: CogStage, data: Dataset, relation: str, positive: int = 5, negative: int = 5, seed: int = 0
) -> list[Case]:
    """Correctly predicted test pairs, ``positive`` true and ``negative`` false ones, drawn by ``seed``."""
    pairs = data.pairs(relation, "test")
    probabilities = model.probabilities(pairs.head, pairs.tail, relation)
    generator = np.random.default_rng(seed)
    cases: list[Case] = []
    for label, wanted in ((1, positive), (0, negative)):
        right = np.flatnonzero((pairs.label == label) & ((probabilities >= 0.5) == bool(label)))
        if not len(right) and wanted:
            raise UsageError(f"the model predicts no {'true' if label else 'false'} test pair of {relation} correctly")
        chosen = np.sort(generator.choice(right, min(wanted, len(right)), replace=False))
        predictions = model.predict_batch(pairs.head[chosen], pairs.tail[chosen], relation)
        cases += [Case(prediction, bool(label)) for prediction in predictions]
    return cases


def cases_section(cases: Sequence[Case]) -> Section:
    """The cases for a report: each with its picture and its reasons."""
    drawn = [{"case": case, "picture": svg(case.prediction, background=False)} for case in cases]
    words = {
        "phrase": phrase,
        "triple_phrase": triple_phrase,
        "status_in_words": status_in_words,
        "order_in_words": order_in_words,
        "signal_in_words": signal_in_words,
    }
    return Section("Cases", [Markup(template("cogstage.evaluation", "cases.html").render(cases=drawn, **words))])


def cases_text(cases: Sequence[Case], form: OutputFormat, title: str) -> str:
    """The cases in one of the formats of the command line; ``title`` heads the HTML page."""
    if form == "html":
        return Report(title, sections=[cases_section(cases)]).html()
    if form == "jsonl":
        return "".join(case.prediction.to_json() + "\n" for case in cases)
    return {"text": to_text, "markdown": to_markdown, "latex": to_latex}[form](cases)


def to_markdown(cases: Sequence[Case]) -> str:
    """The cases in the layout of the paper's Table 4."""
    columns = ("head", "relation", "tail", "share", "known fact")
    parts = []
    for number, case in enumerate(cases, start=1):
        p = case.prediction
        rows = tuple((r.head.name, _words(r), r.tail.name, f"{r.share:+.3f}", _known(r)) for r in p.reasons)
        question = " — ".join(map(escape.markdown, (p.head.name, p.relation, p.tail.name)))
        answer = f"{escape.markdown(p.statement)} The held-out answer is {_answer(case)}."
        parts += [f"### Case {number}: {question}", "", answer, ""]
        parts += [Table("", columns, rows, left=3).markdown(), ""]
    return "\n".join(parts)


def to_latex(cases: Sequence[Case]) -> str:
    """The cases as one LaTeX table."""
    lines = [r"\begin{tabular}{@{}lll@{}}", r"\toprule"]
    for number, case in enumerate(cases, start=1):
        p = case.prediction
        lines += [rf"\multicolumn{{3}}{{c}}{{Case {number} ({p.probability:.2f}, {_answer(case)})}} \\"]
        lines += [rf"\multicolumn{{3}}{{c}}{{{escape.latex(p.statement)}}} \\ \midrule"]
        lines += [
            rf"{escape.latex(p.head.name)} & {escape.latex(p.relation)} & {escape.latex(p.tail.name)} \\ \midrule"
        ]
        for r in p.reasons:
            cells = [escape.latex(r.head.name), escape.latex(_words(r)), escape.latex(r.tail.name)]
            lines.append(" & ".join(rf"\textbf{{{c}}}" if r.known_fact else c for c in cells) + r" \\")
        lines.append(r"\midrule" if number < len(cases) else r"\bottomrule")
    return "\n".join([*lines, r"\end{tabular}", "% bold: the triple is a training fact"]) + "\n"


def to_text(cases: Sequence[Case]) -> str:
    """The cases for a terminal."""
    parts = []
    for number, case in enumerate(cases, start=1):
        p = case.prediction
        parts.append(f"{number}. {p.head.name} {phrase(p.relation)} {p.tail.name}?")
        parts.append(f"   {p.statement} The held-out answer is {_answer(case)}.")
        for rank, r in enumerate(p.reasons, start=1):
            parts.append(f"   {rank:>2}. {in_words(r)}  {r.share:+.3f}  ({status_in_words(r)})")
        parts.append("")
    return "\n".join(parts)


def _answer(case: Case) -> str:
    return "unknown" if case.label is None else ("true" if case.label else "false")


def _words(reason: Reason) -> str:
    """The relation of a triple by name, or in words if the model considers the triple unlikely."""
    return reason.relation if reason.recognised else triple_phrase(reason.relation, False)


def _known(reason: Reason) -> str:
    return "yes" if reason.known_fact else "no"
