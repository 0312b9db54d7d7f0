"""Small promises of training that no figure would show: L_n is a mean, associations are terms of training facts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
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
    training._prepare(-1, training.sampler.dev)
    answer = training._answer(dev.head, dev.tail, 0, -1)
    assert set(answer.association.flatten().tolist()) <= known


def test_a_relations_own_triples_never_count_against_it_whatever_the_labels() -> None:
    """Labels turned round pull the weight of the relation's own triples below 0; it must stay."""
    graph, data = planted(Plan())
    pairs = {
        key: replace(value, label=(1 - value.label).astype(value.label.dtype)) if key[1] == "train" else value
        for key, value in data._pairs.items()
    }
    options = OPTIONS.replace(decision_epochs=3, decision_rate=0.2, decision_steps=150)
    training = prepare(graph, replace(data, _pairs=pairs).for_fitting(), [0], options, 0)
    rng = np.random.default_rng(0)
    for number in range(training.rounds):
        training.run_round(number, rng)
    decision = training.network.decision
    own = decision.own[0]
    with torch.no_grad():
        assert (decision.value[0][own] == 0).all()  # pulled down to where it may go, and no further
        assert (decision.fact[0][own] == 0).all()
