"""Figures over the populations: intervals, reliability by kind, tables, and contraindicated@N, against plain loops."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from benchmarks.planted import Plan, planted

from cogstage.evaluation.contraindicated import contraindicated_at
from cogstage.evaluation.evaluate import evaluate
from cogstage.evaluation.measure import measure
from cogstage.evaluation.population_figures import (
    by_relation_table,
    kind_reliability,
    population_figures,
    populations_table,
    reliability_table,
    which_by_relation_table,
    which_table,
)
from cogstage.evaluation.populations import (
    KINDS,
    PopulationLogits,
    Populations,
    join_logits,
    populations,
    score_populations,
)
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import SPLITS, Dataset
from cogstage.statistics import log_odds
from cogstage.triples import TripleIndex, Triples, usual_types


@pytest.fixture(scope="module")
def material() -> tuple[Graph, Dataset]:
    return planted(Plan(relations=5, facts=200, terms=300, edges=6000))


@pytest.fixture(scope="module")
def scored(material: tuple[Graph, Dataset]) -> tuple[Populations, PopulationLogits]:
    graph, data = material
    pairs = populations(graph, data, "dev")
    return pairs, join_logits([score_populations(by_hash, pairs, relation) for relation in data.relations])


def by_hash(heads: np.ndarray, tails: np.ndarray, relation: str) -> np.ndarray:
    return 3 * np.sin(heads * 1.7 + tails * 0.3 + len(relation))


def test_figures_and_tables_agree(scored: tuple[Populations, PopulationLogits]) -> None:
    pairs, logits = scored
    found = population_figures(pairs, logits)
    for row in found["relations"].values():
        for kind in KINDS:
            low, high = row[kind]["interval"]
            if row[kind]["negatives"]:
                assert low <= row[kind]["value"] <= high
    table = populations_table({"one": found["average"], "half": dict.fromkeys((*KINDS, "mean"), 0.5)}, "dev")
    assert [row[0] for row in table.rows] == ["one", "half"]
    assert f"{found['average']['hard']:.3f}" in table.text()
    which = found["which_relation"]
    assert f"{which['likeliest_true']:.3f}" in which_table({"x": which}, "dev").text()
    assert all(relation in by_relation_table(found).text() for relation in pairs.relations)
    assert f"{which['pairs']:,}" in which_by_relation_table(found).caption
    assert f"{found['reliability']['other']['ece']:.3f}" in reliability_table(found).text()


def test_reliability_weighs_facts_and_negatives_the_same() -> None:
    logits = PopulationLogits(
        {"causes": log_odds(np.array([0.85, 0.85, 0.15]))},
        {(kind, "causes"): log_odds(np.array([0.85, 0.15, 0.15, 0.15, 0.15, 0.15])) for kind in KINDS},
        {},
    )
    found = kind_reliability(logits, "hard")
    # six negatives weigh half each: 2 of 2.5 are true at .85, and 1 of 3.5 at .15
    assert found["bins"] == [
        {"predicted": pytest.approx(0.15), "true": pytest.approx(1 / 3.5), "pairs": 6},
        {"predicted": pytest.approx(0.85), "true": pytest.approx(2 / 2.5), "pairs": 3},
    ]
    expected = (abs(0.15 - 1 / 3.5) * 3.5 + abs(0.85 - 2 / 2.5) * 2.5) / 6
    assert found["ece"] == pytest.approx(expected)


def test_reliability_of_a_calibrated_scorer_is_near_the_diagonal() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(40_000)
    true = rng.random(40_000) < p
    negatives = {(kind, "causes"): log_odds(p[~true]) for kind in KINDS}
    assert kind_reliability(PopulationLogits({"causes": log_odds(p[true])}, negatives, {}), "degree")["ece"] < 0.02


def test_balanced_f1_is_at_the_threshold_of_dev(material: tuple[Graph, Dataset]) -> None:
    _, data = material

    def timid(heads: np.ndarray, tails: np.ndarray) -> np.ndarray:
        return 0.4 / (1 + np.exp(-by_hash(heads, tails, "")))  # never says yes at 0.5

    found = measure(data, "causes", timid, "test").metrics
    assert found["f1"]["value"] == 0
    dev, test = data.pairs("causes", "dev"), data.pairs("causes", "test")
    ordered = np.sort(timid(dev.head, dev.tail))[::-1]
    positives = int(dev.label.sum())
    threshold = (ordered[positives - 1] + ordered[positives]) / 2
    yes = timid(test.head, test.tail) >= threshold
    hits = (yes & (test.label == 1)).sum()
    assert found["f1_balanced"]["value"] == pytest.approx(2 * hits / (yes.sum() + test.label.sum()))


class Fixed:
    """A model that gives the log-odds of :func:`by_hash` and knows the training facts."""

    def __init__(self, graph: Graph, data: Dataset) -> None:
        self.relations = self.all_relations = data.relations
        self.facts = TripleIndex(data.facts("train"), len(data.relations), data.n_nodes)
        types = usual_types(graph.vocabulary.type, data.facts("train"), len(data.relations))
        self.explainer = SimpleNamespace(types=types)
        self._train = data.facts("train")
        self.graph, self.vocabulary = graph, graph.vocabulary

    def check_relation(self, relation: str) -> None:
        assert relation in self.relations

    def probabilities(self, heads: Any, tails: Any, relation: str) -> np.ndarray:
        return 1 / (1 + np.exp(-self.logits(heads, tails, relation)))

    def logits(self, heads: Any, tails: Any, relation: str) -> np.ndarray:
        return by_hash(np.asarray(heads), np.asarray(tails), relation)

    def ends(self, relation: str, side: str) -> np.ndarray:
        own = self._train.relation == self.relations.index(relation)
        return np.unique(getattr(self._train, side)[own]).astype(np.int64)


def named(data: Dataset, *splits: str) -> set[tuple[int, str, int]]:
    facts = Triples.join([data.facts(split) for split in splits])
    rows = zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True)
    return {(h, data.relations[r], t) for h, r, t in rows}


def test_contraindicated_drugs_are_counted_as_by_hand(material: tuple[Graph, Dataset]) -> None:
    graph, data = material
    model: Any = Fixed(graph, data)
    found = contraindicated_at(model, data, n=5, disorders=10_000)
    assert found is not None
    known, seen = named(data, *SPLITS), named(data, "train")
    counts, held_out = [], []
    for disorder in model.ends("may_treat", "tail").tolist():
        drugs = [d for d in model.ends("may_treat", "head").tolist() if (d, "may_treat", disorder) not in known]
        if not any((d, "contraindicates", disorder) in known for d in drugs):
            continue
        logit = dict(zip(drugs, by_hash(np.array(drugs), np.full(len(drugs), disorder), "may_treat"), strict=True))
        first = sorted(drugs, key=lambda drug: -logit[drug])[:5]
        counts.append(sum((drug, "contraindicates", disorder) in known for drug in first))
        held_out.append(sum((drug, "contraindicates", disorder) in known - seen for drug in first))
    assert found.disorders == len(counts) > 10
    assert found.by_log_odds == pytest.approx(np.mean(counts))
    assert found.held_out_by_log_odds == pytest.approx(np.mean(held_out))
    assert 0 < found.held_out_by_log_odds < found.by_log_odds
    # what is known to contraindicate is contradicted, and stands below the other candidates
    assert found.after_verdict < found.by_log_odds
    assert "contraindicated@5" in found.table().caption


def test_contraindicated_needs_both_relations(material: tuple[Graph, Dataset]) -> None:
    graph, data = material
    model: Any = Fixed(graph, data)
    model.relations = ("may_treat", "causes")
    assert contraindicated_at(model, data) is None


def test_evaluate_reports_contraindicated_drugs(material: tuple[Graph, Dataset]) -> None:
    graph, data = material
    model: Any = Fixed(graph, data)
    data = replace(data, vocabulary_hash=graph.vocabulary.hash)
    asked = {"relations": ["may_treat"], "ranking_heads": 0}
    expected = contraindicated_at(model, data, n=3)
    assert expected is not None
    assert evaluate(model, data, candidates=3, **asked)["contraindicated"] == expected.to_dict()
    assert evaluate(model, data, candidates=0, **asked)["contraindicated"] is None
