"""Processor time of training with threads that sleep and threads that spin, on an idle and on a busy machine.

On a busy machine threads that spin while they wait burn processor time without doing work. The default is one thread
for training, and threads that sleep elsewhere.
"""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import nullcontext
from typing import Any

from benchmarks.harness import add_ratios, measured, parser, report, run_side, side_row

SETTINGS = {
    "one thread (default)": {},
    "all threads, asleep while waiting": {
        "OMP_WAIT_POLICY": "PASSIVE",
        "GOMP_SPINCOUNT": "0",
        "OPENBLAS_THREAD_TIMEOUT": "4",
    },
    "all threads, spinning": {
        "OMP_WAIT_POLICY": "ACTIVE",
        "GOMP_SPINCOUNT": "infinite",
        "OPENBLAS_THREAD_TIMEOUT": "26",  # what OpenBLAS does by itself
    },
}


def steps(count: int, terms: int, edges: int, limited: bool) -> dict[str, Any]:
    """Some iterations of the published model, whose steps are the ones that threads help most."""
    import numpy as np
    import torch

    from benchmarks.planted import Plan, planted
    from cogstage.model.paper import PaperConfig
    from cogstage.training.distributed import Processes
    from cogstage.training.fitting import one_thread
    from cogstage.training.paper import PaperTraining

    graph, dataset = planted(Plan(terms=terms, edges=edges, topics=max(4, terms // 130), facts=400, relations=5))
    torch.manual_seed(0)
    training = PaperTraining(PaperConfig(), graph.ppmi(), dataset.for_fitting(), "may_treat")
    batches = training.batches.pairs(np.random.default_rng(0))
    with one_thread() if limited else nullcontext():
        training.pair_step(batches[0], Processes())
        with measured() as took:
            for number in range(count):
                training.pair_step(batches[number % len(batches)], Processes())
    return dict(took)


def start(count: int, terms: int, edges: int, limited: bool) -> dict[str, Any]:
    """The start of a training of the default model: an SVD for the vectors of recall, and one per fold for facts."""
    from benchmarks.planted import Plan, planted
    from cogstage.model.config import Config
    from cogstage.training.default import DefaultTraining
    from cogstage.training.fitting import one_thread

    graph, dataset = planted(Plan(terms=terms, edges=edges, topics=max(4, terms // 130), facts=400, relations=5))
    with one_thread() if limited else nullcontext():
        DefaultTraining(graph, dataset.for_fitting(), [0], Config(), 0)
        with measured() as took:
            for _ in range(count // 2):
                DefaultTraining(graph, dataset.for_fitting(), [0], Config(), 0)
    return dict(took)


WORK = {"steps of L_p, published model": steps, "start of the default model": start}


def main(argv: list[str] | None = None) -> None:
    """Print processor seconds for every setting, idle and busy."""
    options = parser(__doc__).parse_args(argv)
    size = (
        {"count": 2, "terms": 800, "edges": 10_000} if options.quick else {"count": 4, "terms": 4_000, "edges": 150_000}
    )
    rows = []
    for busy in (False, True):
        spinners = [
            subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range((os.cpu_count() or 1) * busy)
        ]
        try:
            for work, function in WORK.items():
                alike = []
                for number, (label, environment) in enumerate(SETTINGS.items()):
                    asked = {**size, "limited": number == 0}
                    side = run_side(f"benchmarks.threads:{function.__name__}", asked, environment)
                    alike.append({"work": work, "machine": "busy" if busy else "idle", **side_row(label, side)})
                add_ratios(alike, alike[0])
                rows += alike
        finally:
            for spinner in spinners:
                spinner.kill()
                spinner.wait()
    report("threads", rows, options.out, size)


if __name__ == "__main__":
    main(sys.argv[1:])
