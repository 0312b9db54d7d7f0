"""Pictures of a comparison: bars with intervals, precision-recall curves, reliability curves."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.evaluation.metrics import precision_recall, reliability
from cogstage.evaluation.tables import MAIN, TITLES, title

if TYPE_CHECKING:
    from cogstage.evaluation.results import Comparison

CURVES = 6  # methods in a picture of curves: CogStage's, then the best baselines
FORMATS = ("svg", "png")


def draw(comparison: Comparison, folder: Path) -> list[Path]:
    """Write all pictures of all data sets; returns their paths."""
    from matplotlib.figure import Figure as Canvas

    folder.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for dataset in comparison.datasets:
        pictures: dict[str, Any] = {f"{metric}-bars": (_bars, metric) for metric in MAIN}
        pictures |= {"precision-recall": (_precision_recall, ""), "reliability": (_reliability, "")}
        for name, (picture, metric) in pictures.items():
            canvas = Canvas(layout="constrained")
            picture(canvas, comparison, dataset, metric)
            for kind in FORMATS:
                path = folder / f"{name}-{dataset}.{kind}"
                canvas.savefig(path, dpi=150)
                written.append(path)
    return written


def _bars(canvas: Any, comparison: Comparison, dataset: str, metric: str) -> None:
    """One group of bars a relation, one bar a method, whiskers for the 95 % interval."""
    figures = comparison.figures(dataset, metric)
    columns = list(dict.fromkeys(relation for _, relation in figures))
    methods = [method for method in comparison.methods if any((method, c) in figures for c in columns)]
    canvas.set_size_inches(max(6.0, 0.16 * len(columns) * len(methods) + 3), 4.5)
    axes = canvas.subplots()
    width = 0.85 / max(len(methods), 1)
    colours = _colours(len(methods))
    for number, method in enumerate(methods):
        there = [(place, figures[method, c]) for place, c in enumerate(columns) if (method, c) in figures]
        x = np.array([place for place, _ in there]) + (number - (len(methods) - 1) / 2) * width
        means = np.array([figure.mean for _, figure in there])
        low = np.maximum(means - np.array([figure.low for _, figure in there]), 0)
        high = np.maximum(np.array([figure.high for _, figure in there]) - means, 0)
        whiskers = np.nan_to_num(np.stack([low, high]))
        axes.bar(x, means, width, yerr=whiskers, label=title(method), color=colours[number], error_kw={"lw": 0.6})
    axes.set_xticks(range(len(columns)), columns)
    axes.set_ylabel(TITLES[metric])
    axes.set_ylim(0, 1)
    axes.set_title(f"{TITLES[metric]}, {dataset} negatives, 95 % interval over test pairs clustered by head")
    axes.legend(fontsize=7, ncols=1 + len(methods) // 16, loc="center left", bbox_to_anchor=(1.0, 0.5))


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
        for method in _chosen(comparison, dataset, relation):
            precision, recall = precision_recall(*comparison.probabilities(dataset, method, relation))
            axes.step(np.append(0.0, recall), np.append(precision[0], precision), where="post", label=title(method))
        axes.set(title=relation, xlabel="recall", ylabel="precision", xlim=(0, 1), ylim=(0.4, 1.02))
        axes.legend(fontsize=6)


def _reliability(canvas: Any, comparison: Comparison, dataset: str, _: str) -> None:
    relations = comparison.relations(dataset)
    for axes, relation in zip(_panels(canvas, relations), relations, strict=True):
        axes.plot([0, 1], [0, 1], color="grey", lw=0.8, ls=":")
        for method in _chosen(comparison, dataset, relation):
            curve = reliability(*comparison.probabilities(dataset, method, relation))
            axes.plot(curve["probability"], curve["positives"], marker="o", ms=3, label=title(method))
        axes.set(title=relation, xlabel="mean probability", ylabel="share of positives", xlim=(0, 1), ylim=(0, 1))
        axes.legend(fontsize=6)


def _colours(number: int) -> list[Any]:
    from matplotlib import colormaps

    return [colormaps["tab20"](i % 20) for i in range(number)]
