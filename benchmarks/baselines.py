"""Throughput of the baselines' own loops: walks and LINE edges a second, beside plain Python and gensim.

DeepWalk's walks are measured against a literal walk in numpy; LINE's drawn edges against a literal transcription, and
against gensim's skip-gram fed with the edges as two-word sentences (the same updates: one context, as many negatives).
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from benchmarks.harness import parser, report, run_side
from benchmarks.planted import Plan, planted

DIMENSION, NEGATIVES, LENGTH = 128, 5, 40


def _plan(quick: bool) -> Plan:
    return Plan(terms=2_000 if quick else 12_000, edges=60_000 if quick else 1_000_000, topics=40)


def our_walks(quick: bool) -> dict[str, Any]:
    """Walks by the compiled kernel, alias tables included."""
    from cogstage.baselines.encoders.deepwalk import DeepWalkEncoder

    graph, _ = planted(_plan(quick))
    DeepWalkEncoder(walks=1, length=2).walk(graph, 0)  # compiled (or read from the cache) before the clock starts
    begun = time.perf_counter()
    walks = DeepWalkEncoder(walks=2 if quick else 10, length=LENGTH).walk(graph, 0)
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "work": len(walks), "a_second": len(walks) / seconds}


def literal_walks(quick: bool) -> dict[str, Any]:
    """The same walks, each step a draw by numpy from the cumulated weights of the term's edges."""
    from cogstage.baselines.encoders.weights import edge_matrix

    graph, _ = planted(_plan(quick))
    matrix = edge_matrix(graph, "ppmi")
    rng = np.random.default_rng(0)
    walks = 500 if quick else 2_000
    begun = time.perf_counter()
    for start in rng.integers(graph.n_nodes, size=walks).tolist():
        node = start
        for _ in range(LENGTH - 1):
            row = slice(matrix.indptr[node], matrix.indptr[node + 1])
            if row.start == row.stop:
                break
            cumulated = np.cumsum(matrix.data[row])
            node = int(matrix.indices[row][np.searchsorted(cumulated, rng.random() * cumulated[-1])])
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "work": walks, "a_second": walks / seconds}


def our_line(quick: bool, workers: int) -> dict[str, Any]:
    """Drawn edges by the compiled kernel."""
    from cogstage.baselines.encoders.line import EdgeTraining
    from cogstage.baselines.encoders.weights import edge_matrix

    graph, _ = planted(_plan(quick))
    training = EdgeTraining.of(edge_matrix(graph, "ppmi"), DIMENSION, NEGATIVES, 0)
    training.run(1_000, 0.1, 0.1)
    steps = 200_000 if quick else 4_000_000
    begun = time.perf_counter()
    training.run(steps, 0.1, 0.05, workers)
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "work": steps, "a_second": steps / seconds}


def gensim_line(quick: bool, workers: int) -> dict[str, Any]:
    """gensim's skip-gram on sentences of two words: a drawn edge in both directions."""
    from gensim.models import Word2Vec

    from cogstage.baselines.encoders.weights import edge_matrix

    graph, _ = planted(_plan(quick))
    edges = edge_matrix(graph, "ppmi").tocoo()
    count = 50_000 if quick else 1_000_000
    drawn = np.random.default_rng(0).choice(len(edges.data), count, p=edges.data / edges.data.sum())
    sentences = [[str(i), str(j)] for i, j in zip(edges.row[drawn].tolist(), edges.col[drawn].tolist(), strict=True)]
    model = Word2Vec(
        vector_size=DIMENSION, window=1, negative=NEGATIVES, sg=1, min_count=1, sample=0, workers=workers, seed=0
    )
    model.build_vocab(sentences)
    begun = time.perf_counter()
    model.train(sentences, total_examples=len(sentences), epochs=1)
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "work": 2 * count, "a_second": 2 * count / seconds}


def literal_line(quick: bool) -> dict[str, Any]:
    """The update rule written down as it stands, one numpy operation a vector."""
    from cogstage.baselines.encoders.weights import edge_matrix

    graph, _ = planted(_plan(quick))
    edges = edge_matrix(graph, "ppmi").tocoo()
    rng = np.random.default_rng(0)
    steps = 2_000 if quick else 20_000
    drawn = rng.choice(len(edges.data), steps, p=edges.data / edges.data.sum())
    noise = rng.integers(graph.n_nodes, size=(steps, NEGATIVES))
    u = ((rng.random((graph.n_nodes, DIMENSION)) - 0.5) / DIMENSION).astype(np.float32)
    c = np.zeros_like(u)
    begun = time.perf_counter()
    for number, edge in enumerate(drawn):
        i = edges.row[edge]
        change = np.zeros(DIMENSION, np.float32)
        for j, label in [(edges.col[edge], 1.0), *((other, 0.0) for other in noise[number])]:
            step = 0.1 * (label - 1 / (1 + math.exp(-float(u[i] @ c[j]))))
            change += step * c[j]
            c[j] += step * u[i]
        u[i] += change
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "work": steps, "a_second": steps / seconds}


def main(argv: list[str] | None = None) -> None:
    """Run all sides and report rates and ratios."""
    options = parser(__doc__).parse_args(argv)
    sides = [
        ("walks of 40 terms", "numba, alias tables", "our_walks", {}),
        ("walks of 40 terms", "literal, numpy", "literal_walks", {}),
        ("LINE edges, d 128, 5 negatives", "numba, 1 thread", "our_line", {"workers": 1}),
        ("LINE edges, d 128, 5 negatives", "numba, 2 threads without locks", "our_line", {"workers": 2}),
        ("LINE edges, d 128, 5 negatives", "gensim skip-gram, 1 worker", "gensim_line", {"workers": 1}),
        ("LINE edges, d 128, 5 negatives", "gensim skip-gram, 2 workers", "gensim_line", {"workers": 2}),
        ("LINE edges, d 128, 5 negatives", "literal, numpy", "literal_line", {}),
    ]
    rows: list[dict[str, Any]] = []
    for what, side, function, kwargs in sides:
        found = run_side(
            f"benchmarks.baselines:{function}", {"quick": options.quick, **kwargs}, {"OMP_NUM_THREADS": "1"}
        )
        rows.append(
            {
                "what": what,
                "side": side,
                "a second": found["result"]["a_second"],
                "seconds": found["seconds"],
                "peak MB": found["peak_mb"],
            }
        )
    first: dict[str, float] = {}
    for row in rows:
        first.setdefault(row["what"], row["a second"])
        row["× slower than the first"] = first[row["what"]] / row["a second"]
    plan = _plan(options.quick)
    report("baselines", rows, options.out, {"terms": plan.terms, "edges": plan.edges})


if __name__ == "__main__":
    main()
