"""LINE and DeepWalk against a slow literal LINE, plain walks and gensim: a planted partition is separated as well."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.planted import two_communities
from scipy.stats import chisquare

from cogstage.baselines.edge_weights import edge_matrix
from cogstage.baselines.encoders.deepwalk import DeepWalkEncoder
from cogstage.baselines.encoders.line import LineEncoder
from cogstage.baselines.kernels import alias_rows, walk
from cogstage.evaluation.metrics import score
from cogstage.graph.cooccurrence import Graph

SIZE = 60


def hard_graph() -> tuple[Graph, np.ndarray]:
    """Communities that can be told apart, but not for every term."""
    return two_communities(size=SIZE, inside=0.25, across=0.15, seed=4)


def separation(vectors: np.ndarray, community: np.ndarray) -> float:
    """How well a ridge regression fitted on all other terms tells the community of a term: AUROC, in points."""
    x = (vectors - vectors.mean(axis=0)) / (vectors.std(axis=0) + 1e-12)
    y = 2.0 * community - 1
    hat = x @ np.linalg.solve(x.T @ x + np.eye(x.shape[1]), x.T)
    left_out = (hat @ y - np.diag(hat) * y) / (1 - np.diag(hat))
    return 100 * score(community, 1 / (1 + np.exp(-left_out)))["auroc"]


def literal_line(graph: Graph, dimension: int, negatives: int, steps: int, rate: float, seed: int) -> np.ndarray:
    """The update rule of the paper, one edge after another, drawn by numpy."""
    rng = np.random.default_rng(seed)
    matrix = edge_matrix(graph, "ppmi").tocoo()
    degree = np.bincount(matrix.row, matrix.data, minlength=graph.n_nodes)
    noise = degree**0.75 / np.sum(degree**0.75)
    u = (rng.random((graph.n_nodes, dimension)) - 0.5) / dimension
    c = np.zeros((graph.n_nodes, dimension))
    drawn = rng.choice(len(matrix.data), size=steps, p=matrix.data / matrix.data.sum())
    others = rng.choice(graph.n_nodes, size=(steps, negatives), p=noise)
    for number, edge in enumerate(drawn):
        step = rate * max(1 - number / steps, 1e-4)
        i, j = matrix.row[edge], matrix.col[edge]
        change = np.zeros(dimension)
        for target, label in [(j, 1.0), *((other, 0.0) for other in others[number] if other != j)]:
            gradient = label - 1 / (1 + math.exp(-float(u[i] @ c[target])))
            change += step * gradient * c[target]
            c[target] = c[target] + step * gradient * u[i]
        u[i] += change
    return u


@pytest.mark.slow
def test_line_separates_as_well_as_the_literal_one() -> None:
    graph, community = hard_graph()
    epochs = 25
    encoder = LineEncoder(dimension=8, epochs=epochs)
    steps = epochs * edge_matrix(graph, "ppmi").nnz // 2
    ours = [separation(encoder.encode(graph, None, seed), community) for seed in range(12)]  # type: ignore[arg-type]
    theirs = [separation(literal_line(graph, 8, 5, steps, encoder.rate, seed), community) for seed in range(3)]
    assert np.mean(ours) >= np.mean(theirs) - 2
    assert np.mean(theirs) > 75


def test_line_on_two_threads_separates_as_well() -> None:
    graph, community = hard_graph()
    one, two = (
        np.mean(
            [
                separation(LineEncoder(dimension=8, epochs=25, workers=workers).encode(graph, None, seed), community)  # type: ignore[arg-type]
                for seed in range(12)
            ]
        )
        for workers in (1, 2)
    )
    assert abs(one - two) <= 4


@pytest.mark.slow
def test_deepwalk_separates_as_well_as_plain_walks() -> None:
    gensim = pytest.importorskip("gensim.models", reason="the optional extra baselines is not installed")
    graph, community = hard_graph()
    encoder = DeepWalkEncoder(dimension=8, walks=10, length=20, window=3, epochs=2)
    ours = [separation(encoder.encode(graph, None, seed), community) for seed in range(3)]  # type: ignore[arg-type]
    theirs = []
    matrix = edge_matrix(graph, "ppmi")
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sentences = []
        for start in list(range(graph.n_nodes)) * encoder.walks:
            sentence = [start]
            while len(sentence) < encoder.length and matrix.indptr[start + 1] > matrix.indptr[start]:
                row = slice(matrix.indptr[start], matrix.indptr[start + 1])
                start = int(rng.choice(matrix.indices[row], p=matrix.data[row] / matrix.data[row].sum()))
                sentence.append(start)
            sentences.append([str(node) for node in sentence])
        model = gensim.Word2Vec(
            sentences, vector_size=8, window=3, negative=5, epochs=2, alpha=encoder.rate, sg=1, min_count=1, sample=0,
            workers=1, seed=seed,
        )  # fmt: skip
        theirs.append(separation(np.array([model.wv[str(node)] for node in range(graph.n_nodes)]), community))
    assert np.mean(ours) >= np.mean(theirs) - 2
    assert np.mean(theirs) > 70


def test_alias_tables_and_walks_follow_the_weights() -> None:
    rng = np.random.default_rng(0)
    indptr = np.array([0, 5, 5, 6])
    weights = np.append(rng.random(5) * 10, 1.0)
    stay, other = alias_rows(indptr, weights)
    mass = np.zeros(5)  # what the table gives each position, exactly
    for position in range(5):
        mass[position] += stay[position] / 5
        mass[other[position]] += (1 - stay[position]) / 5
    assert np.allclose(mass, weights[:5] / weights[:5].sum(), atol=1e-6)

    graph, _ = hard_graph()
    matrix = edge_matrix(graph, "count")
    stay, other = alias_rows(matrix.indptr, matrix.data)
    walks = walk(matrix.indptr, matrix.indices, stay, other, np.zeros(40_000, np.int32), 2, 7)
    expected = np.asarray(matrix[0].todense()).ravel()
    found = np.bincount(walks[:, 1], minlength=graph.n_nodes)
    there = expected > 0
    assert found[~there].sum() == 0
    assert chisquare(found[there], expected[there] / expected.sum() * found.sum()).pvalue > 1e-3
    alone = walk(
        np.array([0, 0]),
        np.empty(0, np.int32),
        np.empty(0, np.float32),
        np.empty(0, np.int32),
        np.zeros(1, np.int32),
        3,
        0,
    )
    assert alone.tolist() == [[0, -1, -1]]
