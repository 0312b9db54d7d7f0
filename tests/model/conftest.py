"""Planted graphs with known answers, and torch kept to one thread."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
torch.set_num_threads(1)

from benchmarks.planted import Plan, planted  # noqa: E402

from cogstage.graph.cooccurrence import Graph  # noqa: E402
from cogstage.knowledge.dataset import Dataset  # noqa: E402

SMALL = {"dimension": 16, "associations": 6, "tower": 16, "pretrain_recall": 2, "pretrain_recognition": 3}
JOINT = {"pair_batch": 64, "negatives": 10, "epochs": 3, "optimizer": "lazy_adam", "dimension": 16, "associations": 6}


@pytest.fixture(scope="session")
def small() -> tuple[Graph, Dataset]:
    """A planted graph of 300 terms with two relations, and its data set."""
    return planted(Plan())
