"""Steps of training and predictions against the model as published, on the same batches and the same machine."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.harness import add_ratios, cpu_seconds, measured, parser, report, run_side, side_row

RELATIONS, DIMENSION = 5, 128  # 11 relations with inverses and NA
FULL = {"terms": 8_000, "edges": 400_000, "batch": 128, "associations": 32, "repeats": 5}
QUICK = {"terms": 1_500, "edges": 30_000, "batch": 48, "associations": 20, "repeats": 2}


def _plan(terms: int, edges: int) -> Any:
    from benchmarks.planted import Plan

    return Plan(
        terms=terms, edges=edges, topics=max(4, terms // 130), facts=min(1_500, terms // 5), relations=RELATIONS
    )


def _median(step: Callable[[], object], repeats: int) -> dict[str, float]:
    """Median wall and processor seconds of a step."""
    step()  # compiles and allocates
    taken = []
    for _ in range(repeats):
        begun, worked = time.perf_counter(), cpu_seconds()
        step()
        taken.append((time.perf_counter() - begun, cpu_seconds() - worked))
    seconds, cpu = np.median(taken, axis=0).tolist()
    return {"seconds": seconds, "cpu_seconds": cpu}


def fast(what: str, terms: int, edges: int, batch: int, associations: int, repeats: int) -> dict[str, Any]:
    """A step of L_p, or a whole iteration, of cogstage with the paper's equations."""
    import torch

    from benchmarks.planted import planted
    from cogstage.model.cogstage import Network
    from cogstage.model.config import PRESETS
    from cogstage.model.recall import RecallTargets
    from cogstage.model.training import Trainer

    graph, dataset = planted(_plan(terms, edges))
    changes = {"optimizer": "lazy_adam", "recall_loss": "mean", "clip": 1.0, "refresh_every": 0}
    config = PRESETS["paper"].replace(**changes, pair_batch=batch, associations=associations)
    torch.manual_seed(0)
    network = Network(config, graph.n_nodes, RELATIONS, [0])
    trainer = Trainer(network, RecallTargets.of_ppmi(graph.ppmi()), dataset.for_fitting(), 0)
    rng = np.random.default_rng(0)
    batches = iter([part for _ in range(40) for part in trainer.sampler.pair_batches(rng) if len(part) == batch])
    network.train()

    def pairs() -> None:
        trainer.pair_step(next(batches))

    def iteration() -> None:
        trainer.recall_step(rng)
        trainer.recognition_step(rng)
        trainer.pair_step(next(batches))

    return _median(pairs if what == "L_p step" else iteration, repeats)


def published(what: str, terms: int, edges: int, batch: int, associations: int, repeats: int) -> dict[str, Any]:
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
    sampler = Sampler(dataset.for_fitting(), PRESETS["paper"].replace(pair_batch=batch), graph.n_nodes, [0])
    candidates = torch.from_numpy(sampler.candidates)
    rng = np.random.default_rng(0)
    batches = iter([part for _ in range(40) for part in sampler.pair_batches(rng) if len(part) == batch])
    dense = None
    if what != "L_p step":
        dense = torch.from_numpy(graph.ppmi().toarray().astype(np.float32))
        dense /= dense.sum(1, keepdim=True).clamp(min=1e-9)

    def step(loss: torch.Tensor) -> None:
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()

    def pairs() -> None:
        part = next(batches)
        head, tail, label = (torch.from_numpy(x) for x in (part.head, part.tail, part.label))
        recalled = [model.associations(x, candidates, associations) for x in (head, tail)]
        step(F.binary_cross_entropy_with_logits(model.logits(head, tail, *recalled, 0), label))

    def iteration() -> None:
        assert dense is not None
        nodes = torch.from_numpy(rng.choice(graph.n_nodes, PRESETS["paper"].recall_batch, replace=False))
        step(model.recall_loss(nodes, dense[nodes]))
        facts = sampler.recognition_batch(rng)
        triples, heads, tails, na = (torch.from_numpy(x) for x in (facts.triples, facts.heads, facts.tails, facts.na))
        loss = model.triple_loss(triples, heads, tails)
        left, right = torch.cat([triples[:, 0], na[:, 0]]), torch.cat([triples[:, 2], na[:, 1]])
        names = torch.cat([triples[:, 1], torch.full((len(na),), 2 * RELATIONS)])
        step(loss + model.relation_loss(left, right, names))
        pairs()

    return _median(pairs if what == "L_p step" else iteration, repeats)


# Recognition must have learned something: of untrained relations nearly every one "beats" NA somewhere.
_BRIEFLY: dict[str, dict[str, Any]] = {
    "default": {"pretrain_recognition": 4, "folds": 0, "epochs": 1, "least_steps": 0},
    "paper": {"pretrain_recognition": 2, "epochs": 1},
}


