"""What training holds: nothing of a phase that is over, and the same results in blocks as at once."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from benchmarks.planted import Plan, planted

from cogstage.model import recognition
from cogstage.model.config import Config
from cogstage.model.fast.memory import late_zeros, release
from cogstage.training.fitting import prepare

OPTIONS = Config(dimension=16, associations=6, tower=16, folds=2, recall_passes=1, recognition_passes=1)


@pytest.fixture
def no_collection_by_chance() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collection_by_chance")
def test_the_moments_of_a_phase_and_the_folds_are_not_held_when_they_are_over() -> None:
    graph, data = planted(Plan())
    training = prepare(graph, data.for_fitting(), [0], OPTIONS.replace(decision_epochs=1, decision_steps=0), 0)
    folds = [weakref.ref(parameter) for fold in training.network.folds for parameter in fold.parameters()]
    moments, phase = [], None
    for number in range(training.rounds):
        training.run_round(number, np.random.default_rng(number))
        if training._rounds[number][0] is not phase:
            assert not any(entry() is not None for entry in moments)  # those of the phases before
            phase = training._rounds[number][0]
        moments = [weakref.ref(entry) for entry in training.state().values()]
        assert len(moments) > 1
    assert all(parameter() is not None for parameter in folds)
    training.finish()
    assert not any(parameter() is not None for parameter in folds)


@pytest.mark.parametrize("rows", [2, 3, 64])
def test_towers_in_blocks_are_those_computed_at_once(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph, data = planted(Plan())
    training = prepare(graph, data.for_fitting(), [0], OPTIONS, 0)
    network = training.network
    with torch.no_grad():
        nodes = torch.arange(graph.n_nodes)
        head, tail = network.eval().recognition.towers(network.recall.term, nodes, nodes)
        monkeypatch.setattr(recognition, "ROWS", rows)
        views = network.recognition.views(network.recall.term, training.knowledge.facts)
    torch.testing.assert_close((views.head, views.tail), (head, tail), rtol=0, atol=1e-6)


def test_late_zeros_are_zeros() -> None:
    assert torch.equal(late_zeros(3, 4), torch.zeros(3, 4))
    assert torch.equal(late_zeros(5, dtype=torch.float64), torch.zeros(5, dtype=torch.float64))
    release()
