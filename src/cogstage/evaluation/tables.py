"""The comparison as tables in the paper's layout: methods down, relations across, the average at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cogstage.evaluation.measure import ALL_METRICS
from cogstage.evaluation.methods import title
from cogstage.evaluation.metrics import BALANCED, LOWER_IS_BETTER, POPULATIONS, TITLES
from cogstage.evaluation.population_figures import NOTE, which_table
from cogstage.reporting import Cell, Report, Section, Table, csv_text, figure_text
from cogstage.reporting.figures import UNDEFINED
from cogstage.statistics import mark

if TYPE_CHECKING:
    from cogstage.evaluation.results import Comparison, Figure

MAIN = ("f1", BALANCED, "auroc")
LEGEND = (
    "Mean ± standard deviation over seeds; the best value of each column is bold. Stars mean better than the best "
    "baseline of the column, daggers worse (one at 5 %, two at 1 %, three at 0.1 %; paired bootstrap over pairs "
    "clustered by head, Holm-corrected over relations; no mark: no significant difference). F1 is at a probability of "
    "0.5; “balanced on dev” at the threshold above which as many dev pairs lie as are true. Time is the elapsed and "
    "the processor time to fit one relation, in seconds, including the encoder; memory is the highest of any run."
)


def significance_mark(figure: Figure) -> str:
    """Stars where it beats the best baseline, daggers where it loses to it."""
    if figure.p is None:
        return ""
    stars = mark(figure.p)
    return stars if figure.better else "†" * len(stars)


def best_of(figures: Mapping[tuple[str, str], Figure], metric: str) -> dict[str, float]:
    """The best mean of each column, as it is printed."""
    pick = min if metric in LOWER_IS_BETTER else max
    columns: dict[str, list[float]] = {}
    for (_, relation), figure in figures.items():
        if np.isfinite(figure.mean):
            columns.setdefault(relation, []).append(round(figure.mean, 3))
    return {relation: pick(values) for relation, values in columns.items()}


def comparison_report(comparison: Comparison) -> Report:
    """All data sets: F1 and AUROC in a table each, the averages of all metrics, then the data sets side by side."""
    sections = []
    for dataset in comparison.datasets:
        tables = [_main_table(comparison, dataset, metric) for metric in MAIN]
        tables += [_averages_table(comparison, dataset), *_population_tables(comparison, dataset)]
        sections.append(Section(f"{dataset} negatives", tables))
    for pool in comparison.pools:
        (name,) = pool.datasets
        tables = [_main_table(pool, name, metric) for metric in MAIN]
        sections.append(Section(f"{name} negatives", [*tables, _averages_table(pool, name)]))
    if len(comparison.datasets) > 1:
        sections.append(Section("Side by side", [_beside_table(comparison)]))
    return Report(f"Comparison of methods on {comparison.split} pairs", comparison.floor_warnings(), sections, [LEGEND])


def _columns(comparison: Comparison, dataset: str) -> list[str]:
    from cogstage.evaluation.results import MACRO

    return [*comparison.relations(dataset), MACRO]


def _seeds(comparison: Comparison, dataset: str, method: str) -> str:
    """How many seeds a method's row rests on: the fewest and the most of its relations."""
    counts = {len(comparison.seeds(dataset, method, r)) for r in comparison.relations(dataset)} - {0}
    return "–".join(str(count) for count in sorted({min(counts), max(counts)}))


def _cell(figure: Figure | None, best: float | None) -> str | Cell:
    if figure is None or not np.isfinite(figure.mean):
        return UNDEFINED
    text = figure_text(figure.mean) + (f" ± {figure_text(figure.sd)}" if np.isfinite(figure.sd) else "")
    return Cell(text, best is not None and round(figure.mean, 3) == best, significance_mark(figure))


def _main_table(comparison: Comparison, dataset: str, metric: str) -> Table:
    figures = comparison.figures(dataset, metric)
    best, columns = best_of(figures, metric), _columns(comparison, dataset)
    rows: list[tuple[str | Cell, ...]] = []
    for method in comparison.methods:
        if not any((method, column) in figures for column in columns):
            continue
        seconds, processor, memory = comparison.cost(dataset, method)
        cells = [_cell(figures.get((method, column)), best.get(column)) for column in columns]
        costs = (figure_text(seconds, 1), figure_text(processor, 1), f"{memory:,.0f}")
        rows.append((title(method), _seeds(comparison, dataset, method), *cells, *costs))
    header = ("Method", "seeds", *columns, "time (s)", "CPU (s)", "memory (MB)")
    return Table(
        f"{TITLES[metric]} on {comparison.split} pairs, {dataset} negatives",
        header,
        tuple(rows),
        label=f"tab:{metric}-{dataset}",
    )


