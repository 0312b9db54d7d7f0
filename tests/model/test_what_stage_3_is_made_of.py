"""Small promises of training that no figure would show: associations, signs, and what a step changes."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import torch
from benchmarks.planted import Plan, planted

from cogstage.model.config import Config
from cogstage.training.default import DefaultTraining

OPTIONS = Config(dimension=16, associations=6, tower=16, folds=2, recognition_passes=1)


def test_associations_are_terms_of_training_facts() -> None:
    graph, data = planted(Plan())
    view = data.for_fitting()
    training = DefaultTraining(graph, view, [0], OPTIONS, 0)
    facts = view.train_facts()
    known = set(facts.head.tolist()) | set(facts.tail.tolist())
    assert len(known) < graph.n_nodes  # otherwise there is nothing to tell
    dev = data.pairs(view.relations[0], "dev")
    view_of_dev = training._prepared(-1).view(dev.head.astype(np.int64), dev.tail.astype(np.int64))
    assert set(view_of_dev.association.flatten().tolist()) <= known


def test_a_relations_own_triples_never_count_against_it_whatever_the_labels() -> None:
    """Labels turned round pull the weight of the relation's own triples below 0; it must stay."""
    graph, data = planted(Plan())
    pairs = {
        key: replace(value, label=(1 - value.label).astype(value.label.dtype)) if key[1] == "train" else value
        for key, value in data._pairs.items()
    }
    options = OPTIONS.replace(
        decision_epochs=3, decision_rate=0.2, decision_steps=150, co_occurring=0.0, other_facts=0.0
    )
    training = DefaultTraining(graph, replace(data, _pairs=pairs).for_fitting(), [0], options, 0)
    rng = np.random.default_rng(0)
    for number in range(training.rounds):
        training.run_round(number, rng)
    decision = training.trained().decisions[0]
    assert decision.value[0] == decision.fact[0] == 0  # pulled down to where it may go, and no further
    assert decision.value.any()


def test_a_decision_learns_alone() -> None:
    """Trained with another relation, a decision becomes what it becomes without it."""
    graph, data = planted(Plan())
    decisions = []
    for targets in ([0], [0, 1]):
        options = OPTIONS.replace(folds=0, decision_epochs=2, decision_steps=0, other_facts=0.0)
        training = DefaultTraining(graph, data.for_fitting(), targets, options, 0)
        for number in range(training.rounds):
            torch.manual_seed(number)  # of dropout
            training.run_round(number, np.random.default_rng(number))
        decisions.append(training.trained().decisions[0])
        before = training.sampler.pair_batches(0, np.random.default_rng(0))
        assert len(before) > 1
    for entry in fields(decisions[0]):
        assert np.array_equal(getattr(decisions[0], entry.name), getattr(decisions[1], entry.name)), entry.name


def test_a_step_of_stage_2_touches_the_offsets_of_its_terms_alone() -> None:
    graph, data = planted(Plan())
    options = OPTIONS.replace(recognition_batch=2, fresh_negatives=1)
    training = DefaultTraining(graph, data.for_fitting(), [0], options, 0)
    module = training._recognitions[-1]
    with torch.no_grad():
        module.offset.fill_(1.0)
    phase, _ = training._rounds[0]
    drawn = training.sampler.triple_batch(np.random.default_rng(3))
    next(iter(training._recognition_round(phase, phase.steps // 2, np.random.default_rng(3))))
    touched = np.unique(drawn.triples[:, [0, 2]])
    changed = (module.offset != 1.0).any(1).nonzero()[:, 0].numpy()
    assert np.array_equal(changed, touched)
    assert len(touched) < graph.n_nodes
