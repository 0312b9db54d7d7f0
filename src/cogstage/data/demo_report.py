"""The demo's tables, plots and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.data.demo import OURS, Scores, TextbookAnswer, right_by_kind
from cogstage.data.embedded import KINDS
from cogstage.evaluation.cases import Case, cases_section
from cogstage.evaluation.metrics import precision_recall, reliability
from cogstage.evaluation.population_figures import by_relation_table, reliability_table, which_by_relation_table
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.verdict import WORDS
from cogstage.relations import phrase
from cogstage.reporting import Cell, Plot, Report, Section, Table, figure_text
from cogstage.reporting.plots import Curve, draw_precision_recall, draw_reliability, plot

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.graph.cooccurrence import Graph

MEASURES = {"f1": "F1", "auroc": "AUROC"}
NOTES = (
    "For each relation, the first case is the true textbook pair whose rarer term is counted most often. The most "
    "confident mistakes among the textbook pairs follow. No case was chosen by hand.",
    "Test negatives are sampled, not confirmed: a pair labelled false may be true but missing from the sources.",
    "Half of the literature is almost fifty years old, many facts are weak labels, and nobody checked them one by "
    "one. Nothing here is medical advice.",
)


def demo_report(
    graph: Graph,
    data: Dataset,
    model: CogStage,
    scores: Scores,
    tables: Sequence[Table],
    answers: Sequence[TextbookAnswer],
    cases: Sequence[Case],
    related: Mapping[str, Any],
) -> Report:
    """The report: data, training, figures and cases; ``related`` are our figures on the populations."""
    *tests, textbook = tables
    tests += [by_relation_table(related), which_by_relation_table(related), reliability_table(related)]
    sections = [
        Section("Textbook pairs", [textbook, mistakes_table(answers)]),
        Section("Test pairs", [*tests, *plots(scores[OURS], data)]),
        cases_section(cases),
    ]
    return Report("cogstage on its embedded data set", _summary(graph, data, model, answers), sections, NOTES)


def _summary(graph: Graph, data: Dataset, model: CogStage, answers: Sequence[TextbookAnswer]) -> list[str]:
    records = graph.made_with["records"]
    sizes = {s: sum(len(data.pairs(r, s)) for r in model.relations) for s in ("train", "dev", "test")}
    kinds = {kind: f"{n['right']} of {n['pairs']}" for kind, n in right_by_kind(answers).items()}
    return [
        f"The graph counts how often {graph.n_nodes:,} MeSH concepts co-occur in {records['counted']:,} PubMed "
        f"records of 1977 to 1979 and 2021 ({graph.n_edges:,} pairs). Facts come from public tables, from a list of "
        "contraindications, and from the qualifiers of records that were not counted.",
        f"One model was trained for {len(model.relations)} relations on {sizes['train']:,} training pairs, calibrated "
        f"on {sizes['dev']:,} dev pairs and evaluated on {sizes['test']:,} test pairs.",
        f"Textbook statements answered correctly: {kinds['true']} true ones, {kinds['unrelated']} false ones between "
        f"unrelated terms, and {kinds['wrong relation']} false ones whose terms hold another relation. No fact between "
        "the two terms of a textbook pair was used in training, whatever its relation.",
        "Heads and tails occur in negatives as often as in facts, so popularity alone is of little use, as the row "
        "“degree” shows.",
    ]


def metric_tables(figures: Mapping[str, Mapping[str, Mapping[str, float]]], data: Dataset) -> list[Table]:
    """Methods by relations, one table for each measure, the best of each column bold."""
    relations = list(figures[OURS])
    pairs = ", ".join(f"{relation} {len(data.pairs(relation, 'test')):,}" for relation in relations)
    tables = []
    for measure, heading in MEASURES.items():
        values = {name: [by_relation[r][measure] for r in relations] for name, by_relation in figures.items()}
        values = {name: [*row, float(np.mean(row))] for name, row in values.items()}
        best = np.nanmax(np.array(list(values.values())), axis=0)
        rows = []
        for name, row in values.items():
            cells: list[str | Cell] = [name]
            cells += [Cell(figure_text(value), bold=value == top) for value, top in zip(row, best, strict=True)]
            rows.append(tuple(cells))
        caption = f"{heading} on the test pairs, one degree-matched negative per positive"
        tables.append(Table(caption, ("method", *relations, "mean"), tuple(rows), note=f"Test pairs: {pairs}."))
    return tables


def textbook_table(answers: Sequence[TextbookAnswer]) -> Table:
    """How many textbook pairs are answered right, by relation and kind."""
    rows = []
    for relation in [*dict.fromkeys(answer.pair.relation for answer in answers), None]:
        asked = [answer for answer in answers if relation in (None, answer.pair.relation)]
        cells = [_share([a for a in asked if a.pair.kind == kind]) for kind in KINDS]
        rows.append((relation or "all", *cells, _share(asked), f"{_right(asked) / len(asked):.0%}"))
    columns = ("relation", *KINDS, "all", "right")
    note = (
        "A true pair is right if the verdict is “likely”, a false one if it is not. Unrelated: nothing relates the two "
        "terms. Wrong relation: another relation holds between them."
    )
    return Table("Textbook pairs answered correctly, all held out of training", columns, tuple(rows), note=note)


def _right(answers: Sequence[TextbookAnswer]) -> int:
    return sum(answer.right for answer in answers)


def _share(answers: Sequence[TextbookAnswer]) -> str:
    return f"{_right(answers)} of {len(answers)}"


def mistakes_table(answers: Sequence[TextbookAnswer]) -> Table:
    """The textbook pairs answered wrong, the surest mistakes first."""
    wrong = sorted((a for a in answers if not a.right), key=lambda a: -abs(a.probability - 0.5))
    rows = tuple(
        (
            f"{a.pair.head} {phrase(a.pair.relation)} {a.pair.tail}",
            "yes" if a.pair.label else "no",
            a.pair.source,
            f"{a.probability:.2f}",
            WORDS[a.verdict],
        )
        for a in wrong
    )
    columns = ("pair", "answer", "source", "predicted", "verdict")
    return Table("Textbook pairs answered incorrectly", columns, rows, left=3)


def plots(scores: Mapping[str, np.ndarray], data: Dataset) -> list[Plot]:
    """Precision and recall of each relation, and reliability over all of them."""
    curves: dict[str, Curve] = {}
    labels = {relation: data.pairs(relation, "test").label for relation in scores}
    for relation, values in scores.items():
        precision, recall = precision_recall(labels[relation], values)
        curves[relation] = (recall, precision)
    pooled = reliability(np.concatenate(list(labels.values())), np.concatenate(list(scores.values())), bins=10)
    calibrated = {OURS: (pooled["probability"], pooled["positives"])}
    over = "Precision and recall on the test pairs, over all thresholds."
    sure = "Reliability over all relations: how often the relation holds among pairs with a given probability."
    return [
        plot(over, lambda axes: draw_precision_recall(axes, curves)),
        plot(sure, lambda axes: draw_reliability(axes, calibrated)),
    ]
