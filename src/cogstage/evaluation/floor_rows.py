"""The floor beside a model: rows that need no model, and a warning where one of them is too good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cogstage.baselines.resolver import FLOOR
from cogstage.evaluation.measure import measure
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.progress import SILENT, Progress

TOO_GOOD = 0.9
"""A floor row above this AUROC means that the data set gives its answers away."""


def floor_figures(
    graph: Graph,
    data: Dataset,
    relations: Sequence[str],
    split: str,
    ranking_heads: int = 0,
    progress: Progress = SILENT,
) -> dict[str, dict[str, Any]]:
    """By relation and floor row: each metric with its value and 95 % interval. Rows are fitted on training pairs."""
    view = data.for_fitting()
    result: dict[str, dict[str, Any]] = {}
    progress.start("floor", len(relations) * len(FLOOR))
    for relation in relations:
        result[relation] = {}
        for name, kind in FLOOR.items():
            if len(view.pairs(relation, "train")):
                method = kind().fit(graph, view, relation)
                result[relation][name] = measure(data, relation, method.scores, split, ranking_heads).metrics
            progress.advance(1, name)
    progress.done()
    return result


def floor_warnings(floor: Mapping[str, Mapping[str, float]], model: Mapping[str, float]) -> list[str]:
    """One line for each relation with a floor row whose AUROC is above 0.9 or above the model's.

    ``floor`` has the AUROC by relation and row, ``model`` by relation.
    """
    lines = []
    for relation, rows in floor.items():
        titles = {name: FLOOR[name].title if name in FLOOR else name for name in rows}
        best = max(rows, key=lambda name: rows[name], default=None)
        if best is None:
            continue
        if rows[best] > TOO_GOOD:
            lines.append(
                f"{relation}: {titles[best]} alone has AUROC {rows[best]:.3f}; the pairs give their answers away, "
                "so figures on them say little about any model"
            )
        if relation in model and rows[best] > model[relation]:
            lines.append(
                f"{relation}: {titles[best]} alone (AUROC {rows[best]:.3f}) is better than the model "
                f"({model[relation]:.3f})"
            )
    return lines
