"""A trained network as arrays: their shapes, their file, and prediction without torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from training_settings import QUICK

from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.model.network import Network, network_shapes
from cogstage.model_folder import mapped_arrays


@pytest.fixture(scope="module")
def fitted(small: tuple[Graph, Dataset]) -> CogStage:
    return CogStage("all", **QUICK).fit(*small)


def test_shapes_are_those_of_a_trained_network(fitted: CogStage) -> None:
    network = fitted.fitted.network
    arrays = network.arrays()
    shapes = network_shapes(network.config, len(fitted.vocabulary), len(fitted.relations), len(network.targets))
    assert {name: array.shape for name, array in arrays.items()} == shapes
    again = Network.from_arrays(network.config, network.targets, arrays)
    assert again.targets == network.targets
    assert all(np.array_equal(array, arrays[name]) for name, array in again.arrays().items())


def test_mapped_arrays_are_those_that_the_library_reads(fitted: CogStage, tmp_path: Path) -> None:
    kinds = (np.float64, np.float32, np.int64, np.int32, bool)
    made = {kind.__name__: np.arange(6).reshape(2, 3).astype(kind) for kind in kinds}
    made |= {"empty": np.empty((0, 4), np.float32), "scalar": np.array(2.5)}
    save_file(made, tmp_path / "made.safetensors", {"note": "not an array"})
    save_file({"empty": np.empty(0, np.float32)}, tmp_path / "empty.safetensors")
    fitted.save(tmp_path / "model")
    for file in (*tmp_path.glob("*.safetensors"), *(tmp_path / "model").glob("*.safetensors")):
        mapped, read = mapped_arrays(file), load_file(file)
        assert mapped.keys() == read.keys()
        for name, array in read.items():
            assert mapped[name].dtype == array.dtype
            assert mapped[name].shape == array.shape
            assert np.array_equal(mapped[name], array), name


def test_prediction_never_imports_torch(fitted: CogStage, tmp_path: Path) -> None:
    fitted.save(tmp_path / "model")
    script = """
import sys
from cogstage.estimator import CogStage
model = CogStage.load(sys.argv[1])
prediction = model.predict(0, 1, "may_treat")
assert prediction.reasons
print(repr(prediction.logit), "torch" in sys.modules)
"""
    command = [sys.executable, "-c", script, str(tmp_path / "model")]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    logit, imported = done.stdout.split()
    assert imported == "False"
    assert float(logit) == pytest.approx(fitted.predict(0, 1, "may_treat").logit, abs=1e-5)
