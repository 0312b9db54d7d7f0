"""The whole street on the embedded data set: graph, data set, training, evaluation, rationales, one HTML report."""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.artefact import new_folder
from cogstage.baselines.resolver import FLOOR
from cogstage.data import embedded
from cogstage.evaluation.cases import Case, cases_section, choose_cases
from cogstage.evaluation.metrics import precision_recall, reliability, score
from cogstage.evaluation.significance import interval, replicate_metrics
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import Dataset, Pairs
from cogstage.progress import SILENT, Progress
from cogstage.reporting import Cell, Plot, Report, Section, Table
from cogstage.reporting.plots import draw_precision_recall, draw_reliability, plot

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.graph.cooccurrence import Graph

RELATION = "may_treat"
OURS = "cogstage"
BASELINES = (*FLOOR, "svd+distmult")
COLUMNS = ("f1", "precision", "recall", "auroc", "auprc", "mcc")
HEADINGS = {"f1": "F1", "auroc": "AUROC", "auprc": "AUPRC", "mcc": "MCC"}
CASES = 3  # true ones, and as many false ones


@dataclass(frozen=True)
class DemoOptions:
    """How the demo is run."""

    seed: int = 0
    training: Mapping[str, Any] = field(default_factory=dict)  # changes to the model's default options


@dataclass(frozen=True)
class DemoResult:
    """What the demo found, for the closing words."""

    table: Table
    figures: dict[str, dict[str, float]]  # method -> metric -> value on the test pairs
    cases: tuple[Case, ...]
    seconds: float


def run_demo(out: Path, options: DemoOptions | None = None, progress: Progress = SILENT) -> DemoResult:
    """Write the folder ``out``: graph, facts, dataset, model, predictions.jsonl and report.html.

    The folder appears when all of it is there; whatever stops the run before that leaves what was there as it was.
    """
    from cogstage.estimator import CogStage

    options = options or DemoOptions()
    begun = time.monotonic()
    graph, facts = embedded.graph(), embedded.facts()
    with new_folder(out, "demo", {"relation": RELATION, "seed": options.seed}) as folder:
        shutil.copytree(embedded.GRAPH, folder / "graph")
        shutil.copytree(embedded.FACTS, folder / "facts")
        data = build_dataset(graph, facts, folder / "dataset", seed=options.seed, progress=progress)
        model = CogStage(RELATION, seed=options.seed, **options.training)
        model.fit(graph, data, progress=progress)
        model.save(folder / "model")
        test = data.pairs(RELATION, "test")
        scores = _scores(graph, data, model, test, options.seed, progress)
        figures = {name: score(test.label, values) for name, values in scores.items()}
        table = _table(figures, scores, test)
        progress.start("Explaining held-out cases and drawing the report")
        right = (scores[OURS] >= 0.5) == (test.label == 1)
        true, false = (CASES if right[test.label == label].any() else 0 for label in (1, 0))
        cases = choose_cases(model, data, RELATION, true, false, options.seed)
        cases += _mistakes(model, test, scores[OURS])
        lines = "".join(case.prediction.to_json() + "\n" for case in cases)
        (folder / "predictions.jsonl").write_text(lines, encoding="utf-8")
        report = Report(
            "cogstage on its embedded data set",
            _summary(graph, data, model),
            [
                Section("Figures", [table]),
                Section("Plots", _plots(scores, test, model)),
                cases_section(cases),
            ],
            NOTES,
        )
        report.write(folder / "report.html")
        progress.done()
    return DemoResult(table, figures, tuple(cases), time.monotonic() - begun)


def _scores(
    graph: Graph, data: Dataset, model: CogStage, test: Pairs, seed: int, progress: Progress
) -> dict[str, np.ndarray]:
    """Probabilities of the test pairs by method; what is fitted sees no test pair."""
    from cogstage.baselines.resolver import resolve

    view = data.for_fitting()
    found = {}
    progress.start("Evaluating beside the baselines", len(BASELINES) + 1)
    for name in BASELINES:
        progress.advance(note=name)
        found[name] = resolve(name).fit(graph, view, RELATION, seed).scores(test.head, test.tail)
    found[OURS] = model.probabilities(test.head, test.tail, RELATION)
    progress.advance(note=OURS)
    progress.done()
    return found


