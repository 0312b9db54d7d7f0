"""What an edge costs `dataset build`: arrays alone, on two graphs with the same terms.

`python -m benchmarks memory` measures whole processes at full size; here the arrays are counted exactly.
"""

from __future__ import annotations

import gc
import subprocess
import sys
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks import memory

from cogstage.estimator import CogStage
from cogstage.graph import cooccurrence
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge import edge_lookup
from cogstage.knowledge.build import build_dataset
from cogstage.knowledge.dataset import Dataset
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.table import facts_from_table

FEW, MANY = (memory.Plan(1_200, edges, topics=8, facts=60) for edges in (30_000, 430_000))
LIMIT = 30  # bytes per edge, half of what a whole process may take
SMALL = {
    "dimension": 4, "tower": 4, "associations": 4, "folds": 2,
    "recognition_passes": 1, "decision_epochs": 1, "decision_steps": 0,
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[memory.Plan, Path]:
    found = {}
    for plan in (FEW, MANY):
        found[plan] = tmp_path_factory.mktemp("size")
        memory.write_graph(plan, found[plan] / "graph")
        memory.write_facts(plan, found[plan] / "facts.tsv")
        facts_from_table(found[plan] / "facts.tsv").save(found[plan] / "facts")
        build(found[plan])
    train(found[FEW])  # kernels are compiled before anything is measured
    return found


def build(folder: Path) -> None:
    build_dataset(Graph.load(folder / "graph"), Facts.load(folder / "facts"), folder / "data", minimum=10)


def train(folder: Path) -> None:
    CogStage(**SMALL).fit(Graph.load(folder / "graph"), Dataset.load(folder / "data")).save(folder / "model")


def peak(command: Callable[[Path], Any], folder: Path) -> int:
    gc.collect()
    tracemalloc.start()
    try:
        command(folder)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_an_edge_costs_a_data_set_few_bytes(folders: dict[memory.Plan, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in ((cooccurrence, "CHUNK"), (edge_lookup, "BLOCK")):
        monkeypatch.setattr(module, name, 1 << 13)  # blocks that are small beside the graph, as they are at full size
    few, many = (peak(build, folders[plan]) for plan in (FEW, MANY))
    per_edge = (many - few) / (MANY.edges - FEW.edges)
    assert 11 < per_edge <= LIMIT  # two terms and a count have 12 bytes; less would say that arrays are not seen


def test_reading_a_graph_and_a_data_set_does_not_load_pandas(folders: dict[memory.Plan, Path]) -> None:
    """pyarrow loads it, 60 MB, for most conversions to arrays."""
    pytest.importorskip("pandas")
    code = (
        "import sys; from cogstage import Dataset, Graph;"
        f"Graph.load({str(folders[FEW] / 'graph')!r}); Dataset.load({str(folders[FEW] / 'data')!r});"
        "sys.exit('pandas' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_tracing_sees_arrays() -> None:
    assert peak(lambda folder: np.ones(1_000_000), Path()) >= 8_000_000
