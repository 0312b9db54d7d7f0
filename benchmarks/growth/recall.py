"""Stage 1 over nodes and edges: PPMI, a step of L_n, and recalling the associations of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.growth.curve import Curve, best_of

BATCH, DIMENSION, REPEATS = 256, 128, 7


def ppmi(nodes: int, edges: int) -> dict[str, Any]:
    """PPMI of the whole graph."""
    graph = _graph(nodes, edges)
    _graph(100, 1_000).ppmi()

    def one() -> None:
        graph.__dict__.pop("matrix", None)
        graph.ppmi()

    return best_of(one, REPEATS)


def step(nodes: int, edges: int) -> dict[str, Any]:
    """L_n of a batch of nodes, with its gradients."""
    import torch

    from cogstage.model.recall import Recall, RecallTargets

    targets = RecallTargets.from_ppmi(_graph(nodes, edges).lazy_ppmi())
    torch.manual_seed(0)
    recall = Recall(nodes, DIMENSION)
    batch = np.random.default_rng(0).choice(targets.nodes, BATCH, replace=False)

    def one() -> None:
        recall.loss(recall.term[torch.from_numpy(batch)], targets.rows(batch)).backward()

    return _timed(one)


def associations(nodes: int, edges: int) -> dict[str, Any]:
    """The associations of a batch of terms, out of all."""
    import torch

    from cogstage.model.fast.associations import Associations

    torch.manual_seed(0)
    tower, batch, everything = torch.randn(nodes, DIMENSION), torch.arange(BATCH), torch.arange(nodes)
    return _timed(lambda: Associations(tower, everything, 32).find(batch))


def _graph(nodes: int, edges: int) -> Any:
    from benchmarks.planted import Plan, planted

    return planted(Plan(terms=nodes, edges=edges, topics=max(4, nodes // 130), facts=100))[0]


def _timed(work: Callable[[], object]) -> dict[str, float]:
    work()  # what is set up once does not count
    return best_of(work, REPEATS)


NODES = {"full": (2_000, 4_000, 8_000, 16_000, 32_000), "quick": (1_000, 2_000)}
EDGES = {"full": (125_000, 250_000, 500_000, 1_000_000, 2_000_000), "quick": ()}
CURVES = (
    Curve(
        "PPMI over edges",
        "edges",
        "benchmarks.growth.recall:ppmi",
        "edges",
        **EDGES,
        needed=1.0,
        why="every edge has a value",
        fixed={"nodes": 16_000},
    ),
    Curve(
        "Recall, a step of L_n, over nodes",
        "nodes",
        "benchmarks.growth.recall:step",
        "nodes",
        **NODES,
        needed=1.0,
        why="the softmax of each of the batch's 256 rows runs over all nodes",
        fixed={"edges": 500_000},
        quick_fixed={"edges": 20_000},
    ),
    Curve(
        "Recall, a step of L_n, over edges",
        "edges",
        "benchmarks.growth.recall:step",
        "edges",
        **EDGES,
        needed=0.0,
        why="targets are sparse, and a batch's share of them is small beside the softmax",
        fixed={"nodes": 16_000},
    ),
    Curve(
        "Recall of associations over nodes",
        "nodes",
        "benchmarks.growth.recall:associations",
        "nodes",
        **NODES | {"quick": ()},
        needed=1.0,
        why="each of the batch's 256 terms is compared with all nodes",
        fixed={"edges": 0},
    ),
)
