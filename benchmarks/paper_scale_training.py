"""The paper's scale: 52,804 terms, 16.2 million edges, 25,848 training pairs. Memory, and time an epoch by part."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from benchmarks.harness import parser, report, run_side

LIMIT_MB = 6 * 1024


def train(preset: str, terms: int, edges: int, topics: int, facts: int, steps: int) -> dict[str, Any]:
    """Set up everything, run ``steps`` steps of each loss, and say what an epoch of them takes."""
    import torch

    from benchmarks.planted import Plan, planted
    from cogstage.model.cogstage import Network
    from cogstage.model.config import PRESETS
    from cogstage.model.recall import RecallTargets, svd_start
    from cogstage.model.training import Trainer

    parts: dict[str, float] = {}

    def timed(name: str, begun: float) -> None:
        parts[name] = time.perf_counter() - begun

    begun = time.perf_counter()
    graph, dataset = planted(Plan(terms=terms, edges=edges, topics=topics, facts=facts, relations=5))
    timed("generate the graph s", begun)
    begun = time.perf_counter()
    ppmi = graph.ppmi()
    graph.__dict__.pop("matrix", None)
    timed("PPMI s", begun)
    config = PRESETS[preset]
    torch.manual_seed(0)
    network = Network(config, graph.n_nodes, 5, range(5), config.folds)
    if config.warm_start == "svd":
        begun = time.perf_counter()
        svd_start(network.recall, ppmi, 0)
        timed("SVD start s", begun)
    targets = RecallTargets.of_ppmi(ppmi)
    del ppmi
    trainer = Trainer(network, targets, dataset.for_fitting(), 0, types=graph.vocabulary.type)
    rng = np.random.default_rng(0)
    network.train()
    begun = time.perf_counter()
    trainer.refresh()
    timed("recall the associations s", begun)
    pairs, known = len(trainer.sampler.train), trainer.sampler.n_facts
    batches = trainer.sampler.pair_batches(rng)
    for name, step, whole in (
        ("L_n, a pass over the nodes s", lambda _: trainer.recall_step(rng), -(-terms // config.recall_batch)),
        (
            "L_r, a pass over the facts s",
            lambda _: trainer.recognition_step(rng),
            -(-known // config.recognition_batch),
        ),
        ("L_p, a pass over the pairs s", lambda n: trainer.pair_step(batches[n]), len(batches)),
    ):
        step(0)
        begun = time.perf_counter()
        count = min(steps, whole, len(batches) - 1)
        for number in range(count):
            step(number + 1)
        parts[name] = (time.perf_counter() - begun) / count * whole
    return {"parts": parts, "training_pairs": pairs, "edges": graph.n_edges}


def main(argv: list[str]) -> None:
    """Print the parts and the peak of memory of both presets."""
    from benchmarks.planted import PAPER

    options = parser(__doc__).parse_args(argv)
    size = {"terms": PAPER.terms, "edges": PAPER.edges, "topics": PAPER.topics, "facts": PAPER.facts, "steps": 15}
    if options.quick:
        size = {"terms": 3_000, "edges": 100_000, "topics": 20, "facts": 400, "steps": 3}
    rows, notes = [], dict(size)
    for preset in ("paper", "default"):
        side = run_side("benchmarks.paper_scale_training:train", {"preset": preset, **size})
        rows.append(
            {"preset": preset, "peak MB": side["peak_mb"], "wanted at most": LIMIT_MB, **side["result"]["parts"]}
        )
        notes["training_pairs"] = side["result"]["training_pairs"]
    notes["dense targets of the published code, MB"] = round(2 * size["terms"] ** 2 * 4 / 2**20)
    report("paper_scale_training", rows, options.out, notes)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
