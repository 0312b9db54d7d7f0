"""The floor next to a model: rows that need no model, and a warning where one of them is too good."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cogstage.baselines.resolver import FLOOR
from cogstage.evaluation.measure import measure
from cogstage.evaluation.metrics import POPULATIONS, TITLES
from cogstage.evaluation.population_figures import population_figures
from cogstage.evaluation.populations import PopulationLogits, Populations, join_logits, populations
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.progress import SILENT, Progress
from cogstage.reporting import Table, interval_text
from cogstage.reporting.figures import UNDEFINED

TOO_GOOD = 0.9
"""A floor row above this AUROC means that the data set gives its answers away."""


def floor_figures(
    graph: Graph,
    data: Dataset,
    relations: Sequence[str],
    split: str,
    ranking_heads: int = 0,
    progress: Progress = SILENT,
    related: Populations | None = None,
) -> tuple[dict[str, dict[str, Any]], dict[str, list[PopulationLogits]]]:
    """By relation and floor row: each metric with its value and 95 % interval. Rows are fitted on training pairs.

    The second result has the log-odds of ``related``, by floor row and relation.
    """
    view = data.for_fitting()
    result: dict[str, dict[str, Any]] = {}
    logits: dict[str, list[PopulationLogits]] = {}
    progress.start("Evaluating simple baselines", len(relations) * len(FLOOR))
    for relation in relations:
        result[relation] = {}
        for name, kind in FLOOR.items():
            if len(view.pairs(relation, "train")):
                method = kind().fit(graph, view, relation)
                measured = measure(data, relation, method.scores, split, ranking_heads, related)
                metrics = {key: figure for key, figure in measured.metrics.items() if key not in POPULATIONS}
                result[relation][name] = metrics
                logits.setdefault(name, []).extend([measured.logits] if measured.logits else [])
            progress.advance(1, name)
    progress.done()
    return result, logits


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
                f"{relation}: {titles[best]} alone has AUROC {rows[best]:.3f}; the data set gives its answers away, "
                "so its figures say little about any model"
            )
        if relation in model and rows[best] > model[relation]:
            lines.append(
                f"{relation}: {titles[best]} alone (AUROC {rows[best]:.3f}) is better than the model "
                f"({model[relation]:.3f})"
            )
    return lines


def add_floor(
    result: dict[str, Any], graph: Graph, data: Dataset, ranking_heads: int = 0, progress: Progress = SILENT
) -> list[str]:
    """Put the floor next to the figures of a model (what ``evaluate`` gave) and return the warnings.

    ``result`` gets ``floor`` (by relation and row), ``floor_populations`` (by row) and ``warnings``.
    """
    relations, related = list(result["relations"]), populations(graph, data, result["split"])
    floor, logits = floor_figures(graph, data, relations, result["split"], ranking_heads, progress, related)
    model = {relation: figures["metrics"]["auroc"]["value"] for relation, figures in result["relations"].items()}
    rows = {relation: {name: row["auroc"]["value"] for name, row in rows.items()} for relation, rows in floor.items()}
    result["floor"], result["warnings"] = floor, floor_warnings(rows, model)
    result["floor_populations"] = {
        FLOOR[name].title: population_figures(related, join_logits(parts)) for name, parts in logits.items()
    }
    return list(result["warnings"])


def floor_table(result: Mapping[str, Any]) -> Table:
    """The model and the floor, relation by relation."""
    names = ["f1", "auroc", "auprc", "mcc", "mrr"]
    rows = []
    for relation, floor in result["floor"].items():
        beside = {"model": result["relations"][relation]["metrics"], **floor}
        for row, metrics in beside.items():
            title = FLOOR[row].title if row in FLOOR else "The model"
            cells = [metrics.get(name) for name in names]
            shown = [UNDEFINED if cell is None else interval_text(cell["value"], *cell["interval"]) for cell in cells]
            rows.append((relation, title, *shown))
    columns = ("relation", "row", *(TITLES[name] for name in names))
    return Table(f"Baselines that need no model, on {result['split']} pairs", columns, tuple(rows), left=2)
