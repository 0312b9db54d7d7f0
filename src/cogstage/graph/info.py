"""Describe a graph: sizes, degrees, largest counts, and a plot of the degrees."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import new_file
from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph


def degrees(graph: Graph) -> np.ndarray:
    """Number of neighbours of each node, int64 (V,)."""
    both = np.concatenate([graph.source, graph.target])
    return np.bincount(both, minlength=graph.n_nodes)


def describe(graph: Graph, top: int = 10) -> dict[str, Any]:
    """Nodes, edges, density, degree distribution, largest node and edge counts, and how the graph was made."""
    degree = degrees(graph)
    names, count = graph.vocabulary.name, graph.vocabulary.count
    edge_order = np.argsort(-graph.count, kind="stable")[:top].tolist()
    possible = graph.n_nodes * (graph.n_nodes - 1) / 2
    buckets = []
    low = 1
    while low <= int(degree.max(initial=0)):
        nodes = int(((degree >= low) & (degree < 2 * low)).sum())
        buckets.append({"from": low, "to": 2 * low - 1, "nodes": nodes})
        low *= 2
    return {
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "density": graph.n_edges / possible if possible else 0.0,
        "isolated": int((degree == 0).sum()),
        "degree": {
            "mean": float(degree.mean()) if len(degree) else 0.0,
            "median": float(np.median(degree)) if len(degree) else 0.0,
            "largest": int(degree.max(initial=0)),
            "distribution": buckets,
        },
        "largest_nodes": [
            {"term": graph.vocabulary.term[n], "name": names[n], "count": int(count[n]), "degree": int(degree[n])}
            for n in np.argsort(-count, kind="stable")[:top].tolist()
        ],
        "largest_edges": [
            {"source": names[graph.source[e]], "target": names[graph.target[e]], "count": int(graph.count[e])}
            for e in edge_order
        ],
        "total_count": int(graph.count.sum()),
        "hash": graph.hash,
        "made_with": dict(graph.made_with),
    }


def plot_degrees(graph: Graph, path: Path) -> None:
    """Draw the degree distribution on logarithmic axes: how many nodes have at least a number of neighbours."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure

    degree = np.sort(degrees(graph))
    degree = degree[degree > 0]
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot()
    at_least = np.arange(len(degree), 0, -1)
    axes.step(degree, at_least, where="pre", color="#1f5a8a")
    if len(degree):
        axes.set_xscale("log")
        axes.set_yscale("log")
    axes.set_xlabel("neighbours")
    axes.set_ylabel("terms with at least as many")
    axes.set_title(f"{graph.n_nodes:,} terms, {graph.n_edges:,} edges")
    axes.grid(alpha=0.3)
    drawn = io.BytesIO()
    try:
        figure.savefig(drawn, dpi=150, format=path.suffix[1:] or "png")
    except ValueError as error:
        raise UsageError(f"{path} cannot be written: {error}") from None
    with new_file(path) as temporary:
        temporary.write_bytes(drawn.getvalue())


def description_text(about: dict[str, Any]) -> str:
    """What :func:`describe` gives, for a terminal."""
    degree = about["degree"]
    made = {key: value for key, value in about["made_with"].items() if isinstance(value, (str, int)) and value}
    return "\n".join(
        [
            f"{about['nodes']:,} nodes, {about['edges']:,} edges, density {about['density']:.4g}",
            "made with: " + ", ".join(f"{key} {value}" for key, value in made.items()),
            f"neighbours: mean {degree['mean']:.1f}, median {degree['median']:.0f}, largest {degree['largest']:,}; "
            f"{about['isolated']:,} nodes have none",
            *(
                f"  {bucket['from']:>8,} to {bucket['to']:<8,} {bucket['nodes']:>10,} nodes"
                for bucket in degree["distribution"]
            ),
            "largest counts of terms:",
            *(
                f"  {node['count']:>10,}  {node['name']} ({node['degree']:,} neighbours)"
                for node in about["largest_nodes"]
            ),
            "largest counts of pairs:",
            *(f"  {edge['count']:>10,}  {edge['source']} - {edge['target']}" for edge in about["largest_edges"]),
        ]
    )
