"""Adding an encoder or a scorer is one file: dropped into a copy of the package, the command line knows it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from benchmarks.planted import planted_communities
from save_planted import save_both
from small_model import save_small_data, small_data

import cogstage
from cogstage.estimator import CogStage

ENCODER = '''
"""Vectors that are the rows of a random projection of the counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress


@dataclass(frozen=True)
class ProjectionEncoder:
    """counts · noise."""

    dimension: int = 32
    """d."""

    name: ClassVar = "projection"
    title: ClassVar = "Random projection"
    quick: ClassVar = {"dimension": 8}
    needs_facts: ClassVar = False

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32."""
        noise = np.random.default_rng(seed).normal(size=(graph.n_nodes, self.dimension))
        return (graph.matrix @ noise).astype(np.float32)
'''
SCORER = '''
"""The cosine of the two vectors, scaled."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn

from cogstage.baselines.classifier import PairClassifier


class CosineLogit(nn.Module):
    """a·cos(h, t) + b."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.bias = nn.Parameter(torch.ones(())), nn.Parameter(torch.zeros(()))

    def forward(self, head: torch.Tensor, tail: torch.Tensor) -> torch.Tensor:
        """(M, d), (M, d) -> (M,)."""
        return self.scale * nn.functional.cosine_similarity(head, tail) + self.bias


@dataclass
class CosineScorer(PairClassifier):
    """Two numbers for each relation."""

    name = "cosine"
    title = "Cosine"

    def module(self, dimension: int) -> nn.Module:
        """A fresh module."""
        return CosineLogit()
'''

MEASURE = '''
"""How many reasons a prediction has."""

import numpy as np


class HowMany:
    """Their number."""

    name = "how_many"
    title = "number of reasons"

    def values(self, predictions):
        """One value per prediction."""
        return np.array([len(p.reasons) for p in predictions], float)
'''


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, to add files to."""
    folder = tmp_path_factory.mktemp("copy")
    source = Path(cogstage.__file__).parent
    shutil.copytree(source, folder / "cogstage")  # with its compiled code, which is still that of the same source
    return folder


def run(copied: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from cogstage.cli.main import run; run(sys.argv[1:])"
    environment = {**os.environ, "PYTHONPATH": str(copied)}
    return subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_an_encoder_and_a_scorer_are_one_file_each(copied: Path, tmp_path: Path) -> None:
    (copied / "cogstage" / "baselines" / "encoders" / "projection.py").write_text(ENCODER, encoding="utf-8")
    (copied / "cogstage" / "baselines" / "scorers" / "cosine.py").write_text(SCORER, encoding="utf-8")
    world, pairs = planted_communities(400)
    about = {**pairs.manifest, "vocabulary_hash": pairs.vocabulary_hash, "nodes": pairs.n_nodes}
    graph, data = save_both(world, replace(pairs, manifest=about), tmp_path)
    methods = "projection+cosine,projection+cosine+fresh"
    arguments = ["--graph", str(graph), "--dataset", str(data), "--out", str(tmp_path / "table"), "--methods", methods]
    done = run(copied, "compare", *arguments, "--seeds", "1", "--no-plots", "--ranking-heads", "0", "--jobs", "1")
    assert done.returncode == 0, done.stderr
    assert "| Random projection + Cosine | 1 | " in done.stdout
    assert "| Random projection + Cosine, fresh negatives | 1 | " in done.stdout
    cells = [json.loads(path.read_text()) for path in (tmp_path / "table" / "dev" / "cells").rglob("*.json")]
    assert {cell["method"] for cell in cells} == set(methods.split(","))
    listed = "from cogstage.evaluation.methods import GROUPS; print(len(GROUPS['paper']), len(GROUPS['fresh']))"
    environment = {**os.environ, "PYTHONPATH": str(copied)}
    counted = subprocess.run([sys.executable, "-c", listed], capture_output=True, text=True, env=environment)
    assert counted.stdout.split() == ["12", "12"]  # the paper's stay the paper's


@pytest.mark.slow
def test_a_rationale_measure_is_one_file(
    copied: Path, small_model_folder: Path, model: CogStage, tmp_path: Path
) -> None:
    (copied / "cogstage" / "evaluation" / "rationale_measures" / "how_many.py").write_text(MEASURE, encoding="utf-8")
    data = save_small_data(tmp_path / "data")
    arguments = ["-d", str(data), "-r", "causes", "--rationales", "--rationale-pairs", "20", "--ranking-heads", "0"]
    done = run(copied, "evaluate", str(small_model_folder), *arguments)
    assert done.returncode == 0, done.stderr
    assert re.search(r"number of reasons +\d", done.stdout)
    done = run(copied, "evaluate", str(small_model_folder), *arguments, "--json")
    (record,) = json.loads(done.stdout)["records"]
    pairs = small_data()[1].pairs("causes", "test")
    rows = np.sort(np.random.default_rng(0).choice(len(pairs), 20, replace=False))
    predictions = model.predict_batch(pairs.head[rows], pairs.tail[rows], "causes")
    assert record["figures"]["how_many"]["mean"] == pytest.approx(np.mean([len(p.reasons) for p in predictions]))
    assert {"known_facts", "counted_together", "opposing_reasons"} < set(record["figures"])


@pytest.mark.slow
def test_a_file_without_its_class_is_named(copied: Path) -> None:
    (copied / "cogstage" / "baselines" / "encoders" / "hollow.py").write_text('"""Nothing."""\n', encoding="utf-8")
    try:
        code = "from cogstage.evaluation.methods import find; find('hollow+distmult')"
        environment = {**os.environ, "PYTHONPATH": str(copied)}
        failed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
        assert "hollow.py has no class whose name is 'hollow'" in failed.stderr
    finally:
        (copied / "cogstage" / "baselines" / "encoders" / "hollow.py").unlink()
