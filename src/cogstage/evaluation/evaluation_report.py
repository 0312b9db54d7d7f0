"""The HTML report of ``evaluate``: figures by relation, curves, rationale figures and seeded cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.errors import UsageError
from cogstage.evaluation.cases import Case, choose_cases
from cogstage.evaluation.metrics import precision_recall, reliability
from cogstage.evaluation.report import Plot, Report, Table, figure_svg
from cogstage.knowledge.dataset import Dataset

if TYPE_CHECKING:
    from cogstage.rationale.cogstage import CogStage


def evaluation_report(
    model: CogStage, data: Dataset, result: Mapping[str, Any], tables: Sequence[Table], seed: int
) -> Report:
    """Everything that was measured on one page, with a few cases of each relation drawn by ``seed``."""
    provenance = model.explainer.provenance
    relations = list(result["relations"])
    split = result["split"]
    scores = {name: _scores(model, data, name, split) for name in relations}
    cases: list[Case] = []
    for name in relations if split == "test" else []:
        try:
            cases += choose_cases(model, data, name, 2, 2, seed)
        except UsageError:  # a model that gets none of a kind right has no such case to show
            continue
    return Report(
        f"A model measured on {split} pairs",
        [
            f"Model {provenance.model[:12]} ({provenance.world} world) on graph {provenance.graph[:12]}; "
            f"relations: {', '.join(relations)}. Every interval is a 95 % bootstrap over whole heads."
        ],
        [_figures(result), *tables],
        [*(curve_plots(scores))],
        cases,
        [
            "Classification figures are those of the raw probabilities at 0.5; as many false pairs as true ones.",
            "Cases were drawn by seed among the correctly predicted, never by hand.",
        ],
    )


def _scores(model: CogStage, data: Dataset, relation: str, split: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    pairs = data.pairs(relation, split)
    raw, calibrated = (model.probabilities(pairs.head, pairs.tail, relation, calibrated=c) for c in (False, True))
    return pairs.label, raw, calibrated


def _figures(result: Mapping[str, Any]) -> Table:
    found = result["relations"]
    names = list(dict.fromkeys(name for figures in found.values() for name in figures["metrics"]))
    rows = tuple(
        (relation, f"{figures['pairs']:,}", *(_figure(figures["metrics"].get(name)) for name in names))
        for relation, figures in found.items()
    )
    return Table(f"Figures on {result['split']} pairs, with 95 % intervals", ("relation", "pairs", *names), rows)


def _figure(figure: Mapping[str, Any] | None) -> str:
    if figure is None or not np.isfinite(figure["value"]):
        return "–"
    low, high = figure["interval"]
    return f"{figure['value']:.3f} [{low:.2f}, {high:.2f}]" if np.isfinite(low) else f"{figure['value']:.3f}"


def curve_plots(scores: Mapping[str, tuple[np.ndarray, np.ndarray, np.ndarray]]) -> list[Plot]:
    """Precision-recall and reliability of each relation: label, raw and calibrated probability of its pairs."""
    from matplotlib.figure import Figure

    curves, trust = Figure(figsize=(4.6, 3.6)), Figure(figsize=(4.6, 3.6))
    axes, other = curves.add_subplot(), trust.add_subplot()
    other.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    styles = ("-", "--", "-.", ":", (0, (5, 1)))
    for number, (name, (label, raw, calibrated)) in enumerate(scores.items()):
        precision, recall = precision_recall(label, raw)
        axes.plot(recall, precision, linestyle=styles[number % len(styles)], label=name)
        curve = reliability(label, calibrated, bins=10)
        other.plot(
            curve["probability"], curve["positives"], linestyle=styles[number % len(styles)], marker="o", label=name
        )
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.01), ylim=(0.4, 1.01))
    other.set(xlabel="calibrated probability", ylabel="share that holds", xlim=(0, 1), ylim=(0, 1))
    for panel in (axes, other):
        panel.spines[["top", "right"]].set_visible(False)
        panel.legend(frameon=False, fontsize="small", loc="lower right")
    return [
        Plot("Precision and recall over all thresholds.", figure_svg(curves)),
        Plot("Reliability: how often the relation holds among pairs with a given probability.", figure_svg(trust)),
    ]
