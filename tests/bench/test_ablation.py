"""The ablation: a seed gives the same figures again."""

from __future__ import annotations

import torch
from benchmarks.ablation import _first_stages, _stage_3
from benchmarks.planted import Plan, planted

from cogstage.model.config import Config

OPTIONS = Config(dimension=16, associations=6, tower=16, folds=2, recognition_passes=2)


def test_a_seed_gives_the_same_figures_again() -> None:
    graph, data = planted(Plan())
    found = []
    for before in (1, 2):
        torch.manual_seed(before)  # whatever ran before
        training = _first_stages(graph, data.for_fitting(), OPTIONS, 0)
        torch.manual_seed(before)
        found.append((training.network.recognition.matrix.sum().item(), _stage_3(training, OPTIONS, {}, {}, 0)))
    assert found[0] == found[1]
