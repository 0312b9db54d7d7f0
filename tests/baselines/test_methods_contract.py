"""One contract, run on every encoder, scorer and method that the resolver knows."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import numpy as np
import pytest
from benchmarks.planted import planted_communities

from cogstage.baselines import resolver
from cogstage.baselines.fresh import FreshTraining
from cogstage.baselines.pykeen_reference import QUICK
from cogstage.baselines.vectors import VectorStore
from cogstage.errors import LeakageError, UsageError
from cogstage.evaluation.metrics import score
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset, FittingView, Pairs
from cogstage.training.sampling import TripleBatch, TripleSampler
from cogstage.triples import Triples

QUICK_FRESH = FreshTraining(weight_decays=(0.3,), dropouts=(0.0,), epochs=8, patience=3)
EVERY = tuple(f"{encoder}+{scorer}" for encoder in resolver.ENCODERS for scorer in resolver.SCORERS)
FRESH = ("svd+distmult+fresh", "svd+rescal+fresh", "svd+ntn+fresh", "repel+rescal+fresh")
LEARNED = (*EVERY, *FRESH, *resolver.MODERN)
MODERN = resolver.MODERN


def methods(*names: str) -> list[Any]:
    """The names as parameters; two of the models that PyKEEN trains take seconds each."""
    return [pytest.param(n, marks=pytest.mark.slow if n.endswith(("rotate", "tucker")) else ()) for n in names]


@pytest.fixture(scope="module")
def known() -> tuple[Graph, Dataset]:
    return planted_communities()


@pytest.fixture(scope="module")
def shuffled() -> tuple[Graph, Dataset]:
    return planted_communities(shuffled=True)


def quick_encoder(name: str) -> dict[str, Any]:
    return dict(resolver.component("encoders", name).quick)


def quick(name: str, store: VectorStore | None = None) -> Any:
    """The method with the settings that its parts carry for tests."""
    if name in resolver.FLOOR:
        return resolver.resolve(name)
    first, second, fresh = resolver._parts(name)
    scorer = QUICK[second] if second in QUICK else resolver.component("scorers", second).quick
    method: Any = resolver.resolve(name, quick_encoder(first) if first else None, scorer, store)
    if fresh:
        method.training = QUICK_FRESH
    return method


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
    encoder = resolver.resolve_encoder(name, quick_encoder(name))
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
    vectors = resolver.resolve_encoder(name, quick_encoder(name)).encode(lonely, data.for_fitting(), 0)
    assert np.isfinite(vectors).all()
    empty = Graph(graph.vocabulary, graph.source[:0], graph.target[:0], graph.count[:0])
    options = {**quick_encoder(name), "dimension": 300}  # more dimensions than terms
    vectors = resolver.resolve_encoder(name, options).encode(empty, data.for_fitting(), 0)
    assert vectors.shape == (graph.n_nodes, 300)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("name", resolver.SCORERS)
def test_scorer(name: str, known: tuple[Graph, Dataset]) -> None:
    graph, data = known
    vectors = resolver.resolve_encoder("svd", {"dimension": 12}).encode(graph, data.for_fitting(), 0)
    train, dev, test = (data.pairs("may_treat", split) for split in ("train", "dev", "test"))
    options = resolver.component("scorers", name).quick
    scorer = resolver.resolve_scorer(name, options).fit(vectors, train, dev, 1)
    found = scorer.scores(test.head, test.tail)
    assert found.shape == (len(test),)
    assert found.min() >= 0
    assert found.max() <= 1
    again = (
        resolver.resolve_scorer(name, resolver.component("scorers", name).quick)
        .fit(vectors, train, dev, 1)
        .scores(test.head, test.tail)
    )
    assert np.array_equal(found, again)
    some = np.arange(0, len(test), 7)
    assert np.allclose(scorer.scores(test.head[some], test.tail[some]), found[some], atol=1e-6)
    assert scorer.scores(test.head[:0], test.tail[:0]).shape == (0,)


@pytest.mark.parametrize("name", methods(*resolver.FLOOR, "repel+distmult", "svd+ntn+fresh", "complex", "svd+rotate"))
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


@pytest.mark.parametrize("name", methods(*LEARNED))
def test_learns_the_planted_relation(name: str, known: tuple[Graph, Dataset], store: VectorStore) -> None:
    # half of all typed pairs hold here, so that half of the fresh negatives are wrong
    assert auroc(name, *known, store) >= (
        0.7 if name in FRESH else 0.9
    )  # some of the planted facts' neighbours are negatives of the fresh form


@pytest.mark.parametrize("name", methods(*LEARNED, *resolver.FLOOR))
def test_learns_nothing_from_shuffled_labels(name: str, shuffled: tuple[Graph, Dataset], store: VectorStore) -> None:
    assert abs(auroc(name, *shuffled, store) - 0.5) <= 0.05


def test_every_component_carries_its_title_and_quick_settings() -> None:
    for kind, names in (("encoders", resolver.ENCODERS), ("scorers", resolver.SCORERS)):
        for name in names:
            part = resolver.component(kind, name)
            assert part.title
            part(**part.quick)


def test_fresh_form_draws_what_recognition_draws(
    known: tuple[Graph, Dataset], monkeypatch: pytest.MonkeyPatch, store: VectorStore
) -> None:
    graph, data = known
    facts = data.facts("train")
    batches: list[TripleBatch] = []
    draw = TripleSampler.with_negatives

    def watched(*arguments: Any) -> TripleBatch:
        batches.append(draw(*arguments))
        return batches[-1]

    monkeypatch.setattr(TripleSampler, "with_negatives", watched)
    method = resolver.resolve("svd+distmult+fresh", store=store)
    method.training = FreshTraining(weight_decays=(0.1,), dropouts=(0.0,), epochs=1)
    method.fit(graph, data.for_fitting())
    passed = np.concatenate([batch.triples[batch.label == 1] for batch in batches])
    every = np.stack([facts.head, facts.relation, facts.tail], 1)
    assert sorted(map(tuple, passed.tolist())) == sorted(map(tuple, every.tolist()))  # an epoch is one pass


def test_fresh_form_keeps_the_setting_that_is_best_on_dev(known: tuple[Graph, Dataset]) -> None:
    graph, data = known
    method = resolver.resolve("svd+distmult+fresh", {"dimension": 16})
    method.training = FreshTraining(weight_decays=(0.1,), dropouts=(0.999, 0.0), epochs=6, patience=2)
    method.fit(graph, data.for_fitting(), "all", 0)
    assert method.chosen == (0.1, 0.0)  # with all coordinates dropped there is nothing to learn
    with pytest.raises(UsageError, match="fitted on may_treat"):
        method.scores(np.array([0]), np.array([1]), "causes")


def test_fresh_form_expects_as_many_facts_on_dev_as_there_are(known: tuple[Graph, Dataset]) -> None:
    graph, data = planted_communities(800, relations=("may_treat", "causes"))
    method = quick("svd+distmult+fresh").fit(graph, data.for_fitting(), "all", 0)
    for relation in ("may_treat", "causes"):
        dev = data.pairs(relation, "dev")
        assert method.scores(dev.head, dev.tail, relation).mean() == pytest.approx(dev.label.mean(), abs=0.02)


def test_popularity_is_the_number_of_known_facts(known: tuple[Graph, Dataset]) -> None:
    graph, data = planted_communities(400, relations=("may_treat", "causes"))
    facts = data.facts("train")
    count = dict.fromkeys(range(graph.n_nodes), 0)
    for head, tail in zip(facts.head.tolist(), facts.tail.tolist(), strict=True):
        count[head] += 1
        count[tail] += 1
    test = data.pairs("causes", "test")
    of_head, of_tail = (np.array([count[term] for term in ids.tolist()]) for ids in (test.head, test.tail))
    for name, value in {"head": of_head, "tail": of_tail, "product": of_head * of_tail}.items():
        method = resolver.resolve(f"popularity-{name}").fit(graph, data.for_fitting(), "causes")
        found = method.scores(test.head, test.tail)
        order = np.argsort(value, kind="stable")
        steps = np.diff(found[order])
        assert (steps >= -1e-12).all() or (steps <= 1e-12).all()  # nothing but the count decides
        assert len(np.unique(found.round(12))) == len(np.unique(value))


def test_a_training_fact_does_not_count_for_itself(known: tuple[Graph, Dataset]) -> None:
    """Every head and tail stands in one fact and one negative: without that fact nothing tells the two apart."""
    graph, data = known
    heads, tails = np.arange(0, 60, 2, dtype=np.int32), np.arange(1, 61, 2, dtype=np.int32)
    pairs = Pairs(np.tile(heads, 2), np.concatenate([tails, np.roll(tails, 1)]), np.repeat([1, 0], 30).astype(np.int8))
    facts = Triples(heads, np.zeros(30, np.int16), tails)
    other = dataclasses.replace(
        data, _pairs={**data._pairs, ("may_treat", "train"): pairs}, _facts={**data._facts, "train": facts}
    )
    # A negative's two terms stand in a fact each, a fact's terms in none but itself: popularity points the wrong way.
    for name in ("degree", "popularity-head", "popularity-tail", "popularity-product"):
        found = resolver.resolve(name).fit(graph, other.for_fitting(), "may_treat").scores(pairs.head, pairs.tail)
        assert (found < 0.1).all(), name  # every pair has counts that only negatives had in training


def test_the_floor(known: tuple[Graph, Dataset]) -> None:
    assert auroc("always-positive", *known) == 0.5
    assert abs(auroc("degree", *known) - 0.5) <= 0.05
    assert auroc("ppmi", *known) > 0.6


class ReviewerStatus(FittingView):
    """A fitting view whose answers about held-out facts would be noticed."""

    def is_taken(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        raise LeakageError("a baseline asked for known facts")


@pytest.mark.parametrize("name", methods(*resolver.FLOOR, *EVERY[::3], "svd+rescal+fresh", "svd+rotate"))
def test_sees_nothing_but_what_it_may(name: str, known: tuple[Graph, Dataset]) -> None:
    """The test labels turned round change no score; a view that refuses more than it must is enough."""
    graph, data = known
    test = data.pairs("may_treat", "test")
    before = fitted(name, graph, data).scores(test.head, test.tail, "may_treat")
    turned = {**data._pairs, ("may_treat", "test"): dataclasses.replace(test, label=(1 - test.label).astype(np.int8))}
    facts = {**data._facts, "test": data._facts["dev"], "dev": data._facts["test"]}
    other = dataclasses.replace(data, _pairs=turned, _facts=facts)
    view = other.for_fitting()
    watched = ReviewerStatus(**{part.name: getattr(view, part.name) for part in dataclasses.fields(view)})
    method = quick(name)
    method.fit(graph, watched, "all" if method.joint else "may_treat", 0)
    assert np.array_equal(before, method.scores(test.head, test.tail, "may_treat"))


def test_names_that_are_wrong_are_explained() -> None:
    for name in ("", "svd", "svd+", "word2vec+ntn", "svd+transformer", "+ntn"):
        with pytest.raises(UsageError, match="unknown method"):
            resolver.resolve(name)
    with pytest.raises(UsageError, match="dimensions"):
        resolver.resolve("svd+ntn", encoder={"dimensions": 3})
    with pytest.raises(UsageError, match="takes no options"):
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
