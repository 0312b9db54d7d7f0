"""The pipeline on a made-up hospital: stages resume, are measured with their children, and survive killed workers."""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from benchmarks import hospital_end_to_end as pipeline
from benchmarks import hospital_two_workers as workers
from benchmarks.hospital import Plan, write_hospital
from benchmarks.measured_command import disk_mb, run_measured

PLAN = Plan()


def counting_stage(name: str, out: str, code: str = "pass") -> pipeline.Stage:
    """A stage that adds a letter to a file each time it runs."""
    script = f"from pathlib import Path; p = Path({out!r}); p.write_text((p.read_text() if p.exists() else '') + 'x')"
    return pipeline.Stage(name, Path(out).name, lambda folder: [sys.executable, "-c", f"{script}; {code}"])


def test_finished_stages_are_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = str(tmp_path / "first"), str(tmp_path / "second")
    failing = [counting_stage("one", first), counting_stage("two", second, "raise SystemExit('no space left')")]
    monkeypatch.setattr(pipeline, "stages", lambda plan, training: failing)
    with pytest.raises(SystemExit, match="no space left"):
        pipeline.run_stages(tmp_path, PLAN, {})
    monkeypatch.setattr(pipeline, "stages", lambda plan, training: [failing[0], counting_stage("two", second)])
    rows = pipeline.run_stages(tmp_path, PLAN, {})
    assert pipeline.run_stages(tmp_path, PLAN, {}) == rows
    assert (Path(first).read_text(), Path(second).read_text()) == ("x", "xx")
    assert [row["stage"] for row in rows] == ["one", "two"]
    with pytest.raises(SystemExit, match="another plan"):
        pipeline.run_stages(tmp_path, replace(PLAN, seed=1), {})


def test_training_resumes_only_where_there_is_a_checkpoint(tmp_path: Path) -> None:
    train = next(stage for stage in pipeline.stages(PLAN, pipeline.TRAINING) if stage.name == "train")
    assert "--resume" not in train.command(tmp_path)
    (tmp_path / "model" / "checkpoint").mkdir(parents=True)
    assert "--resume" in train.command(tmp_path)
    assert f"decision_epochs={pipeline.TRAINING['decision_epochs']}" in train.command(tmp_path)


def test_memory_is_that_of_all_processes(tmp_path: Path) -> None:
    """Two children of 80 MB each, at the same time: no single process has held so much."""
    held = "b = bytearray(80 << 20); b[::4096] = b[::4096]; input()"
    script = f"""
import subprocess, sys, time
children = [subprocess.Popen([sys.executable, "-c", {held!r}], stdin=subprocess.PIPE) for _ in (1, 2)]
time.sleep(5)
for child in children:
    child.communicate(b"done\\n")
"""
    used = run_measured([sys.executable, "-c", script], tmp_path / "log")
    assert 160 < used["peak_mb"] < 260
    assert used["processor_seconds"] > 0


def test_memory_of_a_short_command_is_seen(tmp_path: Path) -> None:
    script = "import time; b = bytearray(40 << 20); b[::4096] = b[::4096]; time.sleep(0.2)"
    assert 40 < run_measured([sys.executable, "-c", script], tmp_path / "log")["peak_mb"] < 80


def test_disk_is_that_of_a_file_or_of_all_below_a_folder(tmp_path: Path) -> None:
    for name in ("one", "deep/two"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(bytes(1 << 19))
    assert (disk_mb(tmp_path), disk_mb(tmp_path / "one")) == (1.0, 0.5)


def test_a_run_that_ends_before_the_killing_says_so(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="over before anything was killed"):
        workers._run("graph, it", [sys.executable, "-c", "pass"], tmp_path, workers.Killing(lambda: False, print))


def test_the_data_alone(tmp_path: Path) -> None:
    plan = replace(pipeline.QUICK, patients=100)
    pipeline.run(tmp_path / "run", plan, pipeline.QUICK_TRAINING, str(tmp_path), data_only=True)
    found = json.loads((tmp_path / "hospital_end_to_end.json").read_text(encoding="utf-8"))
    assert [row["stage"] for row in found["rows"]][-1] == "dataset build"
    assert sum(found["notes"]["facts"]["may_treat"]) > 100
    assert not (tmp_path / "run" / "model").exists()


@pytest.mark.slow
def test_the_whole_pipeline(tmp_path: Path) -> None:
    plan = replace(pipeline.QUICK, patients=400)
    pipeline.run(tmp_path / "run", plan, pipeline.QUICK_TRAINING, str(tmp_path))
    found = json.loads((tmp_path / "hospital_end_to_end.json").read_text(encoding="utf-8"))
    assert [row["stage"] for row in found["rows"]] == [stage.name for stage in pipeline.stages(plan, {})]
    assert all(row["peak_mb"] > 10 and row["disk_mb"] > 0 for row in found["rows"])
    notes = found["notes"]
    assert notes["terms"] == plan.terms
    assert sum(notes["facts"]["may_treat"]) == round(plan.table * 18_323)
    figures = notes["figures"]
    assert figures["the rules themselves"]["f1"] > 0.85  # exceptions, and negatives that follow a rule, cost the rest
    assert figures["cogstage"]["auroc"] > figures["degree"]["auroc"] + 0.1
    assert notes["predicted positive"] > 20
    assert notes["true rationales"] > 0.5  # of pairs of the right kinds 1 in 6 is
    written = (tmp_path / "hospital_end_to_end.md").read_text(encoding="utf-8")
    assert f"{plan.terms:,} terms, {notes['edges']:,} edges" in written
    assert notes["examples"][0]["pair"] in written


def equal(rows: list[dict[str, Any]]) -> list[bool]:
    return [value for row in rows for name, value in row.items() if name.startswith("equal to")]


@pytest.mark.slow
def test_a_killed_training_process_changes_nothing(tmp_path: Path) -> None:
    workers.main(["--quick", "--out", str(tmp_path)])
    rows = json.loads((tmp_path / "hospital_two_workers.json").read_text(encoding="utf-8"))["rows"]
    assert equal(rows) == [True]


@pytest.mark.slow
def test_a_killed_spark_worker_changes_nothing(tmp_path: Path) -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    write_hospital(workers.QUICK, tmp_path / "hospital")
    rows = workers.graphs(tmp_path, spark=True)
    assert workers.compare(rows, tmp_path)
    assert equal(rows) == [True, True]
    (tmp_path / "graph_Spark_a_worker_killed" / "edges.parquet").write_bytes(b"other")
    assert not workers.compare(rows, tmp_path)
