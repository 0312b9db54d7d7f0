"""Case studies: held-out pairs chosen by seed, never by hand, with what the model says and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cogstage.errors import UsageError
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.record import Prediction, Rationale
from cogstage.relations import phrase

if TYPE_CHECKING:
    from cogstage.rationale.cogstage import CogStage


@dataclass(frozen=True)
class Case:
    """A prediction and, where it is known, the held-out answer."""

    prediction: Prediction
    label: bool | None = None

    @property
    def correct(self) -> bool | None:
        """Whether the decision at 0.5 is the answer."""
        return None if self.label is None else (self.prediction.raw_probability >= 0.5) == self.label


def choose_cases(
    model: CogStage, data: Dataset, relation: str, positive: int = 5, negative: int = 5, seed: int = 0, k: int = 5
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
        predictions = model.predict_batch(pairs.head[chosen], pairs.tail[chosen], relation, k)
        cases += [Case(prediction, bool(label)) for prediction in predictions]
    return cases


def to_markdown(cases: Sequence[Case]) -> str:
    """The cases in the layout of the paper's Table 4."""
    parts = []
    for number, case in enumerate(cases, start=1):
        p = case.prediction
        parts += [
            f"### Case {number}: {p.head.name} — {p.relation} — {p.tail.name}",
            "",
            f"Predicted {p.probability:.2f}, answer {_answer(case)}.",
            "",
            "| association of the head | relation | association of the tail | score | known fact |",
            "|---|---|---|---|---|",
            *(
                f"| {_pipe(r.head.name)} | {r.relation} | {_pipe(r.tail.name)} | {r.score:.3f} | {_known(r)} |"
                for r in p.rationales
            ),
            "",
        ]
    return "\n".join(parts)


def to_latex(cases: Sequence[Case]) -> str:
    """The cases as one LaTeX table."""
    lines = [r"\begin{tabular}{@{}lll@{}}", r"\toprule"]
    for number, case in enumerate(cases, start=1):
        p = case.prediction
        lines += [rf"\multicolumn{{3}}{{c}}{{Case {number} ({p.probability:.2f}, {_answer(case)})}} \\ \midrule"]
        lines += [rf"{_tex(p.head.name)} & {_tex(p.relation)} & {_tex(p.tail.name)} \\ \midrule"]
        for r in p.rationales:
            cells = [_tex(r.head.name), _tex(r.relation), _tex(r.tail.name)]
            lines.append(" & ".join(rf"\textbf{{{c}}}" if r.known_fact else c for c in cells) + r" \\")
        lines.append(r"\midrule" if number < len(cases) else r"\bottomrule")
    return "\n".join([*lines, r"\end{tabular}", "% bold: the triple is a training fact"]) + "\n"


def to_text(cases: Sequence[Case]) -> str:
    """The cases for a terminal."""
    parts = []
    for number, case in enumerate(cases, start=1):
        p = case.prediction
        parts.append(f"{number}. {p.head.name} {phrase(p.relation)} {p.tail.name}?")
        parts.append(f"   predicted {p.probability:.2f}, answer {_answer(case)}")
        for rank, r in enumerate(p.rationales, start=1):
            known = "  (known fact)" if r.known_fact else ""
            parts.append(f"   {rank:>2}. {r.head.name} {phrase(r.relation)} {r.tail.name}  {r.score:.3f}{known}")
        parts.append("")
    return "\n".join(parts)


def _answer(case: Case) -> str:
    return "unknown" if case.label is None else ("true" if case.label else "false")


def _known(rationale: Rationale) -> str:
    return "yes" if rationale.known_fact else "no"


def _pipe(text: str) -> str:
    return text.replace("|", "\\|")


def _tex(text: str) -> str:
    special = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    return "".join(special.get(c, f"\\{c}" if c in "&%$#_{}" else c) for c in text)