def predict(preset: str, terms: int, edges: int, pairs: int) -> dict[str, Any]:
    """Predictions with five rationales each: many pairs in batches, and the time of one in a warm process."""
    from benchmarks.planted import planted
    from cogstage.rationale.cogstage import CogStage

    graph, dataset = planted(_plan(terms, edges))
    model = CogStage("may_treat", preset=preset, warm_start="svd", pretrain_recall=0, **_BRIEFLY[preset])
    model.fit(graph, dataset)
    head, tail = _asked(dataset, pairs)
    model.predict_batch(head[:300], tail[:300], "may_treat")
    with measured() as took:
        model.predict_batch(head, tail, "may_treat")
    single = []
    for h, t in zip(head[:50].tolist(), tail[:50].tolist(), strict=True):
        begun = time.perf_counter()
        model.predict(h, t)
        single.append(time.perf_counter() - begun)
    return {**took, "single_ms": 1000 * float(np.median(single))}


def published_predict(terms: int, edges: int, pairs: int, at_once: int = 64) -> dict[str, Any]:
    """Probabilities alone, without rationales, from the published form."""
    import torch

    from benchmarks._published_model import PublishedModel
    from benchmarks.planted import planted
    from cogstage.model.config import PRESETS
    from cogstage.model.sampling import Sampler

    graph, dataset = planted(_plan(terms, edges))
    model = PublishedModel(graph.n_nodes, RELATIONS, DIMENSION)
    sampler = Sampler(dataset.for_fitting(), PRESETS["paper"], graph.n_nodes, [0])
    candidates, count = torch.from_numpy(sampler.candidates), PRESETS["paper"].associations
    head, tail = (torch.from_numpy(ids.astype(np.int64)) for ids in _asked(dataset, pairs))

    def ask(chosen: slice) -> None:
        recalled = [model.associations(ids[chosen], candidates, count) for ids in (head, tail)]
        model.logits(head[chosen], tail[chosen], *recalled, 0)

    with torch.no_grad():
        ask(slice(0, at_once))
        with measured() as took:
            for begin in range(0, pairs, at_once):
                ask(slice(begin, begin + at_once))
    return {**took, "single_ms": None}


def _asked(dataset: Any, pairs: int) -> tuple[np.ndarray, np.ndarray]:
    rng, facts = np.random.default_rng(0), dataset.facts("train")
    return rng.choice(facts.head, pairs), rng.choice(facts.tail, pairs)


def main(argv: list[str] | None = None) -> None:
    """Print the ratios and write them down."""
    options = parser(__doc__).parse_args(argv)
    size = QUICK if options.quick else FULL
    world = {"terms": size["terms"], "edges": size["edges"]}
    base = run_side("benchmarks.model_step:nothing", world)["peak_mb"]
    rows: list[dict[str, Any]] = []
    for what in ("iteration",) if options.quick else ("L_p step", "iteration"):
        alike = []
        for name, label in (("fast", "cogstage"), ("published", "as published, plain torch")):
            side = run_side(f"benchmarks.model_step:{name}", {"what": what, **size})
            alike.append({"what": what, **side_row(label, side), "MB above loaded": side["peak_mb"] - base})
        add_ratios(alike, alike[-1])
        rows += alike
    notes = {"loaded": "a process with graph, data and torch, and nothing done"}
    report("model_step", rows, options.out, {**size, "dimension": DIMENSION, **notes})
    rows = []
    asked = {**world, "pairs": 128 if options.quick else 4_096}
    sides: tuple[tuple[str, str, dict[str, Any]], ...] = (
        ("cogstage, preset paper, 5 rationales", "predict", {"preset": "paper"}),
        ("cogstage, preset default, 5 rationales", "predict", {"preset": "default"}),
        ("as published, plain torch, no rationales", "published_predict", {}),
    )
    for label, function, more in sides[1 if options.quick else 0 :]:
        side = run_side(f"benchmarks.model_step:{function}", {**asked, **more})
        rate = asked["pairs"] / side["seconds"]
        rows.append(side_row(label, side, **{"pairs a second": rate, "one pair ms": side["result"]["single_ms"]}))
    add_ratios(rows, rows[-1])
    report("model_predict", rows, options.out, asked)


def nothing(terms: int, edges: int) -> None:
    """A process that has loaded what both sides load, and does nothing."""
    import torch  # noqa: F401

    import cogstage.model.training  # noqa: F401
    from benchmarks.planted import planted

    planted(_plan(terms, edges))


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
