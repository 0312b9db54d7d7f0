"""A comparison run for real on a small planted graph: files, resuming, killing, failing."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from benchmarks.planted import planted_communities
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import cogstage as cs
from cogstage.errors import CogstageError, UsageError
from cogstage.evaluation.metrics import score
from cogstage.evaluation.plots import _bars
from cogstage.evaluation.results import MACRO, Comparison
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset, Pairs

pytestmark = pytest.mark.slow  # each cell is a process of its own

RELATIONS = ("may_treat", "causes")
FLOOR = ["always-positive", "degree", "ppmi"]
METHODS = ["always-positive", "ppmi", "svd+distmult"]


@pytest.fixture(scope="module")
def inputs() -> tuple[Graph, Dataset]:
    return planted_communities(800, relations=RELATIONS)


@pytest.fixture(scope="module")
def finished(inputs: tuple[Graph, Dataset], tmp_path_factory: pytest.TempPathFactory) -> Comparison:
    out = tmp_path_factory.mktemp("comparison") / "table"
    return cs.compare(*inputs, methods=METHODS, seeds=2, out=out, ranking_heads=20, test=True)


def stamps(folder: Path) -> dict[str, int]:
    """When each cell was written, by split and name."""
    cells = folder.glob("*/cells/*/*.json")
    return {f"{path.parts[-4]}/{path.name}": path.stat().st_mtime_ns for path in cells}


def test_results_hold_every_cell_and_metric(finished: Comparison, inputs: tuple[Graph, Dataset]) -> None:
    rows = pq.read_table(finished.folder / "test" / "results.parquet").to_pylist()
    keys = {(row["method"], row["relation"], row["seed"]) for row in rows}
    assert keys == {(m, r, s) for m in METHODS for r in RELATIONS for s in (0, 1)}
    metrics = {row["metric"] for row in rows}
    assert {"f1", "auroc", "auprc", "mcc", "brier", "ece", "mrr", "hits@10", "seconds", "peak_mb"} <= metrics
    by_key = {(r["method"], r["relation"], r["seed"], r["metric"]): r for r in rows}
    pairs = inputs[1].pairs("may_treat", "test")
    path = finished.folder / "test" / "predictions" / "planted" / "svd+distmult~may_treat~1.parquet"
    found = pq.read_table(path).to_pydict()
    assert found["head"] == pairs.head.tolist()
    assert found["label"] == pairs.label.tolist()
    row = by_key["svd+distmult", "may_treat", 1, "f1"]
    assert row["value"] == pytest.approx(score(pairs.label, np.array(found["probability"]))["f1"])
    assert row["low"] <= row["value"] <= row["high"]
    assert by_key["svd+distmult", "may_treat", 1, "peak_mb"]["value"] > 20
    assert by_key["svd+distmult", "causes", 0, "auroc"]["value"] > 0.8


def test_tables_and_plots_are_written(finished: Comparison) -> None:
    markdown = (finished.folder / "test" / "table.md").read_text()
    assert "| SVD + DistMult | **" in markdown
    assert "time (s) | CPU (s) | memory (MB)" in markdown
    latex = (finished.folder / "test" / "table.tex").read_text()
    assert (
        latex.count("\\begin{tabular}") == latex.count("\\end{tabular}") == 6
    )  # two F1s, AUROC, averages, populations, which relation
    assert "may\\_treat" in latex
    rows = list(csv.DictReader(io.StringIO((finished.folder / "test" / "table.csv").read_text())))
    f1 = {(r["method"], r["relation"]): float(r["mean"]) for r in rows if r["metric"] == "f1"}
    mean = np.mean([f1["ppmi", r] for r in RELATIONS])
    assert f1["ppmi", MACRO] == pytest.approx(mean, abs=1e-5)
    names = {path.name for path in (finished.folder / "test" / "plots").iterdir()}
    assert {"f1-bars-planted.svg", "precision-recall-planted.png", "reliability-planted.svg"} <= names
    page = (finished.folder / "test" / "report.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 6  # the icon and five plots
    assert "<caption>F1 on test pairs, planted negatives</caption>" in page


def test_every_bar_stands_beside_its_method(finished: Comparison) -> None:
    canvas = Figure()
    _bars(canvas, finished, "planted", "f1")
    labels = [label.get_text() for label in canvas.axes[0].get_yticklabels()]
    assert labels == ["Always positive", "PPMI", "SVD + DistMult"]
    figures = finished.figures("planted", "f1")
    assert [axes.get_title() for axes in canvas.axes] == [*RELATIONS, MACRO]
    for axes in canvas.axes:
        lengths = [bar.get_width() for bar in axes.patches if isinstance(bar, Rectangle)]
        assert lengths == pytest.approx([figures[method, axes.get_title()].mean for method in METHODS])
    colours = [bar.get_facecolor() for bar in canvas.axes[0].patches]
    assert colours[0] == colours[1] != colours[2]  # the floor, and the paper's baselines


def test_a_second_run_only_does_what_is_missing(finished: Comparison, inputs: tuple[Graph, Dataset]) -> None:
    before = stamps(finished.folder)
    gone = finished.folder / "dev" / "cells" / "planted" / "ppmi~causes~1.json"
    content = json.loads(gone.read_text())
    gone.unlink()
    again = cs.compare(*inputs, methods=METHODS, seeds=2, out=finished.folder, ranking_heads=20, plots=False)
    after = stamps(finished.folder)
    assert {name for name in before if before[name] != after[name]} == {f"dev/{gone.name}"}
    assert json.loads(gone.read_text())["metrics"] == content["metrics"]
    assert again.cells.keys() == finished.cells.keys()
    assert (again.split, finished.split) == ("dev", "test")


def test_a_cell_of_other_settings_is_computed_again(
    finished: Comparison, inputs: tuple[Graph, Dataset], tmp_path: Path
) -> None:
    folder = tmp_path / "table"
    shutil.copytree(finished.folder, folder)
    old, unknown = (folder / "dev" / "cells" / "planted" / f"svd+distmult~causes~{seed}.json" for seed in (0, 1))
    found = json.loads(old.read_text(encoding="utf-8"))
    assert "rate=" in found["settings"]  # it says how the method was set up
    for path, settings in ((old, {"settings": "other ones"}), (unknown, {})):
        cell = {key: value for key, value in found.items() if key != "settings"} | settings
        path.write_text(json.dumps({**cell, "seed": int(path.stem[-1])}), encoding="utf-8")
    before = stamps(folder)
    cs.compare(*inputs, methods=METHODS, seeds=2, out=folder, ranking_heads=0, plots=False)
    assert {name for name, stamp in stamps(folder).items() if stamp != before[name]} == {f"dev/{old.name}"}
    assert json.loads(old.read_text(encoding="utf-8"))["settings"] == found["settings"]


def test_a_folder_of_other_inputs_is_refused(finished: Comparison, inputs: tuple[Graph, Dataset]) -> None:
    graph, data = inputs
    other_graph, other = planted_communities(800, relations=RELATIONS, seed=5)
    with pytest.raises(UsageError, match="another graph"):
        cs.compare(other_graph, other, methods=["degree"], out=finished.folder)
    shuffled = planted_communities(800, relations=RELATIONS, shuffled=True)[1]
    with pytest.raises(UsageError, match="another data set named planted"):
        cs.compare(graph, shuffled, methods=["degree"], out=finished.folder)
    with pytest.raises(UsageError, match="unknown method"):
        cs.compare(graph, data, methods=["word2vec"], out=finished.folder)
    with pytest.raises(UsageError, match="no relation cures"):
        cs.compare(graph, data, methods=["degree"], relations=["cures"], out=finished.folder)


def test_two_data_sets_side_by_side(finished: Comparison, inputs: tuple[Graph, Dataset], tmp_path: Path) -> None:
    graph, data = inputs
    both = {"degree": data, "uniform": planted_communities(800, relations=RELATIONS, shuffled=True)[1]}
    result = cs.compare(graph, both, ["always-positive", "ppmi"], 1, tmp_path / "t", ranking_heads=0, plots=False)
    assert result.datasets == ["degree", "uniform"]
    text = (tmp_path / "t" / "dev" / "table.md").read_text()
    assert "F1, degree | F1, balanced on dev, degree | AUROC, degree | F1, uniform" in text


def test_seeds_with_and_without_ranking_make_one_table(inputs: tuple[Graph, Dataset], tmp_path: Path) -> None:
    """Ranking takes long and may be left out of some seeds: the table then has the mean over those that were ranked."""
    cs.compare(*inputs, methods=["degree"], seeds=1, out=tmp_path / "table", ranking_heads=20)
    result = cs.compare(*inputs, methods=["degree", "ppmi"], seeds=2, out=tmp_path / "table", ranking_heads=0)
    assert result.seeds("planted", "degree", "may_treat") == [0, 1]
    for relation, seeds in (("may_treat", 1), (MACRO, 1)):
        ranked = result.figures("planted", "mrr")["degree", relation]
        assert 0 < ranked.low <= ranked.mean <= ranked.high < 1
        assert ranked.seeds == seeds
    assert result.figures("planted", "f1")["degree", MACRO].seeds == 2
    assert np.isnan(result.figures("planted", "mrr")["ppmi", "may_treat"].mean)
    text = (tmp_path / "table" / "dev" / "table.md").read_text(encoding="utf-8")
    assert "| Degree | 2 | " in text
    assert f"| {result.figures('planted', 'mrr')['degree', MACRO].mean:.3f} |" in text.replace("**", "")


def test_nothing_of_the_test_pairs_is_computed_unless_asked(
    inputs: tuple[Graph, Dataset], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph, data = inputs
    result = cs.compare(graph, data, ["degree"], 1, tmp_path / "t", ranking_heads=5, plots=False)
    assert result.split == "dev"
    assert not (tmp_path / "t" / "test").exists()
    pairs = data.pairs("may_treat", "dev")
    written = pq.read_table(tmp_path / "t" / "dev" / "predictions" / "planted" / "degree~may_treat~0.parquet")
    assert written.column("head").to_pylist() == pairs.head.tolist()
    before = stamps(tmp_path / "t")
    tested = cs.compare(graph, data, ["degree"], 1, tmp_path / "t", ranking_heads=5, plots=False, test=True)
    assert tested.split == "test"
    assert {name for name in stamps(tmp_path / "t") if name not in before} == {
        f"test/degree~{relation}~0.json" for relation in RELATIONS
    }
    assert "on test pairs" in (tmp_path / "t" / "test" / "table.md").read_text(encoding="utf-8")
    assert "test pairs" not in (tmp_path / "t" / "dev" / "table.md").read_text(encoding="utf-8")


def test_names_from_a_manifest_never_leave_the_folder(inputs: tuple[Graph, Dataset], tmp_path: Path) -> None:
    graph, data = inputs
    hostile = dataclasses.replace(data, manifest={"options": {"negatives": "../../escaped"}})
    with pytest.raises(CogstageError, match="is not a valid file name"):
        cs.compare(graph, hostile, ["degree"], 1, tmp_path / "deep" / "t")
    relation = "../../escaped"
    pairs = {(relation, split): data.pairs("causes", split) for split in ("train", "dev", "test")}
    named = dataclasses.replace(data, relations=(relation,), _pairs=pairs)
    with pytest.raises(CogstageError, match="is not a valid file name"):
        cs.compare(graph, {"ok": named}, ["degree"], 1, tmp_path / "deep" / "t2")
    with pytest.raises(CogstageError, match="is not a valid file name"):
        cs.compare(graph, {"../x": data}, ["degree"], 1, tmp_path / "deep" / "t3")
    assert not list(tmp_path.rglob("*escaped*"))
    assert not list(tmp_path.glob("x*"))


def test_a_cell_that_fails_is_named_and_the_rest_is_kept(inputs: tuple[Graph, Dataset], tmp_path: Path) -> None:
    graph, data = inputs
    nothing = Pairs(*(np.empty(0, kind) for kind in (np.int32, np.int32, np.int8)))
    broken = dataclasses.replace(data, _pairs={**data._pairs, ("causes", "train"): nothing})
    with pytest.raises(CogstageError, match=r"1 of 3 runs failed, the first was svd\+distmult .*no training pairs"):
        cs.compare(graph, broken, ["always-positive", "svd+distmult"], 1, tmp_path / "t", ranking_heads=0, plots=False)
    kept = Comparison.gather(tmp_path / "t")
    assert ("planted", "svd+distmult", "may_treat", 0) in kept.cells
    assert ("planted", "svd+distmult", "causes", 0) not in kept.cells
    assert "–" in (tmp_path / "t" / "dev" / "table.md").read_text()


def test_killed_and_started_again(inputs: tuple[Graph, Dataset], tmp_path: Path) -> None:
    graph, data = inputs
    out = tmp_path / "t"
    root = Path(__file__).parents[2]
    script = (
        "from benchmarks.planted import planted_communities\nimport cogstage as cs\n"
        f"graph, data = planted_communities(800, relations={RELATIONS!r})\n"
        f"cs.compare(graph, data, {FLOOR!r}, 1, {str(out)!r}, jobs=1, ranking_heads=0, plots=False)"
    )
    paths = os.pathsep.join(filter(None, (str(root), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": paths}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment, start_new_session=True)
    deadline = time.monotonic() + 120
    while not stamps(out) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    before = stamps(out)
    assert before
    result = cs.compare(graph, data, FLOOR, 1, out, ranking_heads=0, plots=False)
    assert len(result.cells) == len(FLOOR) * len(RELATIONS)
    after = stamps(out)
    assert all(after[name] == stamp for name, stamp in before.items())
