"""Components of other distributions: the example plugin, installed, is known everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_model import save_small_data, small_data

from cogstage.graph.cooccurrence import Graph

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment with the example plugin, installed by pip into a folder of its own."""
    folder, source = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("source")
    for file in EXAMPLE.iterdir():  # pip builds in the folder
        if file.is_file():
            (source / file.name).write_bytes(file.read_bytes())
    how = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--target", str(folder)]
    subprocess.run([sys.executable, "-m", "pip", "install", *how, str(source)], check=True, capture_output=True)
    paths = [str(folder), str(Path(__file__).parents[1] / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def run(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-m", "cogstage", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_reader_is_recognised(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "notes.pairs").write_text("a b\na b c\nc\n")
    assert "lines of codes" in run(installed, "graph", "formats")
    run(installed, "graph", "build", str(tmp_path / "notes.pairs"), "--out", str(tmp_path / "graph"))
    graph = Graph.load(tmp_path / "graph")
    assert graph.made_with["format"] == "pairs"
    assert graph.to_frame("pyarrow").to_pylist() == [
        {"source": "a", "target": "b", "count": 2},
        {"source": "a", "target": "c", "count": 1},
        {"source": "b", "target": "c", "count": 1},
    ]


@pytest.mark.slow
def test_an_encoder_a_scorer_and_a_measure_are_found(
    installed: dict[str, str], small_model_folder: Path, tmp_path: Path
) -> None:
    small_data()[0].save(tmp_path / "graph")
    data = save_small_data(tmp_path / "data")
    how = ["--seeds", "1", "--no-plots", "--ranking-heads", "0", "--jobs", "1", "--methods", "projection+cosine"]
    folders = ["--graph", str(tmp_path / "graph"), "--dataset", str(data), "--out", str(tmp_path / "table")]
    assert "| Random projection + Cosine | 1 | " in run(installed, "compare", *folders, *how)
    arguments = ["-d", str(data), "-r", "causes", "--rationales", "--rationale-pairs", "5", "--ranking-heads", "0"]
    (record,) = json.loads(run(installed, "evaluate", str(small_model_folder), *arguments, "--json"))["records"]
    assert record["figures"]["how_many"]["mean"] > 0


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("[cogstage.encoders]\nsvd = nothing:Svd", "bad defines svd, which cogstage has already"),
        (
            "[cogstage.encoders]\nmine = nothing:Mine",
            "mine of the package bad cannot be loaded: No module named 'nothing'",
        ),
        ("[cogstage.encoders]\nmine = json:JSONDecoder", "mine of the package bad has the name None"),
        ("[cogstage.readers]\nmine = pathlib:Path", "pathlib:Path is not a reader whose format is mine"),
    ],
)
def test_a_bad_plugin_is_named(entry: str, message: str, tmp_path: Path) -> None:
    info = tmp_path / "bad-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bad\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entry + "\n")
    code = (
        "from cogstage.components import component; from cogstage.corpus.readers import readers; readers();"
        "component('cogstage.baselines.encoders', 'mine', 'encoder')"
    )
    paths = [str(tmp_path), str(Path(__file__).parents[1] / "src")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert message in done.stderr.splitlines()[-1]
