"""An iteration of training over the associations N_c, the relations and the dimension, for both presets."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.growth.curve import Curve, best_of

TERMS, EDGES, BATCH = 2_000, 60_000, 32


def iteration(preset: str, associations: int, relations: int, dimension: int, repeats: int) -> dict[str, Any]:
    """One batch of each loss that the preset trains with after its pre-training."""
    import torch

    from benchmarks.planted import Plan, planted
    from cogstage.model.cogstage import Network
    from cogstage.model.config import PRESETS
    from cogstage.model.recall import RecallTargets
    from cogstage.model.training import Trainer

    plan = Plan(terms=TERMS, edges=EDGES, topics=20, facts=200, relations=relations)
    graph, dataset = planted(plan)
    sizes = {"associations": associations, "dimension": dimension, "pair_batch": BATCH, "refresh_every": 0}
    config = PRESETS[preset].replace(**sizes, **({"tower": dimension} if preset == "default" else {}))
    torch.manual_seed(0)
    network = Network(config, graph.n_nodes, relations, [0], config.folds)
    targets = RecallTargets.of_ppmi(graph.ppmi())
    trainer = Trainer(network, targets, dataset.for_fitting(), 0, types=graph.vocabulary.type)
    rng = np.random.default_rng(0)
    network.train()
    trainer.refresh()
    batches = [batch for batch in trainer.sampler.pair_batches(rng) if len(batch) == BATCH]

    turns = iter(range(repeats + 1))

    def one() -> None:
        for _ in range(config.recall_steps):
            trainer.recall_step(rng)
        for _ in range(config.recognition_steps):
            trainer.recognition_step(rng)
        trainer.pair_step(batches[next(turns) % len(batches)])

    one()  # what is set up once does not count
    return best_of(one, repeats)


SIDE = "benchmarks.growth.training:iteration"
COMMON = {"associations": 32, "relations": 5, "dimension": 128, "repeats": 5}
FEW = {"relations": 2, "dimension": 32, "repeats": 1}  # in a quick run


def _curves(preset: str) -> tuple[Curve, ...]:
    name = f"Training iteration, preset {preset}, over"

    def without(key: str) -> dict[str, Any]:
        fixed = {"preset": preset, **COMMON}
        del fixed[key]
        return fixed

    return (
        Curve(
            f"{name} N_c",
            "associations N_c of each term",
            SIDE,
            "associations",
            (8, 16, 32, 64),
            (4, 8) if preset == "default" else (),
            2.0,
            "each of the head's associations meets each of the tail's: N_c² assumptions",
            without("associations"),
            FEW,
        ),
        Curve(
            f"{name} relations",
            "relations (inverses and NA come on top)",
            SIDE,
            "relations",
            (1, 2, 4, 8, 16),
            (),
            1.0,
            "every assumption has a score for every relation",
            without("relations"),
        ),
        Curve(
            f"{name} dimension",
            "dimension d",
            SIDE,
            "dimension",
            (32, 64, 128, 256, 512),
            (),
            1.0 if preset == "default" else 2.0,
            "scores are products of d numbers"
            if preset == "default"
            else "e_ij and its attention have d×d weights for every assumption",
            without("dimension"),
        ),
    )


CURVES = (*_curves("default"), *_curves("paper"))
