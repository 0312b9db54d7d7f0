"""Steps of training and predictions against the model as published, on the same batches and the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import parser, report, run_side

BATCH, ASSOCIATIONS, RELATIONS, DIMENSION = 128, 32, 5, 128  # 11 relations with inverses and NA
TERMS, EDGES = 8_000, 400_000


def _plan(terms: int, edges: int) -> Any:
    from benchmarks.planted import Plan

    return Plan(terms=terms, edges=edges, topics=max(4, terms // 130), facts=min(1_500, terms), relations=RELATIONS)


def _median(step: Callable[[], object], repeats: int) -> float:
    step()  # compiles and allocates
    taken = []
    for _ in range(repeats):
        begun = time.perf_counter()
        step()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


def fast(what: str, terms: int, edges: int, repeats: int) -> dict[str, Any]:
    """A step of L_p, or a whole iteration, of cogstage with the paper's equations."""
    import torch

    from benchmarks.planted import planted
    from cogstage.model.cogstage import Network
    from cogstage.model.config import PRESETS
    from cogstage.model.recall import RecallTargets
    from cogstage.model.training import Trainer

    graph, dataset = planted(_plan(terms, edges))
    config = PRESETS["paper"].replace(optimizer="lazy_adam", recall_loss="mean", clip=1.0, refresh_every=0)
    torch.manual_seed(0)
    network = Network(config, graph.n_nodes, RELATIONS, [0])
    trainer = Trainer(network, RecallTargets.of_ppmi(graph.ppmi()), dataset.for_fitting(), 0)
    rng = np.random.default_rng(0)
    batches = iter([batch for _ in range(200) for batch in trainer.sampler.pair_batches(rng) if len(batch) == BATCH])
    network.train()

    def pairs() -> None:
        trainer.pair_step(next(batches))

    def iteration() -> None:
        trainer.recall_step(rng)
        trainer.recognition_step(rng)
        trainer.pair_step(next(batches))

    return {"seconds": _median(pairs if what == "L_p step" else iteration, repeats)}


def published(what: str, terms: int, edges: int, repeats: int) -> dict[str, Any]:
    """The same with every tensor materialised."""
    import torch
    from torch.nn import functional as F

    from benchmarks._published_model import PublishedModel
    from benchmarks.planted import planted
    from cogstage.model.config import PRESETS
    from cogstage.model.sampling import Sampler

    graph, dataset = planted(_plan(terms, edges))
    torch.manual_seed(0)
    model = PublishedModel(graph.n_nodes, RELATIONS, DIMENSION)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    sampler = Sampler(dataset.for_fitting(), PRESETS["paper"], graph.n_nodes, [0])
    candidates = torch.from_numpy(sampler.candidates)
    rng = np.random.default_rng(0)
    batches = iter([batch for _ in range(200) for batch in sampler.pair_batches(rng) if len(batch) == BATCH])
    dense = None
    if what != "L_p step":
        dense = torch.from_numpy(graph.ppmi().toarray().astype(np.float32))
        dense /= dense.sum(1, keepdim=True).clamp(min=1e-9)

    def step(loss: torch.Tensor) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def pairs() -> None:
        batch = next(batches)
        head, tail, label = (torch.from_numpy(x) for x in (batch.head, batch.tail, batch.label))
        recalled = [model.associations(x, candidates, ASSOCIATIONS) for x in (head, tail)]
        step(F.binary_cross_entropy_with_logits(model.logits(head, tail, *recalled, 0), label))

    def iteration() -> None:
        assert dense is not None
        nodes = torch.from_numpy(rng.choice(graph.n_nodes, BATCH, replace=False))
        step(model.recall_loss(nodes, dense[nodes]))
        batch = sampler.recognition_batch(rng)
        triples, heads, tails, na = (torch.from_numpy(x) for x in (batch.triples, batch.heads, batch.tails, batch.na))
        loss = model.triple_loss(triples, heads, tails)
        left, right = torch.cat([triples[:, 0], na[:, 0]]), torch.cat([triples[:, 2], na[:, 1]])
        names = torch.cat([triples[:, 1], torch.full((len(na),), 2 * RELATIONS)])
        step(loss + model.relation_loss(left, right, names))
        pairs()

    return {"seconds": _median(pairs if what == "L_p step" else iteration, repeats)}


def predict(preset: str, terms: int, edges: int, pairs: int) -> dict[str, Any]:
    """Predictions with five rationales each: many pairs a second in batches, and the time of one in a warm process."""
    from benchmarks.planted import planted
    from cogstage.rationale.cogstage import CogStage

    graph, dataset = planted(_plan(terms, edges))
    model = CogStage("may_treat", preset=preset).fit(graph, dataset, time_limit=1e-3)  # untrained weights will do
    rng = np.random.default_rng(0)
    facts = dataset.facts("train")
    head, tail = rng.choice(facts.head, pairs), rng.choice(facts.tail, pairs)
    model.predict_batch(head[:300], tail[:300], "may_treat")
    begun = time.perf_counter()
    model.predict_batch(head, tail, "may_treat")
    seconds = time.perf_counter() - begun
    single = []
    for h, t in zip(head[:50].tolist(), tail[:50].tolist(), strict=True):
        begun = time.perf_counter()
        model.predict(h, t)
        single.append(time.perf_counter() - begun)
    return {"seconds": seconds, "pairs_a_second": pairs / seconds, "single_ms": 1000 * float(np.median(single))}


def main(argv: list[str]) -> None:
    """Print the ratios and write them down."""
    options = parser(__doc__).parse_args(argv)
    terms, edges, repeats = (1_500, 30_000, 2) if options.quick else (TERMS, EDGES, 5)
    size = {"terms": terms, "edges": edges, "repeats": repeats}
    rows: list[dict[str, Any]] = []
    for what, wanted in (("L_p step", 6.0), ("iteration", 5.0)):
        ours, theirs = (
            run_side(f"benchmarks.model_step:{side}", {"what": what, **size}) for side in ("fast", "published")
        )
        base = run_side("benchmarks.model_step:nothing", {"terms": terms, "edges": edges})["peak_mb"]
        rows.append(
            {
                "what": what,
                "published s": theirs["seconds"],
                "cogstage s": ours["seconds"],
                "times faster": theirs["seconds"] / ours["seconds"],
                "wanted": wanted,
                "published MB": theirs["peak_mb"] - base,
                "cogstage MB": ours["peak_mb"] - base,
                "share of memory": (ours["peak_mb"] - base) / (theirs["peak_mb"] - base),
            }
        )
    report("model_step", rows, options.out, {**size, "memory": "above a process with graph, data and torch loaded"})
    rows = []
    for preset in ("default", "paper"):
        side = run_side(
            "benchmarks.model_step:predict",
            {"preset": preset, "terms": terms, "edges": edges, "pairs": 512 if options.quick else 4_096},
        )
        found = side["result"]
        rows.append(
            {
                "preset": preset,
                "pairs a second": found["pairs_a_second"],
                "wanted at least": 1_500,
                "one pair ms": found["single_ms"],
                "wanted at most": 10,
                "peak MB": side["peak_mb"],
            }
        )
    report("model_predict", rows, options.out, {"terms": terms, "rationales": 5})


def nothing(terms: int, edges: int) -> None:
    """A process that has loaded what both sides load, and does nothing."""
    import torch  # noqa: F401

    import cogstage.model.training  # noqa: F401
    from benchmarks.planted import planted

    planted(_plan(terms, edges))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
