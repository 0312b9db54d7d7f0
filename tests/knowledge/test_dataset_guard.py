"""The guard: what is handed out for fitting holds no dev or test fact, in either direction; and ranking questions."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from test_dataset_build import popular_world

from cogstage.errors import CogstageError, LeakageError, UsageError
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import SPLITS, Dataset, FittingView, Pairs
from cogstage.triples import Triples


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    graph, facts = popular_world()
    return build_dataset(graph, facts, tmp_path_factory.mktemp("guard") / "data", cap=300)


def both_ways(head: np.ndarray, tail: np.ndarray) -> set[tuple[int, int]]:
    pairs = list(zip(head.tolist(), tail.tolist(), strict=True))
    return {*pairs, *((t, h) for h, t in pairs)}


def test_nothing_to_fit_on_holds_a_dev_or_test_fact(data: Dataset) -> None:
    view = data.for_fitting()
    held_out: set[tuple[int, int]] = set()
    for split in ("dev", "test"):
        held_out |= both_ways(data.facts(split).head, data.facts(split).tail)
        for relation in data.relations:
            pairs = data.pairs(relation, split)
            held_out |= both_ways(pairs.head, pairs.tail)  # negatives too: their label is an answer as well
    assert held_out
    train = view.train_facts()
    fitted = [(train.head, train.tail)]
    fitted += [(p.head, p.tail) for p in (view.pairs(relation, "train") for relation in view.relations)]
    for head, tail in fitted:
        assert len(head)
        assert not both_ways(head, tail) & held_out


def test_stopping_on_dev_sees_no_test_fact(data: Dataset) -> None:
    view = data.for_fitting()
    test = both_ways(data.facts("test").head, data.facts("test").tail)
    for relation in view.relations:
        pairs = view.pairs(relation, "dev")
        assert not both_ways(pairs.head, pairs.tail) & test


def test_asking_for_test_pairs_while_fitting_raises(data: Dataset) -> None:
    view = data.for_fitting()
    with pytest.raises(LeakageError, match="test pairs of may_treat were requested during fitting"):
        view.pairs("may_treat", "test")
    with pytest.raises(UsageError, match="no train pairs of cures; its relations are"):
        view.pairs("cures", "train")


def test_no_public_part_of_the_view_holds_anything_of_the_test_split(data: Dataset) -> None:
    view = data.for_fitting()
    assert {key[1] for key in view._pairs} == {"train", "dev"}
    public = {f.name for f in dataclasses.fields(FittingView) if not f.name.startswith("_")}
    assert public == {"relations", "vocabulary_hash", "sources"}  # sources are texts about the input
    methods = {name for name in vars(FittingView) if not name.startswith("_")} - public
    assert methods == {"train_facts", "pairs", "negatives", "is_taken"}  # a new one needs a look at what it hands out
    assert isinstance(view.train_facts(), Triples)
    assert isinstance(view.pairs("causes", "train"), Pairs)
    assert {key[2] for key in view._negatives} == {"train", "dev"}
    with pytest.raises(LeakageError, match="test negatives of may_treat were requested"):
        view.negatives("may_treat", "test", "degree")


def test_is_taken_answers_for_training_facts_in_both_directions_and_for_nothing_else(data: Dataset) -> None:
    view = data.for_fitting()
    train = data.facts("train")
    known = both_ways(train.head, train.tail)
    nodes = np.arange(data.n_nodes)
    head, tail = np.meshgrid(nodes, nodes, indexing="ij")
    expected = np.array([[(h, t) in known for t in nodes.tolist()] for h in nodes.tolist()])
    np.testing.assert_array_equal(view.is_taken(head, tail), expected)
    for split in ("dev", "test"):  # no answer tells a held-out fact from a pair that nobody knows
        held_out = data.facts(split)
        assert not view.is_taken(held_out.head, held_out.tail).any()


@pytest.mark.parametrize("split", ["dev", "test"])
def test_ranking_questions_against_brute_force(data: Dataset, split: str) -> None:
    for index, relation in enumerate(data.relations):
        true: dict[str, set[tuple[int, int]]] = {}
        for name in SPLITS:
            facts = data.facts(name)
            chosen = facts.relation == index
            true[name] = set(zip(facts.head[chosen].tolist(), facts.tail[chosen].tolist(), strict=True))
        everywhere = set.union(*true.values())
        ranking = data.ranking(relation, split)
        assert ranking.candidates.tolist() == sorted({t for _, t in everywhere})
        asked = set()
        for head, answer, known in zip(ranking.head.tolist(), ranking.answer.tolist(), ranking.known, strict=True):
            tail = int(ranking.candidates[answer])
            asked.add((head, tail))
            left_out = {int(t) for t in ranking.candidates[known]}
            assert left_out == {t for h, t in everywhere if h == head and t != tail}
        assert asked == true[split]
        assert len(ranking.head) == len(asked)
    with pytest.raises(UsageError, match="no relation cures"):
        data.ranking("cures")


def test_a_data_set_of_another_graph_is_refused(data: Dataset) -> None:
    with pytest.raises(UsageError, match="built on another graph"):
        data.check_fits(Vocabulary.from_terms(["a", "b"]))


def test_a_damaged_data_set_is_one_line(tmp_path: Path) -> None:
    graph, facts = popular_world(facts=600)
    build_dataset(graph, facts, tmp_path / "data")
    (tmp_path / "data/pairs/causes/dev.parquet").unlink()
    with pytest.raises(CogstageError, match="is damaged"):
        Dataset.load(tmp_path / "data")
    (tmp_path / "data/manifest.json").unlink()
    with pytest.raises(CogstageError, match=r"does not contain manifest\.json"):
        Dataset.load(tmp_path / "data")
