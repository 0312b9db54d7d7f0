"""The HTML report of ``evaluate``: figures by relation, curves, rationale figures and seeded cases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.errors import UsageError
from cogstage.evaluation.cases import Case, cases_section, choose_cases
from cogstage.evaluation.evaluate import figures_table
from cogstage.evaluation.metrics import precision_recall, reliability
from cogstage.knowledge.dataset import Dataset
from cogstage.reporting import Plot, Report, Section, Table
from cogstage.reporting.plots import draw_precision_recall, draw_reliability, plot

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


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
        f"Evaluation on {split} pairs",
        [
            f"Model {provenance.model[:12]} ({provenance.world} world) on graph {provenance.graph[:12]}; "
            f"relations: {', '.join(relations)}. Intervals are 95 % bootstrap intervals over heads.",
            *(f"Warning: {line}." for line in result.get("warnings", ())),
        ],
        [
            Section("Figures", [figures_table(dict(result)), *tables]),
            Section("Plots", curve_plots(scores)),
            *([cases_section(cases)] if cases else []),
        ],
        [
            "Probabilities are calibrated on dev; classification is at 0.5, with as many false pairs as true ones.",
            "Cases were sampled at random from the correct predictions, not chosen by hand.",
        ],
    )


def _scores(model: CogStage, data: Dataset, relation: str, split: str) -> tuple[np.ndarray, np.ndarray]:
    pairs = data.pairs(relation, split)
    return pairs.label, model.probabilities(pairs.head, pairs.tail, relation)


def curve_plots(scores: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> list[Plot]:
    """Precision-recall and reliability of each relation: label and probability of its pairs."""
    curves, bins = {}, {}
    for name, (label, probability) in scores.items():
        precision, recall = precision_recall(label, probability)
        curves[name] = (recall, precision)
        curve = reliability(label, probability, bins=10)
        bins[name] = (curve["probability"], curve["positives"])
    return [
        plot("Precision and recall over all thresholds.", lambda axes: draw_precision_recall(axes, curves)),
        plot(
            "Reliability: how often the relation holds among pairs with a given calibrated probability.",
            lambda axes: draw_reliability(axes, bins),
        ),
    ]
