"""Planted graphs with known answers, and torch kept to one thread."""

from __future__ import annotations

import pytest
import torch
from benchmarks.planted import Plan, planted

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset

torch.set_num_threads(1)


@pytest.fixture(scope="session")
def small() -> tuple[Graph, Dataset]:
    """A planted graph of 300 terms with two relations, and its data set."""
    return planted(Plan())
