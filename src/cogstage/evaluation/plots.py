"""Pictures of a comparison: bars with intervals, precision-recall curves, reliability curves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.evaluation.methods import GROUPS, title
from cogstage.evaluation.metrics import TITLES, precision_recall, reliability
from cogstage.evaluation.tables import MAIN
from cogstage.reporting.plots import (
    Plot,
    PlotEstimate,
    draw_bars,
    draw_precision_recall,
    draw_reliability,
    figure_svg,
    name_rows,
    save_figure,
)

if TYPE_CHECKING:
    from cogstage.evaluation.results import Comparison

CURVES = 6  # methods in a picture of curves: CogStage's, then the best baselines
GROUP_COLOURS = {"floor": "0.7", "paper": "tab:blue", "fresh": "tab:cyan", "modern": "tab:green"}
OWN_COLOUR = "tab:orange"


def draw(comparison: Comparison, folder: Path) -> list[Plot]:
    """Write all pictures of all data sets as SVG and PNG; gives them back for a page."""
    from matplotlib.figure import Figure as Canvas

    folder.mkdir(parents=True, exist_ok=True)
    drawn: list[Plot] = []
    for dataset in comparison.datasets:
        where = f"on {comparison.split} pairs, {dataset} negatives"
        pictures: dict[str, Any] = {f"{metric}-bars": (_bars, metric, f"{TITLES[metric]} {where}.") for metric in MAIN}
        pictures["precision-recall"] = (_precision_recall, "", f"Precision and recall {where}.")
        pictures["reliability"] = (_reliability, "", f"Reliability {where}.")
        for name, (picture, metric, caption) in pictures.items():
            canvas = Canvas(layout="constrained")
            picture(canvas, comparison, dataset, metric)
            save_figure(canvas, folder / f"{name}-{dataset}")
            drawn.append(Plot(caption, figure_svg(canvas, caption)))
    return drawn


def _bars(canvas: Any, comparison: Comparison, dataset: str, metric: str) -> None:
    """One panel per relation, one bar per method, whiskers for the 95 % interval; colours tell the groups apart."""
    figures = comparison.figures(dataset, metric)
    columns = list(dict.fromkeys(relation for _, relation in figures))
    methods = [method for method in comparison.methods if any((method, c) in figures for c in columns)]
    colours = {method: colour for group, colour in GROUP_COLOURS.items() for method in GROUPS[group]}
    canvas.set_size_inches(1.9 * len(columns) + 2.8, 0.19 * len(methods) + 1.3)
    panels = canvas.subplots(1, len(columns), sharey=True, squeeze=False)[0]
    for axes, column in zip(panels, columns, strict=True):
        there = {row: m for row, m in enumerate(methods) if (m, column) in figures}
        shown = {row: figures[method, column] for row, method in there.items()}
        bars = {row: PlotEstimate(figure.mean, figure.low, figure.high) for row, figure in shown.items()}
        draw_bars(axes, bars, [colours.get(method, OWN_COLOUR) for method in there.values()])
        axes.set(title=column, xlim=(0, 1))
    name_rows(panels[0], [title(method) for method in methods], 8)
    what = f"{TITLES[metric]} on {comparison.split} pairs, {dataset} negatives, 95 % interval clustered by head"
    canvas.suptitle(what, fontsize=10)


def _chosen(comparison: Comparison, dataset: str, relation: str) -> list[str]:
    """The methods whose curves are shown: CogStage's variants and the best others by AUROC."""
    there = [m for m in comparison.methods if comparison.seeds(dataset, m, relation)]
    own = [m for m in there if m.startswith("cogstage")]
    others = sorted(
        (m for m in there if m not in own),
        key=lambda m: -float(np.mean(comparison.values(dataset, m, relation, "auroc"))),
    )
    return [*own, *others][: max(CURVES, len(own))]


def _panels(canvas: Any, relations: list[str]) -> list[Any]:
    columns = min(3, max(len(relations), 1))
    rows = -(-len(relations) // columns)
    canvas.set_size_inches(4.2 * columns, 3.8 * rows)
    grid = canvas.subplots(rows, columns, squeeze=False).ravel()
    for axes in grid[len(relations) :]:
        axes.set_visible(False)
    return list(grid[: len(relations)])


def _precision_recall(canvas: Any, comparison: Comparison, dataset: str, _: str) -> None:
    relations = comparison.relations(dataset)
    for axes, relation in zip(_panels(canvas, relations), relations, strict=True):
        curves = {}
        for method in _chosen(comparison, dataset, relation):
            precision, recall = precision_recall(*comparison.probabilities(dataset, method, relation))
            curves[title(method)] = (recall, precision)
        draw_precision_recall(axes, curves)
        axes.set(title=relation, ylim=(0.4, 1.02))


def _reliability(canvas: Any, comparison: Comparison, dataset: str, _: str) -> None:
    relations = comparison.relations(dataset)
    for axes, relation in zip(_panels(canvas, relations), relations, strict=True):
        curves = {}
        for method in _chosen(comparison, dataset, relation):
            curve = reliability(*comparison.probabilities(dataset, method, relation))
            curves[title(method)] = (curve["probability"], curve["positives"])
        draw_reliability(axes, curves)
        axes.set_title(relation)
