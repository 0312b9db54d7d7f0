"""One contract, run on every encoder, scorer and method that the resolver knows."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np
import pytest
from planted_relation import planted

from cogstage.baselines import resolver
from cogstage.baselines.scorers.classifier import Training
from cogstage.baselines.vectors import VectorStore
from cogstage.errors import LeakageError, UsageError
from cogstage.evaluation.metrics import score
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset, FittingView

QUICK_ENCODER: dict[str, dict[str, Any]] = {
    "svd": {"dimension": 16},
    "deepwalk": {"dimension": 16, "walks": 5, "length": 20, "epochs": 3},
    "line": {"dimension": 16, "epochs": 60},
    "repel": {"dimension": 16, "epochs": 60, "fact_epochs": 10},
}
QUICK_SCORER = {"training": Training(weight_decays=(0.3,), epochs=40, patience=4)}
QUICK_REFERENCE: dict[str, dict[str, Any]] = {
    "complex": {"dimension": 8, "epochs": 60, "patience": 4, "negatives": 8, "rate": 0.02, "weight_decay": 0.3},
    "rotate": {"dimension": 8, "epochs": 60, "patience": 4, "negatives": 8, "rate": 0.02, "weight_decay": 0.3},
    "tucker": {"dimension": 24, "epochs": 40, "patience": 4, "rate": 0.02, "weight_decay": 0.3},
}
LEARNED = (*resolver.PAPER, *resolver.MODERN)
MODERN = resolver.MODERN


@pytest.fixture(scope="module")
def known() -> tuple[Graph, Dataset]:
    return planted()


@pytest.fixture(scope="module")
def shuffled() -> tuple[Graph, Dataset]:
    return planted(shuffled=True)


def quick(name: str, store: VectorStore | None = None) -> Any:
    if name in resolver.FLOOR:
        return resolver.resolve(name)
    first, _, second = name.partition("+")
    scorer = QUICK_REFERENCE.get(second or first, QUICK_SCORER)
    return resolver.resolve(name, QUICK_ENCODER[first] if second else None, scorer, store)


def fitted(name: str, graph: Graph, data: Dataset, seed: int = 0, store: VectorStore | None = None) -> Any:
    if name in MODERN:
        pytest.importorskip("pykeen", reason="the optional extra baselines is not installed")
    method = quick(name, store)
    return method.fit(graph, data.for_fitting(), "all" if method.joint else "may_treat", seed)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> VectorStore:
    """Vectors are encoded once for all scorers, as in a comparison."""
    return VectorStore(tmp_path_factory.mktemp("vectors"))


def auroc(name: str, graph: Graph, data: Dataset, store: VectorStore | None = None) -> float:
    pairs = data.pairs("may_treat", "test")
    method = fitted(name, graph, data, store=store)
    found = method.scores(pairs.head, pairs.tail, "may_treat")
    return score(pairs.label, found)["auroc"]


@pytest.mark.parametrize("name", resolver.ENCODERS)
def test_encoder(name: str, known: tuple[Graph, Dataset]) -> None:
    graph, data = known
    encoder = resolver.resolve_encoder(name, QUICK_ENCODER[name])
    assert encoder.name == name
    vectors = encoder.encode(graph, data.for_fitting(), 3)
    assert vectors.shape == (graph.n_nodes, 16)
    assert vectors.dtype == np.float32
    assert np.isfinite(vectors).all()
    assert np.array_equal(vectors, encoder.encode(graph, data.for_fitting(), 3))
    other = encoder.encode(graph, data.for_fitting(), 4)
    if name == "svd":  # another seed differs by rounding and by the sign of a dimension alone
        gram, other_gram = vectors[:, :2] @ vectors[:, :2].T, other[:, :2] @ other[:, :2].T
        assert np.allclose(gram, other_gram, atol=1e-3)
    else:
        assert not np.allclose(vectors, other)


@pytest.mark.parametrize("name", resolver.ENCODERS)
def test_encoder_defaults_are_written_down(name: str) -> None:
    encoder = resolver.resolve_encoder(name)
    assert dataclasses.is_dataclass(encoder)
    assert encoder.dimension == 128  # type: ignore[attr-defined]
    source = inspect.getsource(type(encoder))
    for option in dataclasses.fields(encoder):
        after = source.split(f"    {option.name}: ", 1)[1].splitlines()[1]
        assert after.strip().startswith('"""'), f"{name}.{option.name} has no words"


@pytest.mark.parametrize("name", resolver.ENCODERS)
def test_encoder_takes_strange_graphs(name: str, known: tuple[Graph, Dataset]) -> None:
    graph, data = known
    kept = (graph.source != 5) & (graph.target != 5)
    lonely = Graph(graph.vocabulary, graph.source[kept], graph.target[kept], graph.count[kept])
    vectors = resolver.resolve_encoder(name, QUICK_ENCODER[name]).encode(lonely, data.for_fitting(), 0)
    assert np.isfinite(vectors).all()
    empty = Graph(graph.vocabulary, graph.source[:0], graph.target[:0], graph.count[:0])
    options = {**QUICK_ENCODER[name], "dimension": 300}  # more dimensions than terms
    vectors = resolver.resolve_encoder(name, options).encode(empty, data.for_fitting(), 0)
    assert vectors.shape == (graph.n_nodes, 300)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("name", resolver.SCORERS)
