"""The course of the learning rate in a phase, and what decays how fast."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_model import small_data
from training_settings import SMALL

from cogstage.model.config import Config
from cogstage.training.default import DefaultTraining, Phase


def test_the_rate_rises_for_a_tenth_of_a_phase_and_falls_to_nothing() -> None:
    factor = [Phase(2, "", 1000, 1000).factor(step) for step in range(1000)]
    assert factor[0] == pytest.approx(0.04)
    assert factor[50] == pytest.approx(0.52)
    assert factor[100] == pytest.approx(1.0, abs=1e-3)
    assert factor[550] == pytest.approx(0.5, abs=1e-3)  # half way down a cosine
    assert factor[-1] < 2e-4
    assert int(np.argmax(factor)) == 100
    assert (np.diff(factor[:101]) > 0).all()
    assert (np.diff(factor[100:]) < 0).all()


def test_offsets_have_a_decay_of_their_own() -> None:
    """SparseAdam moves an offset by the rate at most, so offsets of length 1 shrink by what decays them."""
    graph, data = small_data()

    def lengths(**options: float) -> float:
        config = Config(**{**SMALL, "folds": 0, "recognition_passes": 1, **options})
        training = DefaultTraining(graph, data.for_fitting(), [0], config, 0)
        offset = training._recognitions[-1].offset
        with torch.no_grad():
            offset.fill_(1.0)
        torch.manual_seed(0)
        training.run_round(0, np.random.default_rng(0))
        return float(offset.detach()[training.sampler.candidates].mean())

    plain = lengths(offset_decay=0.0)
    assert lengths(offset_decay=0.0, recognition_decay=10.0) == pytest.approx(plain, abs=0.01)
    assert lengths(offset_decay=20.0) < plain - 0.05