def _averages_table(comparison: Comparison, dataset: str) -> Table:
    from cogstage.evaluation.results import MACRO

    columns, best = {}, {}
    for metric in (name for name in ALL_METRICS if name not in POPULATIONS):
        figures = {key: f for key, f in comparison.figures(dataset, metric).items() if key[1] == MACRO}
        if any(np.isfinite(figure.mean) for figure in figures.values()):
            columns[metric], best[metric] = figures, best_of(figures, metric).get(MACRO)
    rows: list[tuple[str | Cell, ...]] = []
    for method in comparison.methods:
        if any((method, MACRO) in figures for figures in columns.values()):
            cells = []
            for metric, figures in columns.items():
                figure = figures.get((method, MACRO))
                plain = figure_text(figure.mean if figure else None)
                cells.append(Cell(plain, plain == figure_text(best[metric])))
            rows.append((title(method), *cells))
    header = ("Method", *(TITLES[metric] for metric in columns))
    return Table(
        f"Averages over relations on {comparison.split} pairs, {dataset} negatives",
        header,
        tuple(rows),
        label=f"tab:averages-{dataset}",
    )


def _population_tables(comparison: Comparison, dataset: str) -> list[Table]:
    """Average AUROC against three kinds of negatives with their mean, and the which-relation shares."""
    from cogstage.evaluation.results import MACRO

    figures = {metric: comparison.figures(dataset, metric) for metric in POPULATIONS}
    averages = {
        method: [found[method, MACRO] for found in figures.values() if (method, MACRO) in found]
        for method in comparison.methods
    }
    complete = {
        method: row
        for method, row in averages.items()
        if len(row) == len(POPULATIONS) and all(np.isfinite(figure.mean) for figure in row)
    }
    tables = []
    if complete:
        means = {method: float(np.mean([figure.mean for figure in row])) for method, row in complete.items()}
        best = {metric: best_of(figures[metric], metric).get(MACRO) for metric in POPULATIONS}
        highest = max(round(value, 3) for value in means.values())
        rows = tuple(
            (
                title(method),
                *(_cell(figure, best[metric]) for metric, figure in zip(POPULATIONS, row, strict=True)),
                Cell(figure_text(means[method]), round(means[method], 3) == highest),
            )
            for method, row in complete.items()
        )
        header = ("Method", *(TITLES[metric].removeprefix("AUROC, ") for metric in POPULATIONS), "mean of the three")
        caption = f"AUROC against three kinds of negatives, {comparison.split} pairs, fitted on {dataset} negatives"
        tables.append(Table(caption, header, rows, label=f"tab:populations-{dataset}", note=NOTE))
    which = {title(method): shares for method, shares in comparison.which_relations(dataset).items()}
    return tables + ([which_table(which, comparison.split)] if which else [])


def _beside_table(comparison: Comparison) -> Table:
    """The averages of F1 and AUROC, one pair of columns per data set."""
    from cogstage.evaluation.results import MACRO

    pairs = [(dataset, metric) for dataset in comparison.datasets for metric in MAIN]
    figures = {pair: comparison.figures(*pair) for pair in pairs}
    best = {pair: best_of(figures[pair], pair[1]).get(MACRO) for pair in pairs}
    rows = tuple(
        (title(method), *(_cell(figures[pair].get((method, MACRO)), best[pair]) for pair in pairs))
        for method in comparison.methods
    )
    header = ("Method", *(f"{TITLES[metric]}, {dataset}" for dataset, metric in pairs))
    return Table("Side by side", header, rows, label="tab:beside")


def long_csv(comparison: Comparison) -> str:
    """Every figure in long form: data set, method, relation, metric, mean, sd, interval, tests."""
    from cogstage.evaluation.results import MACRO

    names = ["dataset", "method", "relation", "metric", "mean", "sd", "low", "high", "seeds"]
    names += ["p_vs_best_baseline", "mcnemar_p", "mark", "seconds", "cpu_seconds", "peak_mb"]
    rows = []
    for dataset in comparison.datasets:
        mcnemar = {
            (method, relation): comparison.mcnemar(dataset, method, relation)
            for method in comparison.methods
            for relation in comparison.relations(dataset)
        }
        for metric in ALL_METRICS:
            for (method, relation), figure in comparison.figures(dataset, metric).items():
                seconds, processor, memory = comparison.cost(dataset, method)
                numbers = [_number(v) for v in (figure.mean, figure.sd, figure.low, figure.high)]
                sure = mcnemar.get((method, relation)) if metric == "f1" and relation != MACRO else None
                tests = [_number(figure.p), _number(sure), significance_mark(figure)]
                cost = [f"{seconds:.2f}", f"{processor:.2f}", f"{memory:.1f}"]
                rows.append([dataset, method, relation, metric, *numbers, figure.seeds, *tests, *cost])
    return csv_text(names, rows)


def _number(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.6g}"
