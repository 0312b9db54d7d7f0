"""Ranking candidates over how many there are, and over how many nodes the graph has."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.growth.curve import Curve
from benchmarks.harness import measured


def rank(candidates: int, nodes: int) -> dict[str, Any]:
    """The 20 best of so many candidates, each looked at for the first time."""
    from benchmarks.planted import Plan, planted
    from cogstage.estimator import CogStage
    from cogstage.rationale.discover import discover

    plan = Plan(terms=nodes, edges=20 * nodes, topics=max(4, nodes // 130), facts=400)
    graph, dataset = planted(plan)
    model = CogStage("may_treat", warm_start="none").fit(graph, dataset, time_limit=1e-3)  # untrained weights will do
    head = int(dataset.facts("train").head[0])
    pool = np.random.default_rng(0).permutation(nodes)[:candidates]
    pool = np.sort(pool[pool != head])
    model.predict_batch(pool[:50], np.roll(pool[:50], 1), "may_treat")
    model.__dict__.pop("world")  # what was recalled is forgotten
    model.ends = lambda relation, side: pool  # type: ignore[method-assign]
    with measured() as took:
        found = discover(model, "may_treat", head=head, top=20)
    assert len(found) == 20
    return took


CURVES = (
    Curve(
        "Discover over candidates",
        "candidates, in a graph of 8,000 nodes",
        "benchmarks.growth.discover:rank",
        "candidates",
        (500, 1_000, 2_000, 4_000, 8_000),
        (100, 200),
        1.0,
        "every candidate is looked at",
        {"nodes": 8_000},
        {"nodes": 1_000},
    ),
    Curve(
        "Discover over nodes",
        "nodes, of which 1,000 are candidates",
        "benchmarks.growth.discover:rank",
        "nodes",
        (2_000, 4_000, 8_000, 16_000, 32_000),
        (),
        1.0,
        "what a candidate recalls is chosen among all nodes",
        {"candidates": 1_000},
    ),
)
