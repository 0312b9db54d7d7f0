"""The three populations and the which-relation table, against loops over plain sets."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from benchmarks.planted import Plan, planted
from sklearn.metrics import roc_auc_score

from cogstage.evaluation.populations import (
    KINDS,
    RelatedPairs,
    join_logits,
    macro_aurocs,
    population_aurocs,
    populations,
    score_populations,
    which_relation,
)
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import SPLITS, Dataset
from cogstage.knowledge.facts import Facts
from cogstage.relations import contradict

Triple = tuple[int, str, int]


@pytest.fixture(scope="module")
def material() -> tuple[Graph, Dataset]:
    return planted(Plan(relations=5, facts=120, terms=300, edges=6000))


def triples(data: Dataset, *splits: str) -> set[Triple]:
    parts = [data.facts(split) for split in splits]
    return {
        (int(h), data.relations[r], int(t)) for f in parts for h, r, t in zip(f.head, f.relation, f.tail, strict=True)
    }


def allowed_types(graph: Graph, data: Dataset, relation: str) -> set[tuple[str, str]]:
    """Types of at least 1 % of the training facts."""
    kinds = [
        (graph.vocabulary.type[h], graph.vocabulary.type[t]) for h, r, t in triples(data, "train") if r == relation
    ]
    return {kind for kind in kinds if kinds.count(kind) >= 0.01 * len(kinds)}


def as_set(ends: tuple[np.ndarray, np.ndarray]) -> set[tuple[int, int]]:
    return set(zip(ends[0].tolist(), ends[1].tolist(), strict=True))


@pytest.mark.parametrize("split", ["dev", "test"])
def test_other_relations_are_the_related_pairs_whose_types_fit(material: tuple[Graph, Dataset], split: str) -> None:
    graph, data = material
    found = populations(graph, data, split)
    everywhere, here = triples(data, *SPLITS), triples(data, split)
    for relation in data.relations:
        types = allowed_types(graph, data, relation)
        pairs = {(h, t) for h, _, t in here} | {(t, h) for h, _, t in here}
        expected = {
            (h, t)
            for h, t in pairs
            if (h, relation, t) not in everywhere and (graph.vocabulary.type[h], graph.vocabulary.type[t]) in types
        }
        assert as_set(found.negatives["other", relation]) == expected
        assert as_set(found.facts[relation]) == {(h, t) for h, r, t in here if r == relation}


def test_related_pairs_hold_a_fact_and_have_several_possible_relations(material: tuple[Graph, Dataset]) -> None:
    graph, data = material
    related = populations(graph, data, "dev").related
    types = {relation: allowed_types(graph, data, relation) for relation in data.relations}
    kind = graph.vocabulary.type
    expected = {
        (h, t)
        for h, _, t in triples(data, "dev")
        if sum((kind[h], kind[t]) in types[relation] for relation in data.relations) > 1
    }
    assert as_set((related.head, related.tail)) == expected
    assert len(related) == len(expected) > 0
    for row, (h, t) in enumerate(zip(related.head.tolist(), related.tail.tolist(), strict=True)):
        for column, relation in enumerate(data.relations):
            assert related.true[row, column] == ((h, relation, t) in triples(data, *SPLITS))
            assert related.known[row, column] == ((h, relation, t) in triples(data, "train"))
            assert related.possible[row, column] == ((kind[h], kind[t]) in types[relation])


def test_negatives_are_drawn_where_the_data_set_has_none(material: tuple[Graph, Dataset]) -> None:
    graph, data = material
    found, again = populations(graph, data, "dev"), populations(graph, data, "dev")
    known = {frozenset((h, t)) for h, _, t in triples(data, *SPLITS)}
    edges = {frozenset(pair) for pair in zip(graph.source.tolist(), graph.target.tolist(), strict=True)}
    for kind in ("degree", "hard"):
        for relation in data.relations:
            pairs = as_set(found.negatives[kind, relation])
            assert pairs
            assert not {frozenset(pair) for pair in pairs} & known
            assert pairs == as_set(again.negatives[kind, relation])
            heads = {h for h, r, _ in triples(data, *SPLITS) if r == relation}
            assert {h for h, _ in pairs} <= heads
    hard = [frozenset(p) for relation in data.relations for p in as_set(found.negatives["hard", relation])]
    assert np.mean([pair in edges for pair in hard]) > 0.9
    other_seed = populations(graph, data, "dev", seed=1)
    assert any(as_set(found.negatives["hard", r]) != as_set(other_seed.negatives["hard", r]) for r in data.relations)


def test_a_data_set_folder_gives_its_own_negatives(material: tuple[Graph, Dataset], tmp_path) -> None:
    graph, planted_data = material
    names = graph.vocabulary.term
    facts = Facts.from_statements([(names[h], r, names[t], "planted") for h, r, t in triples(planted_data, *SPLITS)])
    built = {
        kind: build_dataset(graph, facts, tmp_path / kind, negatives=kind, minimum=10) for kind in ("degree", "hard")
    }
    here, there = (populations(graph, built[kind], "dev") for kind in ("degree", "hard"))
    for kind in KINDS:
        for relation in here.relations:
            assert as_set(here.negatives[kind, relation]) == as_set(there.negatives[kind, relation])
    shown = built["hard"].pairs("may_treat", "dev")
    assert as_set(here.negatives["hard", "may_treat"]) == as_set(
        (shown.head[shown.label == 0], shown.tail[shown.label == 0])
    )
    # drawn again without the folder, with the same seed: the same pairs
    bare = populations(graph, replace(built["degree"], _negatives={}), "dev", seed=0)
    assert as_set(bare.negatives["hard", "causes"]) == as_set(here.negatives["hard", "causes"])


def test_scores_are_those_of_each_group(material: tuple[Graph, Dataset]) -> None:
    graph, data = material
    pairs = populations(graph, data, "dev")

    def method(heads: np.ndarray, tails: np.ndarray, relation: str) -> np.ndarray:
        return np.sin(heads * 7.0 + tails * 3.0 + len(relation))

    logits = join_logits([score_populations(method, pairs, relation) for relation in data.relations])
    aurocs = population_aurocs(logits)
    for relation in data.relations:
        np.testing.assert_array_equal(logits.facts[relation], method(*pairs.facts[relation], relation))
        np.testing.assert_array_equal(
            logits.related[relation], method(pairs.related.head, pairs.related.tail, relation)
        )
        for kind in KINDS:
            head, tail, label = pairs.pairs(kind, relation)
            if 0 < label.sum() < len(label):
                expected = roc_auc_score(label, method(head, tail, relation))
                assert aurocs[relation][kind] == pytest.approx(expected, abs=1e-12)
    macro = macro_aurocs({"a": {"degree": 0.9, "hard": 0.6, "other": 0.3}, "b": {"degree": 0.7, "hard": 1, "other": 0}})
    assert macro == pytest.approx({"degree": 0.8, "hard": 0.8, "other": 0.15, "mean": 1.75 / 3})


NAMES = ("may_treat", "may_prevent", "contraindicates", "causes", "symptom_of")


def counted(related: RelatedPairs, logit: np.ndarray) -> dict[str, float]:
    """The table by loops; the verdict by its definition: an opposite that is likelier contradicts."""
    likeliest, yes, likely, both_yes, both_likely, pairs = [], [], [], [], [], 0
    for row in range(len(related)):
        options = [column for column in range(len(NAMES)) if related.possible[row, column]]
        if len(options) < 2:
            continue
        pairs += 1
        best = max(options, key=lambda column: logit[row, column])
        likeliest.append(bool(related.true[row, best]))
        called: list[int] = []
        for column in sorted(options, key=lambda column: -logit[row, column]):
            if logit[row, column] >= 0 and not any(contradict(NAMES[column], NAMES[other]) for other in called):
                called.append(column)
        for column in options:
            if not related.true[row, column]:
                yes.append(logit[row, column] >= 0)
                likely.append(column in called)
        said = [column for column in options if logit[row, column] >= 0]
        both_yes.append(any(contradict(NAMES[a], NAMES[b]) for a, b in combinations(said, 2)))
        both_likely.append(any(contradict(NAMES[a], NAMES[b]) for a, b in combinations(called, 2)))
    names = ("likeliest_true", "untrue_yes", "untrue_likely", "opposites_yes", "opposites_likely")
    lists = (likeliest, yes, likely, both_yes, both_likely)
    return {"pairs": pairs, **{name: float(np.mean(v)) for name, v in zip(names, lists, strict=True)}}


def test_which_relation_is_counted_as_by_hand() -> None:
    rng = np.random.default_rng(3)
    true = rng.random((200, 5)) < 0.25
    possible = (rng.random((200, 5)) < 0.7) | true
    related = RelatedPairs(np.arange(200), np.arange(200), possible, true, np.zeros((200, 5), bool))
    logit = rng.normal(size=(200, 5))
    found = which_relation(related, NAMES, {name: logit[:, n] for n, name in enumerate(NAMES)})
    expected = counted(related, logit)
    assert {"pairs": found.pairs, **found.shares()} == pytest.approx(expected)
    assert found.opposites_likely == 0 < found.opposites_yes
    assert found.untrue_likely < found.untrue_yes
    untrue = possible & ~true
    for number, name in enumerate(NAMES):
        rows = untrue[:, number] & (possible.sum(1) > 1)
        assert found.by_relation[name]["untrue"] == rows.sum()
        assert found.by_relation[name]["untrue_yes"] == pytest.approx((logit[rows, number] >= 0).mean())


def test_ties_count_in_part_and_training_facts_are_known() -> None:
    true = np.array([[True, False, False], [True, False, False]])
    known = np.array([[False, False, False], [True, False, False]])
    related = RelatedPairs(np.arange(2), np.arange(2), np.ones((2, 3), bool), true, known)
    names = ("may_treat", "causes", "symptom_of")
    found = which_relation(related, names, {name: np.ones(2) for name in names})
    assert found.likeliest_true == pytest.approx(1 / 3)  # one of three that tie
    # symptom_of has no opposite: likely twice; causes: in row 0 it ties with may_treat, which comes first; in row 1
    # may_treat is known. Both times it is contradicted.
    assert found.by_relation["causes"]["untrue_likely"] == 0
    assert found.by_relation["symptom_of"]["untrue_likely"] == 1
    assert found.untrue_yes == 1
    assert found.untrue_likely == 0.5


def test_a_method_of_few_relations_is_measured_on_those() -> None:
    rng = np.random.default_rng(0)
    true = rng.random((50, 5)) < 0.4
    related = RelatedPairs(np.arange(50), np.arange(50), np.ones((50, 5), bool), true, np.zeros((50, 5), bool))
    logit = rng.normal(size=50)
    one = which_relation(related, NAMES, {"causes": logit})
    assert one.pairs == 0
    assert np.isnan(one.likeliest_true)
    two = which_relation(related, NAMES, {"causes": logit, "may_treat": -logit})
    expected = np.where(logit > 0, true[:, 3], true[:, 0]).mean()
    assert two.pairs == 50
    assert two.likeliest_true == pytest.approx(expected)
