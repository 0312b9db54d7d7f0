"""A step of L_p and an iteration of the published model: its fast form against its plain form, on one thread.

Both train on the same batches; ``model/paper.py`` is the reference.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import ONE_THREAD, add_ratios, cpu_seconds, measured, parser, report, run_side, side_row

RELATIONS = 5  # 11 with inverses and NA
FULL = {"terms": 8_000, "edges": 400_000, "batch": 128, "associations": 32, "repeats": 5}
QUICK = {"terms": 1_500, "edges": 30_000, "batch": 48, "associations": 20, "repeats": 2}
PARTS = ("L_p step", "iteration")


def _data(terms: int, edges: int) -> Any:
    from benchmarks.planted import Plan, planted

    topics, facts = max(4, terms // 130), min(1_500, terms // 5)
    return planted(Plan(terms=terms, edges=edges, topics=topics, facts=facts, relations=RELATIONS))


def nothing(terms: int, edges: int) -> None:
    """A process that has loaded what both sides load, and does nothing."""
    import cogstage.training.paper  # noqa: F401

    _data(terms, edges)


def train(
    form: str, what: str, terms: int, edges: int, batch: int, associations: int, repeats: int
) -> dict[str, float]:
    """Median wall and processor seconds of steps of one form, "fast" or "plain"."""
    import torch

    from cogstage.model.fast.paper_network import FastPaperNetwork
    from cogstage.model.paper import PaperConfig, PaperNetwork
    from cogstage.training.paper import PaperTraining, Processes

    graph, dataset = _data(terms, edges)
    config = PaperConfig(pair_batch=batch, associations=associations, recall_batch=128, recognition_batch=128)
    facts = dataset.facts("train")
    triples = torch.from_numpy(np.stack([facts.head, facts.relation, facts.tail], 1).astype(np.int64))
    torch.manual_seed(0)
    kind = {"fast": FastPaperNetwork, "plain": PaperNetwork}[form]
    network = kind(config, graph.n_nodes, RELATIONS, 0, triples)
    training = PaperTraining(config, graph.ppmi(), dataset.for_fitting(), "may_treat", network)
    rng, alone = np.random.default_rng(0), Processes()
    nodes, named, pairs = (
        list(draw(rng)) for draw in (training.batches.recall, training.batches.recognition, training.batches.pairs)
    )
    whole = [number for number, part in enumerate(pairs) if len(part.head) == batch]

    def step(number: int) -> None:
        at = whole[number % len(whole)]
        if what == "iteration":
            training.recall_step(nodes[at], alone)
            training.recognition_step(named[at], alone)
        training.pair_step(pairs[at], alone)

    return _median(step, repeats)


def predict(form: str, terms: int, edges: int, pairs: int, associations: int) -> dict[str, float]:
    """Probabilities of pairs in batches of 128, with everything that their reasons need."""
    import torch

    from cogstage.model.fast.paper_network import FastPaperNetwork
    from cogstage.model.paper import PaperConfig, PaperNetwork

    _, dataset = _data(terms, edges)
    facts = dataset.facts("train")
    triples = torch.from_numpy(np.stack([facts.head, facts.relation, facts.tail], 1).astype(np.int64))
    torch.manual_seed(0)
    kind = {"fast": FastPaperNetwork, "plain": PaperNetwork}[form]
    network = kind(PaperConfig(associations=associations), terms, RELATIONS, 0, triples).eval()
    rng = np.random.default_rng(0)
    head, tail = (torch.from_numpy(rng.choice(ids, pairs).astype(np.int64)) for ids in (facts.head, facts.tail))
    with torch.inference_mode():
        network(head[:16], tail[:16])  # compiles
        with measured() as took:
            for begin in range(0, pairs, 128):
                network(head[begin : begin + 128], tail[begin : begin + 128])
    return took


def _median(step: Callable[[int], None], repeats: int) -> dict[str, float]:
    step(0)  # compiles and allocates
    taken = []
    for number in range(1, repeats + 1):
        begun, worked = time.perf_counter(), cpu_seconds()
        step(number)
        taken.append((time.perf_counter() - begun, cpu_seconds() - worked))
    seconds, cpu = np.median(taken, axis=0).tolist()
    return {"seconds": seconds, "cpu_seconds": cpu}


def main(argv: list[str] | None = None) -> None:
    """Print times, ratios and memory, and write them down."""
    options = parser(__doc__).parse_args(argv)
    size = QUICK if options.quick else FULL
    data = {"terms": size["terms"], "edges": size["edges"]}
    loaded = run_side("benchmarks.paper_step:nothing", data, ONE_THREAD)["peak_mb"]
    rows: list[dict[str, Any]] = []
    for what in PARTS:
        alike = []
        for form in ("fast", "plain"):
            side = run_side("benchmarks.paper_step:train", {"form": form, "what": what, **size}, ONE_THREAD)
            alike.append({"what": what, **side_row(form, side), "MB above loaded": side["peak_mb"] - loaded})
        add_ratios(alike, alike[-1])
        rows += alike
    asked, alike = 128 if options.quick else 1_024, []
    for form in ("fast", "plain"):
        more = {"form": form, "pairs": asked, "associations": size["associations"]}
        side = run_side("benchmarks.paper_step:predict", {**data, **more}, ONE_THREAD)
        alike.append(
            {"what": f"predict {asked:,} pairs", **side_row(form, side), "MB above loaded": side["peak_mb"] - loaded}
        )
    add_ratios(alike, alike[-1])
    notes = {"loaded": "a process with graph, data and torch, and nothing done", "threads": 1}
    report("paper_step", rows + alike, options.out, {**size, **notes})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
