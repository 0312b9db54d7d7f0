"""Predictions with all their reasons, in batches and one at a time, beside decisions without records."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import add_ratios, measured, parser, report, run_side, side_row

RELATIONS = 5
FULL = {"terms": 8_000, "edges": 400_000, "pairs": 8_192}
QUICK = {"terms": 1_500, "edges": 30_000, "pairs": 256}
BRIEFLY = {"recognition_passes": 4, "folds": 0, "decision_epochs": 1, "decision_steps": 0}


def _model(terms: int, edges: int) -> tuple[Any, Any]:
    from benchmarks.planted import Plan, planted
    from cogstage.estimator import CogStage

    facts = min(1_500, terms // 5)
    graph, dataset = planted(Plan(terms, edges, topics=max(4, terms // 130), facts=facts, relations=RELATIONS))
    return CogStage("may_treat", **BRIEFLY).fit(graph, dataset), dataset


def _asked(dataset: Any, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    rng, facts = np.random.default_rng(0), dataset.facts("train")
    head, tail = rng.choice(facts.head, pairs), rng.choice(facts.tail, pairs)
    return head, np.where(head == tail, (tail + 1) % dataset.n_nodes, tail)


def predict(terms: int, edges: int, pairs: int) -> dict[str, Any]:
    """Prediction records, and the time of one in a warm process."""
    model, dataset = _model(terms, edges)
    head, tail = _asked(dataset, pairs)
    model.predict_batch(head, tail, "may_treat", 0)  # associations of all terms are found once
    with measured() as took:
        model.predict_batch(head, tail, "may_treat")
    single = []
    for h, t in zip(head[:100].tolist(), tail[:100].tolist(), strict=True):
        begun = time.perf_counter()
        model.predict(h, t)
        single.append(time.perf_counter() - begun)
    return {**took, "single_ms": 1000 * float(np.median(single))}


def logits(terms: int, edges: int, pairs: int) -> dict[str, Any]:
    """The same decisions without records."""
    model, dataset = _model(terms, edges)
    head, tail = _asked(dataset, pairs)
    model.predict_batch(head, tail, "may_treat", 0)
    with measured() as took:
        for at in range(0, pairs, 512):
            model.predictor.logits(head[at : at + 512], tail[at : at + 512], 0)
    return {**took, "single_ms": None}


def main(argv: list[str] | None = None) -> None:
    """Print the rates and write them down."""
    options = parser(__doc__).parse_args(argv)
    size = QUICK if options.quick else FULL
    rows = []
    for label, function in (("records with all reasons", "predict"), ("decisions, no records", "logits")):
        side = run_side(f"benchmarks.model_step:{function}", size)
        rate = size["pairs"] / side["cpu_seconds"]
        more = {"pairs per processor second": rate, "one pair ms": side["result"]["single_ms"]}
        rows.append(side_row(label, side, **more))
    add_ratios(rows, rows[-1])
    report("model_predict", rows, options.out, size)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
