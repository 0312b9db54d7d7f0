"""The default model beside its own recognition on unusual data: few facts, one or twenty relations, unseen terms.

Each need is a data set made from the embedded one. Figures are AUROC on dev pairs, averaged over relations and seeds.
"""

from __future__ import annotations

import tempfile
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import parser, report

QUICK = {"recognition_passes": 1, "decision_steps": 20, "folds": 2}


def aurocs(model: Any, data: Any) -> tuple[float, float]:
    """Macro AUROC on dev pairs of the decision, and of recognition asked about the pair itself."""
    from cogstage.statistics import auroc

    found = []
    for relation in model.relations:
        pairs = data.pairs(relation, "dev")
        scores = (of(pairs.head, pairs.tail, relation) for of in (model.logits, model.recognised))
        found.append([auroc(pairs.label, score) for score in scores])
    decision, recognition = np.mean(found, axis=0)
    return float(decision), float(recognition)


def split_relations(facts: Any, parts: int) -> Any:
    """Each relation as several: which part a fact belongs to depends on its head."""
    from cogstage.knowledge.facts import Facts

    rows = zip(facts.head, facts.relation, facts.tail, facts.source, strict=True)
    return Facts.from_statements(
        [(h, f"{r}_{zlib.crc32(h.encode()) % parts + 1}", t, source) for h, r, t, source in rows]
    )


def main(argv: list[str] | None = None) -> None:
    """Print a row per need."""
    from cogstage.data import embedded
    from cogstage.estimator import CogStage
    from cogstage.knowledge.build import build_dataset

    options = parser(__doc__)
    options.add_argument("--seeds", type=int, default=3, help="number of seeds")
    asked = options.parse_args(argv)
    seeds, training = (1, QUICK) if asked.quick else (asked.seeds, {})
    graph, facts = embedded.graph(), embedded.facts()
    untyped = replace(graph, vocabulary=replace(graph.vocabulary, type=("",) * len(graph.vocabulary)))
    needs: dict[str, tuple[Any, Any, dict[str, Any]]] = {
        "five relations, as they are": (graph, facts, {}),
        "one relation": (graph, facts, {"relations": ("may_treat",)}),
        "two relations": (graph, facts, {"relations": ("may_treat", "causes")}),
        "twenty relations": (graph, split_relations(facts, 4), {"minimum": 20}),
        "50 training facts per relation": (graph, facts, {"cap": 72, "minimum": 20}),
        "200 training facts per relation": (graph, facts, {"cap": 286}),
        "heads unseen in training": (graph, facts, {"split": "cold-head"}),
        "tails unseen in training": (graph, facts, {"split": "cold-tail"}),
        "no semantic types": (untyped, facts, {}),
    }
    rows = []
    for need, (counted, known, changes) in needs.items():
        with tempfile.TemporaryDirectory() as folder:
            data = build_dataset(counted, known, Path(folder) / "data", **changes)
            models = (CogStage("all", seed=seed, **training).fit(counted, data) for seed in range(seeds))
            found = np.array([aurocs(model, data) for model in models])
        decision, recognition = found.mean(axis=0)
        rows.append(
            {
                "need": need,
                "relations": len(data.relations),
                "training facts": len(data.facts("train")),
                "decision": round(float(decision), 4),
                "recognition alone": round(float(recognition), 4),
                "difference": round(float(decision - recognition), 4),
            }
        )
        print(rows[-1], flush=True)
    report("other_needs", rows, asked.out, {"seeds": seeds})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
