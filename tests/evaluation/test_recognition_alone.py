"""Stage 2 asked about the pair itself: equal to the equations, learned, and no part of any prediction."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.planted import Plan, planted, planted_communities

from cogstage.errors import CogstageError
from cogstage.estimator import CogStage
from cogstage.evaluation.methods import find
from cogstage.evaluation.metrics import score
from cogstage.model.network import Network

RELATIONS = ("may_treat", "causes")
OPTIONS = {"dimension": 8, "tower": 8, "associations": 3, "recognition_passes": 1}


def test_the_score_is_that_of_the_equations() -> None:
    graph, data = planted_communities(800, relations=RELATIONS)
    model = CogStage(**OPTIONS, folds=0, decision_epochs=1, decision_steps=0).fit(graph, data)
    network = model.fitted.network
    assert isinstance(network, Network)
    stage, ppmi = network.recognition, graph.ppmi().toarray()
    pairs = data.pairs("causes", "test")
    k = data.relations.index("causes")
    both = [v / np.linalg.norm(v, axis=1, keepdims=True) * 8**0.5 for v in (network.term, network.fact)]
    x = np.concatenate(both, 1) + stage.offset
    for head, tail, score_of_pair in zip(
        pairs.head[:20], pairs.tail[:20], model.recognised(pairs.head, pairs.tail, "causes"), strict=False
    ):
        left, right = np.tanh(x[head] @ stage.w_head + stage.b_head), np.tanh(x[tail] @ stage.w_tail + stage.b_tail)
        related, contrast = (0.25 * (128 / 8) ** 0.5 * (left @ m[k] @ right) for m in (stage.related, stage.contrast))
        related = related + stage.related_bias[k] + stage.ppmi[k] * ppmi[head, tail]
        contrast = contrast + stage.contrast_bias[k] + network.config.margin
        assert score_of_pair == pytest.approx(-np.log(np.exp(-related) + np.exp(-contrast)), abs=1e-5)


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
