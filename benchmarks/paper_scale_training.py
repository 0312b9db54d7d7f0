"""Training the default model on a graph of the paper's size: processor time of each stage, and the peak of memory."""

from __future__ import annotations

import time
from typing import Any

from benchmarks.harness import parser, report, run_side, side_row

SHORT = {"recognition_passes": 2, "decision_epochs": 1, "decision_steps": 0}


def train(terms: int, edges: int, topics: int, facts: int) -> dict[str, Any]:
    """A short training of five relations on a planted graph."""
    from benchmarks.planted import Plan, planted
    from cogstage.estimator import CogStage

    graph, dataset = planted(Plan(terms=terms, edges=edges, topics=topics, facts=facts, relations=5))
    begun, worked = time.perf_counter(), time.process_time()
    model = CogStage("all", **SHORT).fit(graph, dataset)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - worked
    parts: dict[str, float] = {}
    before = 0.0
    for line in model.metrics["history"]:
        name = next(key for key in ("L_n", "L_r", "L_p") if key in line)
        parts[f"{name} s"] = parts.get(f"{name} s", 0.0) + line["seconds"] - before
        before = line["seconds"]
    return {"seconds": seconds, "cpu_seconds": cpu, "parts": parts, "edges": graph.n_edges}


def main(argv: list[str] | None = None) -> None:
    """Print the time of each stage and the peak of memory."""
    from benchmarks.planted import PAPER

    options = parser(__doc__).parse_args(argv)
    size = {"terms": PAPER.terms, "edges": PAPER.edges, "topics": PAPER.topics, "facts": PAPER.facts}
    if options.quick:
        size = {"terms": 3_000, "edges": 100_000, "topics": 20, "facts": 100}
    side = run_side("benchmarks.paper_scale_training:train", size)
    rows = [side_row("default model, short training", side, **side["result"]["parts"])]
    report("paper_scale_training", rows, options.out, {**size, **SHORT})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
