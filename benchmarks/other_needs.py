"""The default model beside its own recognition where data are unusual: few facts, one relation, no types.

Figures are test AUROC, macro-averaged over relations, on planted data.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from benchmarks.harness import parser, report

SMALL = {"dimension": 32, "tower": 32, "associations": 16}


def _auroc(model: Any, data: Any, split: str) -> tuple[float, float]:
    from cogstage.training.measures import dev_measures

    ours, alone = [], []
    for relation in model.relations:
        pairs = data.pairs(relation, split)
        ours.append(dev_measures(model.logits(pairs.head, pairs.tail, relation), pairs.label)["auroc"])
        alone.append(dev_measures(model.recognised(pairs.head, pairs.tail, relation), pairs.label)["auroc"])
    return float(np.mean(ours)), float(np.mean(alone))


def _row(need: str, graph: Any, data: Any, seeds: int, options: dict[str, Any], split: str) -> dict[str, Any]:
    from cogstage.estimator import CogStage

    relation = options.pop("relation", "all")
    found = [_auroc(CogStage(relation, seed=seed, **options).fit(graph, data), data, split) for seed in range(seeds)]
    ours, alone = np.mean(found, axis=0)
    return {"need": need, "decision": float(ours), "recognition alone": float(alone), "difference": float(ours - alone)}


def main(argv: list[str] | None = None) -> None:
    """Print a row per need."""
    from benchmarks.planted import Plan, planted

    asked = parser(__doc__).parse_args(argv)
    seeds, base = (1, Plan(facts=300)) if asked.quick else (3, Plan(terms=900, edges=40_000, topics=9, facts=900))
    rows = []

    def add(need: str, plan: Plan, strip_types: bool = False, **options: Any) -> None:
        graph, data = planted(plan)
        if strip_types:
            bare = replace(graph.vocabulary, type=("",) * len(graph.vocabulary))
            graph = replace(graph, vocabulary=bare)
        rows.append(_row(need, graph, data, seeds, {**SMALL, **options}, "test"))

    add("as usual, two relations", base)
    add("one relation alone", base, relation="may_treat")
    for few in (70, 280):
        add(f"a relation with {round(0.7 * few)} training facts", replace(base, facts=few))
    if not asked.quick:
        add("five relations", replace(base, relations=5))
    add("a graph without types", base, strip_types=True)
    report("other_needs", rows, asked.out, {"seeds": seeds, **vars(base)})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
