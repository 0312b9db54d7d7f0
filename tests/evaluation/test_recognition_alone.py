"""Stage 2 asked about the pair itself: equal to the equations, learned, and no part of any prediction."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from planted_relation import planted

from cogstage.errors import CogstageError
from cogstage.evaluation.methods import find
from cogstage.evaluation.metrics import score
from cogstage.model.bilinear import Bilinear
from cogstage.rationale.cogstage import CogStage

RELATIONS = ("may_treat", "causes")
OPTIONS = {"dimension": 8, "tower": 8, "associations": 3, "pretrain_recall": 1, "pretrain_recognition": 1, "epochs": 1}


def test_margin_is_that_of_the_equations() -> None:
    graph, data = planted(800, relations=RELATIONS)
    model = CogStage(**OPTIONS, folds=0, least_steps=0).fit(graph, data)
    stage = model.network.recognition
    assert isinstance(stage, Bilinear)
    pairs = data.pairs("causes", "test")
    number = data.relations.index("causes")
    with torch.no_grad():
        vectors = model.network.recall.term
        seen = vectors / vectors.norm(dim=1, keepdim=True) * vectors.shape[1] ** 0.5 + stage.offset
        for head, tail, margin in zip(
            pairs.head[:20], pairs.tail[:20], model.recognised(pairs.head, pairs.tail, "causes"), strict=False
        ):
            left = (seen[head] @ stage.w_head + stage.b_head).tanh()
            right = (seen[tail] @ stage.w_tail + stage.b_tail).tanh()
            expected = stage.scale * (left @ stage.matrix[number] @ right) + stage.bias[number]  # NA is 0
            assert margin == pytest.approx(float(expected), abs=1e-5)


def test_it_learns_every_relation_from_one_fit_and_says_probabilities() -> None:
    graph, data = planted(800, relations=RELATIONS)
    method = find("recognition")
    with pytest.raises(CogstageError, match="not fitted"):
        method.scores(np.array([0]), np.array([1]), "causes")
    method.fit(graph, data.for_fitting(), "all", 0)
    for relation in RELATIONS:
        pairs = data.pairs(relation, "test")
        figures = score(pairs.label, method.scores(pairs.head, pairs.tail, relation))
        assert figures["auroc"] > 0.8  # of few facts: the reference methods come to 0.86 here
        assert figures["brier"] < 0.2
