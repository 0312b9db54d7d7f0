"""Small promises of training that no figure would show: L_n is a mean, associations are terms of training facts."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.planted import Plan, planted

from cogstage.model.config import Config
from cogstage.training.fitting import prepare

OPTIONS = Config(dimension=16, associations=6, tower=16, folds=2, recall_passes=1, recognition_passes=1)


def test_the_recall_loss_is_a_mean_over_nodes() -> None:
    graph, data = planted(Plan())
    training = prepare(graph, data.for_fitting(), [0], OPTIONS, 0)
    nodes = training._recall_targets.nodes[:7]
    single = [float(training._recall_loss(np.array([node])).detach()) for node in nodes]
    assert float(training._recall_loss(nodes).detach()) == pytest.approx(np.mean(single), rel=1e-5)


def test_associations_are_terms_of_training_facts() -> None:
    graph, data = planted(Plan())
    view = data.for_fitting()
    training = prepare(graph, view, [0], OPTIONS, 0)
    facts = view.train_facts()
    known = set(facts.head.tolist()) | set(facts.tail.tolist())
    assert len(known) < graph.n_nodes  # otherwise there is nothing to tell
    dev = data.pairs(view.relations[0], "dev")
    answer = training._answer(dev.head, dev.tail, 0, -1)
    assert set(answer.association.flatten().tolist()) <= known
