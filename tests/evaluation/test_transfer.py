"""A model on another graph: nothing changes on its own, terms are found by key, and terms never met get answers."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.planted import Plan, planted
from save_planted import save_dataset
from small_model import QUICK
from typer.testing import CliRunner

from cogstage.cli.main import app
from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import SPLITS, Dataset, Pairs
from cogstage.statistics import auroc
from cogstage.training.transfer import matching_nodes, move_facts
from cogstage.triples import Triples

PLAN = Plan(terms=300, edges=9_000, topics=4, facts=420, within=0.8)
OPTIONS = {**QUICK, "recognition_passes": 8}


def thinned(graph: Graph, seed: int) -> Graph:
    """Half of what was counted."""
    count = np.random.default_rng(seed).binomial(2 * graph.count, 0.5)
    kept = count > 0
    return Graph(graph.vocabulary, graph.source[kept], graph.target[kept], count[kept], {"half": seed})


def on_nodes(graph: Graph, nodes: np.ndarray) -> Graph:
    """The part of a graph between some nodes, in the order given."""
    new = np.full(graph.n_nodes, -1, np.int64)
    new[nodes] = np.arange(len(nodes))
    source, target = new[graph.source], new[graph.target]
    kept = (source >= 0) & (target >= 0)
    low, high = np.minimum(source, target)[kept], np.maximum(source, target)[kept]
    order = np.lexsort((high, low))
    old = graph.vocabulary
    columns = (tuple(column[node] for node in nodes) for column in (old.term, old.concept, old.name, old.type))
    vocabulary = Vocabulary(*columns, old.count[nodes])
    count = graph.count[kept][order]
    return Graph(vocabulary, low[order].astype(np.int32), high[order].astype(np.int32), count, {"part": len(nodes)})


def data_on(data: Dataset, graph: Graph, nodes: np.ndarray) -> Dataset:
    """The part of a data set between some nodes."""
    new = np.full(data.n_nodes, -1, np.int64)
    new[nodes] = np.arange(len(nodes))

    def ends(head: np.ndarray, tail: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        kept = (new[head] >= 0) & (new[tail] >= 0)
        return new[head][kept].astype(np.int32), new[tail][kept].astype(np.int32), kept

    pairs, facts = {}, {}
    for split in SPLITS:
        given = data.facts(split)
        head, tail, kept = ends(given.head, given.tail)
        facts[split] = Triples(head, given.relation[kept], tail)
        for relation in data.relations:
            labelled = data.pairs(relation, split)
            head, tail, kept = ends(labelled.head, labelled.tail)
            pairs[relation, split] = Pairs(head, tail, labelled.label[kept])
    manifest = {**data.manifest, "vocabulary_hash": graph.vocabulary.hash, "nodes": graph.n_nodes}
    return Dataset(data.relations, graph.vocabulary.hash, graph.n_nodes, manifest, {}, pairs, facts)


@pytest.fixture(scope="module")
def world() -> tuple[Graph, Dataset, np.ndarray, CogStage]:
    """The whole graph and data set, the nodes that training knows, and a model trained on those."""
    graph, data = planted(PLAN)
    kept = np.flatnonzero(np.random.default_rng(1).random(graph.n_nodes) < 0.85)
    part = on_nodes(graph, kept)
    return graph, data, kept, CogStage("all", **OPTIONS).fit(part, data_on(data, part, kept))


def test_terms_are_matched_by_key_and_facts_go_with_them() -> None:
    old, new = Vocabulary.from_terms(["a", "b", "c", "d"]), Vocabulary.from_terms(["d", "x", "b", "a"])
    match = matching_nodes(old, new)
    assert match.tolist() == [3, -1, 1, 0]
    facts = Triples(np.array([0, 1, 2], np.int32), np.array([0, 1, 0], np.int16), np.array([3, 0, 1], np.int32))
    moved = move_facts(facts, match, 4)
    assert list(zip(moved.head, moved.relation, moved.tail, strict=True)) == [(3, 0, 0), (2, 1, 3)]  # c is gone
    with pytest.raises(UsageError, match="no training fact"):
        move_facts(facts, np.array([-1, -1]), 4)


def test_the_order_of_the_other_graphs_terms_changes_nothing(
    world: tuple[Graph, Dataset, np.ndarray, CogStage],
) -> None:
    graph, _, kept, model = world
    straight = on_nodes(graph, kept)
    order = np.random.default_rng(0).permutation(len(kept))
    mixed = on_nodes(straight, order)
    one, other = model.on_graph(straight), model.on_graph(mixed)
    head, tail = np.arange(0, 100), np.arange(100, 200)
    position = np.argsort(order)
    expected = one.logits(head, tail, model.relations[0])
    for name, array in one.fitted.network.arrays().items():
        rows = order if name in ("recall.term", "recall.fact", "recognition.offset") else ...
        np.testing.assert_allclose(other.fitted.network.arrays()[name], array[rows], atol=1e-5, err_msg=name)
    # mean scores sample facts in the order of their terms
    assert other.logits(position[head], position[tail], model.relations[0]) == pytest.approx(expected, abs=0.1)
    assert expected == pytest.approx(model.logits(head, tail, model.relations[0]), abs=1e-4)


def test_on_its_own_graph_a_model_keeps_its_vectors(world: tuple[Graph, Dataset, np.ndarray, CogStage]) -> None:
    graph, _, kept, model = world
    own, moved = model.fitted.network, model.on_graph(on_nodes(graph, kept)).fitted.network
    for name, array in own.arrays().items():
        np.testing.assert_allclose(moved.arrays()[name], array, atol=1e-5, err_msg=name)


def test_a_term_that_training_never_met_has_the_vectors_of_its_counts(
    world: tuple[Graph, Dataset, np.ndarray, CogStage],
) -> None:
    """υ of a new term is its row of PPMI on the right singular vectors, and it has no offset."""
    graph, _, kept, model = world
    own, moved = model.fitted.network, model.on_graph(graph).fitted.network
    new = np.setdiff1d(np.arange(graph.n_nodes), kept)
    ppmi = on_nodes(graph, kept).ppmi().toarray().astype(float)
    size = (own.term.astype(float) ** 2).sum(0)
    right = ppmi.T @ own.term / size / np.sqrt(size)  # V, whose columns have length 1
    assert np.linalg.norm(right[:, :4], axis=0) == pytest.approx(1.0, abs=0.02)
    rows = graph.ppmi().toarray().astype(float)[np.ix_(new, kept)]
    np.testing.assert_allclose(moved.term[new], rows @ right / np.sqrt(size), atol=1e-4)
    assert not moved.recognition.offset[new].any()
    assert np.array_equal(moved.recognition.offset[kept], own.recognition.offset)


def test_another_count_of_the_same_world_gives_nearly_the_same_answers(
    world: tuple[Graph, Dataset, np.ndarray, CogStage],
) -> None:
    graph, data, kept, model = world
    part = on_nodes(graph, kept)
    held = data_on(data, part, kept)
    moved = model.on_graph(thinned(part, 3))
    assert moved.counts is not model.counts
    for relation in model.relations:
        test = held.pairs(relation, "test")
        home, away = (auroc(test.label, one.logits(test.head, test.tail, relation)) for one in (model, moved))
        assert home is not None and away is not None  # noqa: PT018
        assert away > 0.7
        assert away > home - 0.1


def test_a_term_that_training_never_met_is_answered(world: tuple[Graph, Dataset, np.ndarray, CogStage]) -> None:
    graph, data, kept, model = world
    new = np.setdiff1d(np.arange(graph.n_nodes), kept)
    moved = model.on_graph(graph)
    assert moved.vocabulary.hash == graph.vocabulary.hash
    found = []
    for relation in model.relations:
        pairs = [data.pairs(relation, split) for split in SPLITS]
        head, tail, label = (np.concatenate([getattr(p, end) for p in pairs]) for end in ("head", "tail", "label"))
        cold = np.isin(head, new) | np.isin(tail, new)
        assert cold.sum() > 50
        found.append(auroc(label[cold], moved.logits(head[cold], tail[cold], relation)))
    assert np.mean(found) > 0.7  # type: ignore[arg-type]
    name = graph.vocabulary.term[new[0]]
    with pytest.raises(UsageError, match="unknown term"):
        model.predict(name, graph.vocabulary.term[kept[0]])
    prediction = moved.predict(name, graph.vocabulary.term[kept[0]], "may_treat")
    assert prediction.logit == pytest.approx(
        prediction.baseline + prediction.pair_share + sum(r.share for r in prediction.reasons), abs=1e-6
    )


def test_the_command_answers_on_another_graph_and_says_what_was_trained_on(
    world: tuple[Graph, Dataset, np.ndarray, CogStage], tmp_path: Path
) -> None:
    graph, data, _, model = world
    model.save(tmp_path / "model")
    graph.save(tmp_path / "graph")
    save_dataset(replace(data, manifest={**data.manifest, "nodes": graph.n_nodes}), tmp_path / "data")
    command = ["evaluate", tmp_path / "model", "--dataset", tmp_path / "data", "--graph", tmp_path / "graph"]
    done = CliRunner().invoke(app, [*map(str, command), "--ranking-heads", "0"])
    assert done.exit_code == 0, done.output
    assert "may_treat" in done.stdout
    assert "training facts of the model" not in done.output  # the same split
    swapped = {
        (r, s): data.pairs(r, {"test": "train", "train": "test"}.get(s, s)) for r in data.relations for s in SPLITS
    }
    save_dataset(replace(data, _pairs=swapped), tmp_path / "other")
    command[3] = tmp_path / "other"
    done = CliRunner().invoke(app, [*map(str, command), "--ranking-heads", "0"])
    assert "test facts are training facts of the model" in done.output
