"""An iteration of training over the associations N_c, the relations and the dimension, for both presets."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.growth.curve import Curve, best_of

TERMS, EDGES, BATCH = 2_000, 60_000, 32


def iteration(preset: str, associations: int, relations: int, dimension: int, repeats: int) -> dict[str, Any]:
    """One step of L_p of the default model, or one iteration of the published one."""
    import torch

    from benchmarks.planted import Plan, planted
    from cogstage.model.presets import preset_config
    from cogstage.training.distributed import Processes

    graph, dataset = planted(Plan(terms=TERMS, edges=EDGES, topics=20, facts=200, relations=relations))
    config = preset_config(preset).replace(associations=associations, dimension=dimension, pair_batch=BATCH)
    view, rng = dataset.for_fitting(), np.random.default_rng(0)
    torch.manual_seed(0)
    if preset == "paper":
        from cogstage.training.paper import PaperTraining

        training = PaperTraining(config, graph.ppmi(), view, view.relations[0])  # type: ignore[arg-type]
        nodes, facts, pairs = (
            training.batches.recall(rng),
            training.batches.recognition(rng),
            training.batches.pairs(rng),
        )
        first = next(iter(facts))

        def one() -> None:
            training.recall_step(nodes[0], Processes())
            training.recognition_step(first, Processes())
            training.pair_step(pairs[0], Processes())
    else:
        from torch.nn.functional import binary_cross_entropy_with_logits

        from cogstage.training.default import DefaultTraining, sight

        default = DefaultTraining(graph, view, [0], config.replace(tower=dimension), 0)  # type: ignore[arg-type]
        rows = default.sampler.pair_batches(0, rng)[0]
        chosen, module = default.sampler.train[0][rows], default._decisions[0]
        prepared, label = default._prepared(-1), torch.from_numpy(chosen.label)

        def one() -> None:
            loss = binary_cross_entropy_with_logits(module(*sight(prepared, chosen)), label)
            loss.backward()  # type: ignore[no-untyped-call]

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
            "default: 2·N_c pairs; published: each association of the head meets each of the tail, N_c² pairs",
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
