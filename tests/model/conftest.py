"""Planted graphs with known answers, and torch kept to one thread."""

from __future__ import annotations

import pytest
import torch
from benchmarks.planted import Plan, planted

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset

torch.set_num_threads(1)
SMALL = {"dimension": 16, "associations": 6, "tower": 16, "recall_passes": 2, "recognition_passes": 3, "folds": 2}
QUICK = {**SMALL, "decision_epochs": 1, "decision_steps": 0}
PAPER = {"pair_batch": 64, "negatives": 10, "epochs": 3, "minimum_epochs": 0, "dimension": 16, "associations": 6}


@pytest.fixture(scope="session")
def small() -> tuple[Graph, Dataset]:
    """A planted graph of 300 terms with two relations, and its data set."""
    return planted(Plan())
