"""The comparison as tables in the paper's layout: methods down, relations across, the average at the end."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from cogstage.evaluation.metrics import LOWER_IS_BETTER
from cogstage.evaluation.significance import mark

if TYPE_CHECKING:
    from cogstage.evaluation.results import Comparison, Figure

MAIN = ("f1", "auroc")
TITLES = {
    "f1": "F1",
    "precision": "Precision",
    "recall": "Recall",
    "auroc": "AUROC",
    "auprc": "AUPRC",
    "mcc": "MCC",
    "brier": "Brier",
    "ece": "ECE",
    "mrr": "MRR",
    "hits@1": "Hits@1",
    "hits@3": "Hits@3",
    "hits@10": "Hits@10",
}
LEGEND = (
    "Mean ± standard deviation over seeds; the best of a column in bold. Stars: better than the best baseline of the "
    "column, daggers: worse than it (one at 5 %, two at 1 %, three at 0.1 %; paired bootstrap over test pairs "
    "clustered by head, Holm-corrected over relations; unmarked: no difference shown). Time is seconds to fit one "
    "relation, encoding included, by the clock and of the processor; memory is the highest of any cell's process."
)
PARTS = {
    "svd": "SVD",
    "deepwalk": "DeepWalk",
    "line": "LINE",
    "repel": "REPEL-D",
    "distmult": "DistMult",
    "rescal": "RESCAL",
    "ntn": "NTN",
    "complex": "ComplEx",
    "rotate": "RotatE",
    "tucker": "TuckER",
}
ROWS = {
    "always-positive": "Always positive",
    "degree": "Degree",
    "ppmi": "PPMI",
    "cogstage": "CogStage",
    "cogstage-closed": "CogStage, closed world",
    "cogstage-paper": "CogStage, as published",
    "cogstage-all": "CogStage, one model for all",
    "cogstage-all-closed": "CogStage, one model for all, closed world",
    "recognition": "CogStage's recognition alone, no reasons",
}


def title(method: str) -> str:
    """How a method is called in a table."""
    return ROWS.get(method) or " + ".join(PARTS.get(part, part) for part in method.split("+"))


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


def markdown(comparison: Comparison) -> str:
    """All data sets: a table a metric for F1 and AUROC, the averages of the other metrics, the two costs."""
    parts = []
    for dataset in comparison.datasets:
        for metric in MAIN:
            parts.append(f"## {TITLES[metric]}, {dataset} negatives\n\n" + _markdown_main(comparison, dataset, metric))
        parts.append(f"## Averages over relations, {dataset} negatives\n\n" + _markdown_averages(comparison, dataset))
    if len(comparison.datasets) > 1:
        parts.append("## Side by side\n\n" + _markdown_beside(comparison))
    return "\n".join([*parts, LEGEND, ""])


def _columns(comparison: Comparison, dataset: str) -> list[str]:
    from cogstage.evaluation.results import MACRO

    return [*comparison.relations(dataset), MACRO]


def _seeds(comparison: Comparison, dataset: str, method: str) -> str:
    """How many seeds a method's row rests on: the fewest and the most of its relations."""
    counts = {len(comparison.seeds(dataset, method, r)) for r in comparison.relations(dataset)} - {0}
    return "–".join(str(count) for count in sorted({min(counts), max(counts)}))


def _cell(figure: Figure | None, best: float | None, bold: str = "**{}**") -> str:
    if figure is None or not np.isfinite(figure.mean):
        return "–"
    text = f"{figure.mean:.3f}" + (f" ± {figure.sd:.3f}" if np.isfinite(figure.sd) else "")
    if best is not None and round(figure.mean, 3) == best:
        text = bold.format(text)
    return text + significance_mark(figure)


def _markdown_table(header: list[str], rows: list[list[str]]) -> str:
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def _escaped(mark_text: str) -> str:
    return mark_text.replace("*", "\\*")


def _markdown_cell(figure: Figure | None, best: float | None) -> str:
    text = _cell(figure, best)
    if figure is not None and (stars := significance_mark(figure)):
        text = text.removesuffix(stars) + _escaped(stars)
    return text


def _markdown_main(comparison: Comparison, dataset: str, metric: str) -> str:
    figures = comparison.figures(dataset, metric)
    best, columns = best_of(figures, metric), _columns(comparison, dataset)
    rows = []
    for method in comparison.methods:
        if not any((method, column) in figures for column in columns):
            continue
        seconds, processor, memory = comparison.cost(dataset, method)
        cells = [_markdown_cell(figures.get((method, column)), best.get(column)) for column in columns]
        seeds = _seeds(comparison, dataset, method)
        rows.append([title(method), seeds, *cells, f"{seconds:.1f}", f"{processor:.1f}", f"{memory:,.0f}"])
    return _markdown_table(["Method", "seeds", *columns, "time (s)", "CPU (s)", "memory (MB)"], rows)


