"""The ablation: a seed gives the same figures again."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from benchmarks.ablation import _contrasts, _one_seed
from benchmarks.planted import Plan, planted

OPTIONS = {"dimension": 16, "associations": 6, "tower": 16, "folds": 2, "recognition_passes": 2, "decision_steps": 40}


@pytest.mark.slow
def test_a_seed_gives_the_same_figures_again() -> None:
    graph, data = planted(Plan(facts=150))
    contrasts, tables = _contrasts(graph, data), []
    for before in (1, 2):
        torch.manual_seed(before)  # whatever ran before
        tables.append(dict(_one_seed(graph, data.for_fitting(), contrasts, 0, OPTIONS, again=False)))
    np.testing.assert_equal(*tables)
    table = tables[0]
    assert set(table["the default model"]) == {*contrasts, "AUROC", "effective reasons"}
    same = [name for name, figures in table.items() if figures == table["the default model"]]
    assert same == ["the default model"]  # every row is another model
