"""Figures over the three populations of negatives with intervals, and their tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cogstage.evaluation.metrics import auroc, ece_of, reliability
from cogstage.evaluation.populations import (
    KIND_TITLES,
    KINDS,
    WHICH_TITLES,
    PopulationLogits,
    Populations,
    macro_aurocs,
    which_relation,
)
from cogstage.reporting import Cell, Table, figure_text, interval_text
from cogstage.statistics import REPLICATES, interval, replicate, sigmoid

BINS = 10
MEAN = "mean"
NOTE = (
    "Facts against three kinds of negatives: pairs whose terms occur in facts as often, pairs that co-occur, and pairs "
    "that hold another relation and whose types fit. The last column is the mean of the three."
)
WHICH_NOTE = (
    "Pairs that hold a fact and have several possible relations by their types. Known facts are training facts alone. "
    "“Called likely” is the verdict: of two opposite relations only the likelier is called likely."
)


def kind_auroc(pairs: Populations, logits: PopulationLogits, kind: str, relation: str) -> tuple[float, np.ndarray]:
    """AUROC of a relation's facts against negatives of a kind, and its bootstrap values over whole heads."""
    head, _, label = pairs.pairs(kind, relation)
    score = np.concatenate([logits.facts[relation], logits.negatives[kind, relation]])
    value = float(auroc(label, score)[0])
    if np.isnan(value):
        return value, np.full(REPLICATES, np.nan)
    return value, replicate(lambda weights: {"auroc": auroc(label, score, weights)}, head)["auroc"]


def population_figures(pairs: Populations, logits: PopulationLogits) -> dict[str, Any]:
    """AUROC by relation and kind with intervals, the averages, the which-relation table and reliability by kind."""
    relations: dict[str, dict[str, Any]] = {}
    for relation in logits.facts:
        relations[relation] = {"facts": len(logits.facts[relation])}
        for kind in KINDS:
            value, replicates = kind_auroc(pairs, logits, kind, relation)
            negatives = len(logits.negatives[kind, relation])
            relations[relation][kind] = {
                "value": value,
                "interval": list(interval(replicates)),
                "negatives": negatives,
            }
    values = {name: {kind: row[kind]["value"] for kind in KINDS} for name, row in relations.items()}
    return {
        "split": pairs.split,
        "relations": relations,
        "average": macro_aurocs(values),
        "which_relation": which_relation(pairs.related, pairs.relations, logits.related).to_dict(),
        "reliability": {kind: kind_reliability(logits, kind) for kind in KINDS},
    }


def kind_reliability(logits: PopulationLogits, kind: str) -> dict[str, Any]:
    """ECE and reliability bins over all relations; facts and negatives of each relation weigh the same."""
    label, probability, weight = [], [], []
    for relation, facts in logits.facts.items():
        negatives = logits.negatives[kind, relation]
        if len(facts) and len(negatives):
            label.append(np.repeat([1.0, 0.0], [len(facts), len(negatives)]))
            probability.append(sigmoid(np.concatenate([facts, negatives])))
            weight.append(np.repeat([1.0, len(facts) / len(negatives)], [len(facts), len(negatives)]))
    if not label:
        return {"ece": float("nan"), "bins": []}
    y, p, w = (np.concatenate(parts) for parts in (label, probability, weight))
    bins = reliability(y, p, BINS, w)
    rows = zip(*(bins[name].tolist() for name in ("probability", "positives", "pairs")), strict=True)
    return {
        "ece": ece_of(y, p, w),
        "bins": [{"predicted": mean, "true": share, "pairs": int(count)} for mean, share, count in rows],
    }


def populations_table(methods: Mapping[str, Mapping[str, Any]], split: str) -> Table:
    """Average AUROC of each method on the three populations, the best of each column bold."""
    columns = (*KINDS, MEAN)
    rounded = {name: [round(float(average[kind]), 3) for kind in columns] for name, average in methods.items()}
    best = np.nanmax(np.array(list(rounded.values())), axis=0)
    rows: list[tuple[str | Cell, ...]] = []
    for name, row in rounded.items():
        cells = (Cell(figure_text(value), bold=value == top) for value, top in zip(row, best, strict=True))
        rows.append((name, *cells))
    header = ("method", *(KIND_TITLES[kind] for kind in KINDS), "mean of the three")
    return Table(
        f"AUROC against three kinds of negatives, {split} pairs, mean over relations", header, tuple(rows), note=NOTE
    )


def by_relation_table(figures: Mapping[str, Any]) -> Table:
    """AUROC of one method by relation and kind, with intervals."""
    rows = tuple(
        (
            relation,
            f"{row['facts']:,}",
            *(interval_text(row[kind]["value"], *row[kind]["interval"]) for kind in KINDS),
        )
        for relation, row in figures["relations"].items()
    )
    header = ("relation", "facts", *(KIND_TITLES[kind] for kind in KINDS))
    caption = f"AUROC against three kinds of negatives, {figures['split']} pairs, with 95 % intervals"
    return Table(caption, header, rows, note=NOTE)


def which_table(methods: Mapping[str, Mapping[str, Any]], split: str) -> Table:
    """The which-relation shares of each method."""
    rows = tuple((name, *(figure_text(shares[key]) for key in WHICH_TITLES)) for name, shares in methods.items())
    return Table(f"Which relation, {split} pairs", ("method", *WHICH_TITLES.values()), rows, note=WHICH_NOTE)


def which_by_relation_table(figures: Mapping[str, Any]) -> Table:
    """Untrue relations of related pairs by relation: how many are said yes, and called likely."""
    which = figures["which_relation"]
    rows = tuple(
        (name, f"{row['untrue']:,}", figure_text(row["untrue_yes"]), figure_text(row["untrue_likely"]))
        for name, row in which["relations"].items()
    )
    caption = f"Untrue relations of {which['pairs']:,} pairs that hold another, {figures['split']} pairs"
    return Table(caption, ("relation", "untrue", "at least .5", "called likely"), rows)


def reliability_table(figures: Mapping[str, Any]) -> Table:
    """Share of facts among pairs of a predicted probability, by kind of negatives."""
    found = figures["reliability"]
    edges = [(number / BINS, (number + 1) / BINS) for number in range(BINS)]
    rows = []
    for low, high in edges:
        cells = []
        for kind in KINDS:
            bins = [row for row in found[kind]["bins"] if low <= min(row["predicted"], 1 - 1e-12) < high]
            cells += [figure_text(bins[0]["true"] if bins else None), f"{bins[0]['pairs']:,}" if bins else "0"]
        rows.append((f"{low:.1f} to {high:.1f}", *cells))
    errors = [value for kind in KINDS for value in (figure_text(found[kind]["ece"]), "")]
    rows.append(("ECE", *errors))
    header = ("probability", *(text for kind in KINDS for text in (f"true, {KIND_TITLES[kind]}", "pairs")))
    caption = f"Reliability against three kinds of negatives, {figures['split']} pairs of all relations"
    note = "Share of facts among pairs with this probability; facts and negatives of a relation weigh the same."
    return Table(caption, header, tuple(rows), note=note)
