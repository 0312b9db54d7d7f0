"""Throughput of the baselines' own loops: walks and LINE edges per second, beside plain Python and gensim.

DeepWalk's walks are measured against a literal walk in numpy; LINE's drawn edges against a literal transcription, and
against gensim's skip-gram fed with the edges as two-word sentences (the same updates: one context, as many negatives).
Sides do as much work as their speed allows; ratios are of work a second.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.harness import add_ratios, installed, measured, parser, report, run_side, side_row
from benchmarks.planted import Plan, planted

DIMENSION, NEGATIVES, LENGTH = 128, 5, 40


def _plan(quick: bool) -> Plan:
    return Plan(terms=2_000 if quick else 12_000, edges=60_000 if quick else 1_000_000, topics=40)


def our_walks(quick: bool) -> dict[str, Any]:
    """Walks by the compiled kernel, alias tables included."""
    from cogstage.baselines.encoders.deepwalk import DeepWalkEncoder

    graph, _ = planted(_plan(quick))
    DeepWalkEncoder(walks=1, length=2).walk(graph, 0)  # compiled (or read from the cache) before the clock starts
    with measured() as took:
        walks = DeepWalkEncoder(walks=10, length=LENGTH).walk(graph, 0)
    return {**took, "work": len(walks)}


def literal_walks(quick: bool) -> dict[str, Any]:
    """The same walks, each step a draw by numpy from the cumulated weights of the term's edges."""
    from cogstage.baselines.edge_weights import edge_matrix

    graph, _ = planted(_plan(quick))
    matrix = edge_matrix(graph, "ppmi")
    rng = np.random.default_rng(0)
    walks = 500 if quick else 2_000
    with measured() as took:
        for start in rng.integers(graph.n_nodes, size=walks).tolist():
            node = start
            for _ in range(LENGTH - 1):
                row = slice(matrix.indptr[node], matrix.indptr[node + 1])
                if row.start == row.stop:
                    break
                cumulated = np.cumsum(matrix.data[row])
                node = int(matrix.indices[row][np.searchsorted(cumulated, rng.random() * cumulated[-1])])
    return {**took, "work": walks}


def our_line(quick: bool, workers: int) -> dict[str, Any]:
    """Drawn edges by the compiled kernel."""
    from cogstage.baselines.edge_weights import edge_matrix
    from cogstage.baselines.encoders.line import EdgeTraining

    graph, _ = planted(_plan(quick))
    training = EdgeTraining.start(edge_matrix(graph, "ppmi"), DIMENSION, NEGATIVES, 0)
    training.run(1_000, 0.1, 0.1)
    steps = 200_000 if quick else 4_000_000
    with measured() as took:
        training.run(steps, 0.1, 0.05, workers)
    return {**took, "work": steps}


def gensim_line(quick: bool, workers: int) -> dict[str, Any]:
    """gensim's skip-gram on sentences of two words: a drawn edge in both directions."""
    from gensim.models import Word2Vec

    from cogstage.baselines.edge_weights import edge_matrix

    graph, _ = planted(_plan(quick))
    edges = edge_matrix(graph, "ppmi").tocoo()
    count = 50_000 if quick else 1_000_000
    drawn = np.random.default_rng(0).choice(len(edges.data), count, p=edges.data / edges.data.sum())
    sentences = [[str(i), str(j)] for i, j in zip(edges.row[drawn].tolist(), edges.col[drawn].tolist(), strict=True)]
    model = Word2Vec(
        vector_size=DIMENSION, window=1, negative=NEGATIVES, sg=1, min_count=1, sample=0, workers=workers, seed=0
    )
    model.build_vocab(sentences)
    with measured() as took:
        model.train(sentences, total_examples=len(sentences), epochs=1)
    return {**took, "work": 2 * count}


def literal_line(quick: bool) -> dict[str, Any]:
    """The update rule written down as it stands, one numpy operation a vector."""
    from cogstage.baselines.edge_weights import edge_matrix

    graph, _ = planted(_plan(quick))
    edges = edge_matrix(graph, "ppmi").tocoo()
    rng = np.random.default_rng(0)
    steps = 2_000 if quick else 20_000
    drawn = rng.choice(len(edges.data), steps, p=edges.data / edges.data.sum())
    noise = rng.integers(graph.n_nodes, size=(steps, NEGATIVES))
    u = ((rng.random((graph.n_nodes, DIMENSION)) - 0.5) / DIMENSION).astype(np.float32)
    c = np.zeros_like(u)
    with measured() as took:
        for number, edge in enumerate(drawn):
            i = edges.row[edge]
            change = np.zeros(DIMENSION, np.float32)
            for j, label in [(edges.col[edge], 1.0), *((other, 0.0) for other in noise[number])]:
                step = 0.1 * (label - 1 / (1 + math.exp(-float(u[i] @ c[j]))))
                change += step * c[j]
                c[j] += step * u[i]
            u[i] += change
    return {**took, "work": steps}


def main(argv: list[str] | None = None) -> None:
    """Run all sides and report rates and ratios; the last side of each kind is its reference."""
    options = parser(__doc__).parse_args(argv)
    walks, line = "walks of 40 terms", "LINE edges, d 128, 5 negatives"
    sides = [
        (walks, "numba, alias tables", "our_walks", {}),
        (walks, "literal, numpy", "literal_walks", {}),
        (line, "numba, 1 thread", "our_line", {"workers": 1}),
        (line, "numba, 2 threads without locks", "our_line", {"workers": 2}),
        (line, "literal, numpy", "literal_line", {}),
        (line, "gensim skip-gram, 2 workers", "gensim_line", {"workers": 2}),
        (line, "gensim skip-gram, 1 worker", "gensim_line", {"workers": 1}),
    ]
    plan = _plan(options.quick)
    notes: dict[str, Any] = {"terms": plan.terms, "edges": plan.edges}
    if not installed("gensim"):
        sides = [side for side in sides if side[2] != "gensim_line"]
        notes["gensim"] = "not installed, so LINE is compared with the literal side: pip install 'cogstage[baselines]'"
    rows: list[dict[str, Any]] = []
    for what, label, function, kwargs in sides:
        side = run_side(
            f"benchmarks.baselines:{function}", {"quick": options.quick, **kwargs}, {"OMP_NUM_THREADS": "1"}
        )
        work = side["result"]["work"]
        rows.append({"what": what, **side_row(label, side, work=work), "a second": work / side["seconds"]})
    for what in (walks, line):
        alike = [row for row in rows if row["what"] == what]
        add_ratios(alike, alike[-1], work="work")
    report("baselines", rows, options.out, notes)


if __name__ == "__main__":
    main()
