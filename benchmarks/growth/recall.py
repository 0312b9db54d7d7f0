"""Stage 1 over nodes and edges: PPMI, its SVD, and recalling the associations of a batch."""

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


def vectors(nodes: int, edges: int) -> dict[str, Any]:
    """The truncated SVD of PPMI."""
    from cogstage.model.recall import unit_rows
    from cogstage.model.recall import vectors as svd

    unit = unit_rows(_graph(nodes, edges).ppmi())
    return _timed(lambda: svd(unit, DIMENSION, 0))


def associations(nodes: int, edges: int) -> dict[str, Any]:
    """The associations of a batch of terms, out of all."""
    from cogstage.model.recall import Associations

    tower = np.random.default_rng(0).normal(size=(nodes, DIMENSION)).astype(np.float32)
    return _timed(lambda: Associations(tower, np.arange(nodes), 32).nearest(np.arange(BATCH)))


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
        "SVD of PPMI over nodes",
        "nodes",
        "benchmarks.growth.recall:vectors",
        "nodes",
        **NODES,
        needed=1.0,
        why="every node has a row of d numbers",
        fixed={"edges": 500_000},
        quick_fixed={"edges": 20_000},
    ),
    Curve(
        "SVD of PPMI over edges",
        "edges",
        "benchmarks.growth.recall:vectors",
        "edges",
        **EDGES,
        needed=1.0,
        why="every edge is multiplied in each power iteration",
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