def _table(figures: Mapping[str, Mapping[str, float]], scores: Mapping[str, np.ndarray], test: Pairs) -> Table:
    rows = []
    for name, values in figures.items():
        low, high = interval(replicate_metrics(test.head, test.label, scores[name])["f1"])
        rows.append(
            (name, f"{values['f1']:.3f}", f"{low:.3f} to {high:.3f}", *(f"{values[c]:.3f}" for c in COLUMNS[1:]))
        )
    columns = ("method", "F1", "95 % interval", *(HEADINGS.get(column, column) for column in COLUMNS[1:]))
    best = {
        column: max(row[column] for row in rows)
        for column in (1, *range(3, len(columns)))
        if columns[column] != "recall"  # which is 1 for whoever always says yes
    }
    marked = tuple(tuple(Cell(text, bold=best.get(column) == text) for column, text in enumerate(row)) for row in rows)
    caption = (
        f"{RELATION}, {len(test):,} test pairs, one degree-matched negative a positive; "
        "95 % intervals of F1 by bootstrap over heads"
    )
    return Table(caption, columns, marked)


def _mistakes(model: CogStage, test: Pairs, probability: np.ndarray) -> list[Case]:
    """The two surest mistakes: the true pair with the lowest probability and the false one with the highest."""
    found = []
    for label in (1, 0):
        rows = np.flatnonzero((test.label == label) & ((probability >= 0.5) != bool(label)))
        if len(rows):
            row = rows[np.argmax(np.abs(probability[rows] - 0.5))]
            (prediction,) = model.predict_batch(test.head[row : row + 1], test.tail[row : row + 1], RELATION)
            found.append(Case(prediction, bool(label)))
    return found


def _summary(graph: Graph, data: Dataset, model: CogStage) -> list[str]:
    counts = {split: len(data.pairs(RELATION, split)) for split in ("train", "dev", "test")}
    metrics = model.metrics
    return [
        f"The graph counts which of {graph.n_nodes:,} MeSH descriptors stand together in "
        f"{graph.made_with['records']['counted']:,} PubMed records of 1977 to 1979 ({graph.n_edges:,} pairs). "
        "The facts were read off other records of the same years, by the qualifiers that indexers gave.",
        f"The model learned {RELATION} from {counts['train']:,} training pairs (epoch {metrics['kept_epoch']} of "
        f"{metrics['epochs']} was kept, {metrics['seconds']:.0f} seconds, ended because: {metrics['stopped']}), was "
        f"calibrated on {counts['dev']:,} dev pairs, and is measured on "
        f"{counts['test']:,} pairs that nothing was fitted on.",
        "Negatives are drawn so that drugs and diseases occur in them as often as in the facts. Popularity then says "
        "next to nothing, which the row “degree” shows.",
    ]


NOTES = [
    f"The first {CASES} true and {CASES} false cases were drawn by seed among those predicted correctly; after them "
    "stand the surest mistakes, the true pair with the lowest probability and the false one with the highest.",
    "Where the intervals of two rows overlap, this data set is too small to tell them apart: the page shows how the "
    "parts work together, not which method is best.",
    "The literature is almost fifty years old and the facts are weak labels that nobody confirmed; a “no” means that "
    "no record said so. Nothing here is medical advice.",
]


def _plots(scores: Mapping[str, np.ndarray], test: Pairs, model: CogStage) -> list[Plot]:
    curves = {}
    for name, values in scores.items():
        precision, recall = precision_recall(test.label, values)
        curves[name] = (recall, precision)
    bins = {}
    for name, values in ((OURS, scores[OURS]),):
        curve = reliability(test.label, values, bins=10)
        bins[name] = (curve["probability"], curve["positives"])
    plots = [
        plot(
            "Precision and recall on the test pairs, over all thresholds.",
            lambda axes: draw_precision_recall(axes, curves, strong=OURS),
        ),
        plot(
            "Reliability on the test pairs: how often the relation holds among pairs with a given probability.",
            lambda axes: draw_reliability(axes, bins),
        ),
    ]
    history = [line for line in model.metrics["history"] if line["stage"] == "epoch"]
    if len(history) > 1:
        caption = "The course of training: dev AUROC after each epoch; the marked epoch was kept."
        plots.append(plot(caption, lambda axes: _draw_course(axes, history, model.metrics["kept_epoch"])))
    return plots


def _draw_course(axes: Any, history: Sequence[Mapping[str, Any]], best: int) -> None:
    epochs, f1 = [line["epoch"] for line in history], [line["dev_auroc"] for line in history]
    axes.plot(epochs, f1, marker="o", markersize=3)
    axes.plot([best], [f1[epochs.index(best)]], marker="o", markersize=9, fillstyle="none", color="black")
    axes.set(xlabel="epoch", ylabel="dev AUROC")