def test_scorer(name: str, known: tuple[Graph, Dataset]) -> None:
    graph, data = known
    vectors = resolver.resolve_encoder("svd", {"dimension": 12}).encode(graph, data.for_fitting(), 0)
    train, dev, test = (data.pairs("may_treat", split) for split in ("train", "dev", "test"))
    scorer = resolver.resolve_scorer(name, QUICK_SCORER).fit(vectors, train, dev, 1)
    found = scorer.scores(test.head, test.tail)
    assert found.shape == (len(test),)
    assert found.min() >= 0
    assert found.max() <= 1
    again = resolver.resolve_scorer(name, QUICK_SCORER).fit(vectors, train, dev, 1).scores(test.head, test.tail)
    assert np.array_equal(found, again)
    some = np.arange(0, len(test), 7)
    assert np.allclose(scorer.scores(test.head[some], test.tail[some]), found[some], atol=1e-6)
    assert scorer.scores(test.head[:0], test.tail[:0]).shape == (0,)


@pytest.mark.parametrize("name", [*resolver.FLOOR, "svd+distmult", "repel+distmult", "complex", "svd+rotate"])
def test_method(name: str, known: tuple[Graph, Dataset]) -> None:
    graph, data = known
    method = fitted(name, graph, data, seed=2)
    assert method.name == name
    test = data.pairs("may_treat", "test")
    found = method.scores(test.head, test.tail, "may_treat")
    assert found.shape == (len(test),)
    assert np.isfinite(found).all()
    assert found.min() >= 0
    assert found.max() <= 1
    assert np.array_equal(found, fitted(name, graph, data, seed=2).scores(test.head, test.tail, "may_treat"))


@pytest.mark.parametrize("name", LEARNED)
def test_learns_the_planted_relation(name: str, known: tuple[Graph, Dataset], store: VectorStore) -> None:
    assert auroc(name, *known, store) >= 0.9


@pytest.mark.parametrize("name", [*LEARNED, *resolver.FLOOR])
def test_learns_nothing_from_shuffled_labels(name: str, shuffled: tuple[Graph, Dataset], store: VectorStore) -> None:
    assert abs(auroc(name, *shuffled, store) - 0.5) <= 0.05


def test_the_floor(known: tuple[Graph, Dataset]) -> None:
    assert auroc("always-positive", *known) == 0.5
    assert abs(auroc("degree", *known) - 0.5) <= 0.05
    assert auroc("ppmi", *known) > 0.6


class Watched(FittingView):
    """A fitting view whose answers about held-out facts would be noticed."""

    def is_taken(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        raise LeakageError("a baseline asked for known facts")


@pytest.mark.parametrize("name", [*resolver.FLOOR, *(f"{e}+distmult" for e in resolver.ENCODERS), "svd+rotate"])
def test_sees_nothing_but_what_it_may(name: str, known: tuple[Graph, Dataset]) -> None:
    """The test labels turned round change no score; a view that refuses more than it must is enough."""
    graph, data = known
    test = data.pairs("may_treat", "test")
    before = fitted(name, graph, data).scores(test.head, test.tail, "may_treat")
    turned = {**data._pairs, ("may_treat", "test"): dataclasses.replace(test, label=(1 - test.label).astype(np.int8))}
    facts = {**data._facts, "test": data._facts["dev"], "dev": data._facts["test"]}
    other = dataclasses.replace(data, _pairs=turned, _facts=facts)
    view = other.for_fitting()
    watched = Watched(**{part.name: getattr(view, part.name) for part in dataclasses.fields(view)})
    method = quick(name)
    method.fit(graph, watched, "all" if method.joint else "may_treat", 0)
    assert np.array_equal(before, method.scores(test.head, test.tail, "may_treat"))


def test_names_that_are_wrong_are_explained() -> None:
    for name in ("", "svd", "svd+", "word2vec+ntn", "svd+transformer", "+ntn"):
        with pytest.raises(UsageError, match="unknown method"):
            resolver.resolve(name)
    with pytest.raises(UsageError, match="dimensions"):
        resolver.resolve("svd+ntn", encoder={"dimensions": 3})
    with pytest.raises(UsageError, match="no such options"):
        resolver.resolve("degree", encoder={"dimension": 3})


def test_the_floors_regression_against_sklearn() -> None:
    from sklearn.linear_model import LogisticRegression

    from cogstage.baselines.floor import _Logistic

    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 2)) * [3.0, 0.1] + 5
    label = (features @ [0.5, -6.0] + rng.normal(size=500) > np.median(features @ [0.5, -6.0])).astype(np.int8)
    ours = _Logistic()
    ours.fit(features, label)
    scaled = (features - features.mean(axis=0)) / features.std(axis=0)
    theirs = LogisticRegression(tol=1e-10, max_iter=1000).fit(scaled, label).predict_proba(scaled)[:, 1]
    assert np.allclose(ours.scores(features), theirs, atol=1e-4)
    ours.fit(np.zeros((3, 1)), np.ones(3, np.int8))  # one class and a constant feature: no crash
    assert ours.scores(np.zeros((1, 1)))[0] > 0.99