def _markdown_averages(comparison: Comparison, dataset: str) -> str:
    from cogstage.evaluation.results import ALL_METRICS, MACRO

    columns, best = {}, {}
    for metric in ALL_METRICS:
        figures = {key: f for key, f in comparison.figures(dataset, metric).items() if key[1] == MACRO}
        if any(np.isfinite(figure.mean) for figure in figures.values()):
            columns[metric], best[metric] = figures, best_of(figures, metric).get(MACRO)
    rows = []
    for method in comparison.methods:
        if any((method, MACRO) in figures for figures in columns.values()):
            cells = []
            for metric, figures in columns.items():
                figure = figures.get((method, MACRO))
                plain = "–" if figure is None or not np.isfinite(figure.mean) else f"{figure.mean:.3f}"
                cells.append(f"**{plain}**" if figure and plain == f"{best[metric]:.3f}" else plain)
            rows.append([title(method), *cells])
    return _markdown_table(["Method", *(TITLES[metric] for metric in columns)], rows)


def _markdown_beside(comparison: Comparison) -> str:
    """The averages of F1 and AUROC, one pair of columns a data set."""
    from cogstage.evaluation.results import MACRO

    pairs = [(dataset, metric) for dataset in comparison.datasets for metric in MAIN]
    figures = {pair: comparison.figures(*pair) for pair in pairs}
    best = {pair: best_of(figures[pair], pair[1]).get(MACRO) for pair in pairs}
    rows = [
        [title(method), *(_markdown_cell(figures[pair].get((method, MACRO)), best[pair]) for pair in pairs)]
        for method in comparison.methods
    ]
    return _markdown_table(["Method", *(f"{TITLES[metric]}, {dataset}" for dataset, metric in pairs)], rows)


def latex(comparison: Comparison) -> str:
    """One ``table`` environment a data set and metric; needs the package booktabs."""
    parts = []
    for dataset in comparison.datasets:
        columns = _columns(comparison, dataset)
        for metric in MAIN:
            figures = comparison.figures(dataset, metric)
            best = best_of(figures, metric)
            names = " & ".join(["Method", "seeds", *map(_latex_text, columns), "time (s)", "CPU (s)", "memory (MB)"])
            lines = [
                "\\begin{table*}",
                "\\centering",
                f"\\begin{{tabular}}{{l{'r' * (len(columns) + 4)}}}",
                "\\toprule",
                names + " \\\\ \\midrule",
            ]
            for method in comparison.methods:
                if not any((method, column) in figures for column in columns):
                    continue
                cells = [_latex_cell(figures.get((method, column)), best.get(column)) for column in columns]
                seconds, processor, memory = comparison.cost(dataset, method)
                seeds = _seeds(comparison, dataset, method)
                row = [
                    _latex_text(title(method)),
                    _latex_text(seeds),
                    *cells,
                    f"{seconds:.1f}",
                    f"{processor:.1f}",
                    f"{memory:.0f}",
                ]
                lines.append(" & ".join(row) + " \\\\")
            caption = f"{TITLES[metric]} with {dataset} negatives. {LEGEND}"
            lines += [
                "\\bottomrule",
                "\\end{tabular}",
                f"\\caption{{{_latex_text(caption)}}}",
                f"\\label{{tab:{metric}-{dataset}}}",
                "\\end{table*}",
            ]
            parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _latex_text(text: str) -> str:
    for plain, escaped in (("\\", "\\textbackslash{}"), ("_", "\\_"), ("%", "\\%"), ("&", "\\&"), ("±", "$\\pm$")):
        text = text.replace(plain, escaped)
    return text.replace("–", "--")


def _latex_cell(figure: Figure | None, best: float | None) -> str:
    text = _cell(figure, best, "\\textbf{{{}}}").replace("±", "$\\pm$").replace("–", "--")
    if figure is not None and (stars := significance_mark(figure)):
        raised = stars.replace("†", "\\dagger").replace("*", "\\ast")
        text = text.removesuffix(stars) + f"$^{{{raised}}}$"
    return text


def csv_text(comparison: Comparison) -> str:
    """Every figure in long form: data set, method, relation, metric, mean, sd, interval, tests."""
    from cogstage.evaluation.results import ALL_METRICS, MACRO

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = ["dataset", "method", "relation", "metric", "mean", "sd", "low", "high", "seeds"]
    writer.writerow([*names, "p_vs_best_baseline", "mcnemar_p", "mark", "seconds", "cpu_seconds", "peak_mb"])
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
                writer.writerow([dataset, method, relation, metric, *numbers, figure.seeds, *tests, *cost])
    return out.getvalue()


def _number(value: float | None) -> str:
    return "" if value is None or not np.isfinite(value) else f"{value:.6g}"
