"""The paper's scale: 52,804 terms, 16.2 million edges, 25,848 training pairs. Memory, and time an epoch by part.

The reference is the published form in plain torch with dense rows of PPMI for the nodes of a batch. The whole dense
matrix, which the published code holds twice, would not fit most machines; the notes say how large it would be.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.harness import add_ratios, parser, report, run_side, side_row

LIMIT_MB = 6 * 1024
PASSES = ("L_n, a pass over the nodes s", "L_r, a pass over the facts s", "L_p, a pass over the pairs s")


def published(terms: int, edges: int, topics: int, facts: int, steps: int, batch: int) -> dict[str, Any]:
    """The same passes with every tensor of the equations materialised; few steps, since each takes long."""
    import torch
    from torch.nn import functional as F

    from benchmarks._published_model import PublishedModel
    from benchmarks.planted import Plan, planted
    from cogstage.model.config import PRESETS
    from cogstage.model.sampling import Sampler

    graph, dataset = planted(Plan(terms=terms, edges=edges, topics=topics, facts=facts, relations=5))
    config, ppmi = PRESETS["paper"].replace(pair_batch=batch), graph.ppmi()
    graph.__dict__.pop("matrix", None)
    torch.manual_seed(0)
    model = PublishedModel(graph.n_nodes, 5, config.dimension)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    sampler = Sampler(dataset.for_fitting(), config, graph.n_nodes, range(5))
    candidates, rng = torch.from_numpy(sampler.candidates), np.random.default_rng(0)
    batches = sampler.pair_batches(rng)

    def step(loss: torch.Tensor) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def recall(_: int) -> None:
        nodes = rng.choice(graph.n_nodes, config.recall_batch, replace=False)
        dense = torch.from_numpy(ppmi[nodes].toarray().astype(np.float32))
        step(model.recall_loss(torch.from_numpy(nodes), dense / dense.sum(1, keepdim=True).clamp(min=1e-9)))

    def recognition(_: int) -> None:
        drawn = sampler.recognition_batch(rng)
        triples, heads, tails, na = (torch.from_numpy(x) for x in (drawn.triples, drawn.heads, drawn.tails, drawn.na))
        left, right = torch.cat([triples[:, 0], na[:, 0]]), torch.cat([triples[:, 2], na[:, 1]])
        names = torch.cat([triples[:, 1], torch.full((len(na),), model.na)])
        step(model.triple_loss(triples, heads, tails) + model.relation_loss(left, right, names))

    def pairs(number: int) -> None:
        part = batches[number]
        head, tail, label = (torch.from_numpy(x) for x in (part.head, part.tail, part.label))
        recalled = [model.associations(x, candidates, config.associations) for x in (head, tail)]
        step(F.binary_cross_entropy_with_logits(model.logits(head, tail, *recalled, 0), label))

    whole = (-(-terms // config.recall_batch), -(-sampler.n_facts // config.recognition_batch), len(batches))
    return _passes((recall, recognition, pairs), whole, min(3, steps))


def _passes(steps: Sequence[Callable[[int], Any]], whole: Sequence[int], count: int) -> dict[str, Any]:
    """Wall and processor seconds of a pass of each loss, from a few steps of it after one that does not count."""
    seconds = cpu = 0.0
    parts = {}
    for name, step, total in zip(PASSES, steps, whole, strict=True):
        step(0)
        begun, worked = time.perf_counter(), time.process_time()
        done = max(1, min(count, total - 1))
        for number in range(done):
            step(min(number + 1, total - 1))
        parts[name] = (time.perf_counter() - begun) / done * total
        seconds += parts[name]
        cpu += (time.process_time() - worked) / done * total
    return {"seconds": seconds, "cpu_seconds": cpu, "parts": parts}


def train(preset: str, terms: int, edges: int, topics: int, facts: int, steps: int, batch: int) -> dict[str, Any]:
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
    config = PRESETS[preset].replace(pair_batch=min(batch, PRESETS[preset].pair_batch))
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
    whole = (-(-terms // config.recall_batch), -(-known // config.recognition_batch), len(batches))
    done = _passes(
        (
            lambda _: trainer.recall_step(rng),
            lambda _: trainer.recognition_step(rng),
            lambda number: trainer.pair_step(batches[number]),
        ),
        whole,
        steps,
    )
    return {**done, "parts": parts | done["parts"], "training_pairs": pairs, "edges": graph.n_edges}


def main(argv: list[str] | None = None) -> None:
    """Print a pass of all losses, its parts, and the peak of memory, beside the published form."""
    from benchmarks.planted import PAPER

    options = parser(__doc__).parse_args(argv)
    size = {"terms": PAPER.terms, "edges": PAPER.edges, "topics": PAPER.topics, "facts": PAPER.facts}
    size |= {"steps": 15, "batch": 128}
    if options.quick:
        size = {"terms": 3_000, "edges": 100_000, "topics": 20, "facts": 100, "steps": 1, "batch": 24}
    notes: dict[str, Any] = {**size, "seconds": "of one pass of L_n, L_r and L_p together", "limit MB": LIMIT_MB}
    rows: list[dict[str, Any]] = []
    for label, function, more in (
        ("cogstage, preset paper", "train", {"preset": "paper"}),
        ("cogstage, preset default", "train", {"preset": "default"}),
        ("as published, plain torch", "published", {}),
    ):
        side = run_side(f"benchmarks.paper_scale_training:{function}", {**size, **more})
        rows.append(side_row(label, side, **side["result"]["parts"]))
        notes["training_pairs"] = side["result"].get("training_pairs", notes.get("training_pairs"))
    add_ratios(rows, rows[-1])
    notes["dense targets of the published code, MB"] = round(2 * size["terms"] ** 2 * 4 / 2**20)
    report("paper_scale_training", rows, options.out, notes)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
