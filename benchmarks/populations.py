"""Facts against three populations of negatives, and which relation of a pair is likeliest, for trained models.

    python -m benchmarks populations --graph GRAPH --dataset DATASET --model FOLDER... --split dev

The first table has the macro averages over relations of every model, the others the figures by relation. Test pairs are
scored only with ``--split test``.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import parser, report
from cogstage.evaluation.populations import (
    KIND_TITLES,
    KINDS,
    WHICH_TITLES,
    join_logits,
    macro_aurocs,
    population_aurocs,
    populations,
    score_populations,
    which_relation,
)

SMALL = {"dimension": 16, "associations": 6, "tower": 16, "recall_passes": 1, "recognition_passes": 2, "folds": 0}


def main(argv: list[str] | None = None) -> None:
    """Print a row per model, and a row per relation averaged over models."""
    options = parser(__doc__)
    options.add_argument("--graph", type=Path, help="Graph folder; planted data by default.")
    options.add_argument("--dataset", type=Path, help="Data set folder.")
    options.add_argument("--model", type=Path, nargs="+", default=[], help="Model folders.")
    options.add_argument("--split", choices=("dev", "test"), default="dev")
    asked = options.parse_args(argv)
    graph, data, models = inputs(asked)
    begun = time.perf_counter()
    pairs = populations(graph, data, asked.split)
    rows, by_relation = [], []
    for name, model in models:
        logits = join_logits([score_populations(model.logits, pairs, relation) for relation in model.relations])
        aurocs = population_aurocs(logits)
        which = which_relation(pairs.related, pairs.relations, logits.related)
        averages = {KIND_TITLES.get(kind, kind): value for kind, value in macro_aurocs(aurocs).items()}
        rows.append({"model": name, **averages, **{WHICH_TITLES[k]: value for k, value in which.shares().items()}})
        by_relation.append({r: {**aurocs[r], **which.by_relation[r]} for r in model.relations})
    if len(rows) > 1:
        columns = [column for column in rows[0] if column != "model"]
        rows.append({"model": "mean", **{c: float(np.mean([row[c] for row in rows])) for c in columns}})
    table = [
        {"relation": relation, "facts": len(pairs.facts[relation][0]), **_averages(by_relation, relation)}
        for relation in by_relation[0]
    ]
    notes = {"split": asked.split, "pairs with several possible relations": len(pairs.related)}
    report("populations_by_relation", table, asked.out, notes)
    report("populations", rows, asked.out, {**notes, "seconds": time.perf_counter() - begun})


def _averages(models: list[dict[str, dict[str, float]]], relation: str) -> dict[str, float]:
    names = {**{kind: KIND_TITLES[kind] for kind in KINDS}, "untrue": "untrue pairs"}
    names |= {name: WHICH_TITLES[name] for name in ("untrue_yes", "untrue_likely")}
    return {title: float(np.mean([model[relation][name] for model in models])) for name, title in names.items()}


def inputs(asked: Any) -> tuple[Any, Any, list[tuple[str, Any]]]:
    """The graph, the data set and the named models; small planted ones without ``--graph``."""
    from cogstage.estimator import CogStage

    if asked.graph is not None:
        from cogstage.graph.cooccurrence import Graph
        from cogstage.knowledge.dataset import Dataset

        models = [(str(folder), CogStage.load(folder)) for folder in asked.model]
        return Graph.load(asked.graph), Dataset.load(asked.dataset), models
    from benchmarks.planted import Plan, planted

    graph, data = planted(Plan(facts=300))
    return graph, data, [("planted", CogStage(**SMALL).fit(graph, data))]


if __name__ == "__main__":
    main()
