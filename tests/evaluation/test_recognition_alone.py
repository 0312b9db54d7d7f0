"""Stage 2 asked about the pair itself: equal to the equations, learned, and no part of any prediction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.planted import Plan, planted, planted_communities

from cogstage.errors import CogstageError
from cogstage.estimator import CogStage
from cogstage.evaluation.methods import find
from cogstage.evaluation.metrics import score
from cogstage.model.network import Network

RELATIONS = ("may_treat", "causes")
OPTIONS = {"dimension": 8, "tower": 8, "associations": 3, "recall_passes": 1, "recognition_passes": 1}


def test_margin_is_that_of_the_equations() -> None:
    graph, data = planted_communities(800, relations=RELATIONS)
    model = CogStage(**OPTIONS, folds=0, decision_epochs=1, decision_steps=0).fit(graph, data)
    network = model.fitted.network
    assert isinstance(network, Network)
    stage, ppmi = network.recognition, graph.ppmi().toarray()
    pairs = data.pairs("causes", "test")
    number = data.relations.index("causes")
    with torch.no_grad():
        both = [v / v.norm(dim=1, keepdim=True) * 8**0.5 for v in (network.recall.term, stage.fact_vectors)]
        seen = torch.cat(both, 1) + stage.offset
        for head, tail, margin in zip(
            pairs.head[:20], pairs.tail[:20], model.recognised(pairs.head, pairs.tail, "causes"), strict=False
        ):
            left = (seen[head] @ stage.w_head + stage.b_head).tanh()
            right = (seen[tail] @ stage.w_tail + stage.b_tail).tanh()
            expected = stage.scale * (left @ stage.matrix[number] @ right) + stage.bias[number]  # NA is 0
            expected = expected + stage.ppmi[number] * ppmi[head, tail]
            assert margin == pytest.approx(float(expected), abs=1e-5)


def test_it_learns_every_relation_from_one_fit_and_says_probabilities() -> None:
    graph, data = planted(Plan(facts=900))
    method = find("recognition")
    with pytest.raises(CogstageError, match="not fitted"):
        method.scores(np.array([0]), np.array([1]), "may_treat")
    method.fit(graph, data.for_fitting(), "all", 0)
    for relation in data.relations:
        pairs = data.pairs(relation, "test")
        figures = score(pairs.label, method.scores(pairs.head, pairs.tail, relation))
        assert figures["auroc"] > 0.8
        assert figures["brier"] < 0.2
