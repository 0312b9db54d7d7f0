"""A small hospital beyond one machine: Spark with two workers and torchrun with two processes, one of each killed.

Spark stands alone on loopback (see spark_graph.py) and writes the bytes that one machine writes, also when a worker is
killed at work; a quick run leaves Spark out. Of two training processes one is killed with -9; torchrun starts both
again, they go on from the last checkpoint, and end in the weights of two that were left alone.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, installed, need, parser, report
from benchmarks.hospital import Plan, write_hospital
from benchmarks.hospital_end_to_end import COGSTAGE, QUICK_TRAINING, RELATION, TRAINING
from benchmarks.measured_command import descendants, run_measured
from benchmarks.spark_graph import Standalone

SMALL = Plan(terms=4_000, groups=30, patients=6_000, notes=6, table=0.2, patients_a_file=1_500)
QUICK = Plan(terms=1_500, groups=12, patients=600, notes=5, table=0.05, patients_a_file=150)
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "--no-python"]
TORCHRUN += ["--max-restarts", "1"]
ENVIRONMENT = {
    "SPARK_LOCAL_IP": "127.0.0.1",
    "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",  # else restarted processes may find the addresses of the dead
}
CHECKPOINTS = 3  # the process is killed when so many have been written


class Killing:
    """Waits, beside a running command, for the moment to kill a part of it; ``done`` says whether it came."""

    def __init__(self, moment: Callable[[], bool], kill: Callable[[int], None]) -> None:
        self._moment, self._kill, self.done = moment, kill, False

    def __call__(self, pid: int) -> None:
        while Path(f"/proc/{pid}").exists():
            if self._moment():
                self._kill(pid)
                self.done = True
                return
            time.sleep(0.02)


def graphs(folder: Path, spark: bool) -> list[dict[str, Any]]:
    """The graph of one machine; and where asked for, that of Spark, and of a Spark that loses a worker."""
    hospital = folder / "hospital"
    build = [*COGSTAGE, "graph", "build", str(hospital / "notes"), "--lexicon", str(hospital / "lexicon.tsv")]
    build += ["--unit", "patient-window", "--window", "1d"]
    rows = [_run("graph, one machine", build, folder)]
    if not spark:
        return rows
    with Standalone(folder, 2) as cluster:
        on_spark = [*build, "--engine", "spark", "--master", cluster.master]

        def working() -> bool:
            return any("pyspark" in _command_line(pid) for pid in descendants(cluster.processes[2].pid)[2:])

        rows.append(_run("graph, Spark, two workers", on_spark, folder))
        killing = Killing(working, lambda _: cluster.kill_worker())
        rows.append(_run("graph, Spark, a worker killed", on_spark, folder, killing))
    return rows


def models(folder: Path, quick: bool) -> list[dict[str, Any]]:
    """The model of one process (not in a quick run), of two, and of two of which one is killed."""
    settings = QUICK_TRAINING if quick else TRAINING
    train = [*COGSTAGE, "train", "--graph", str(folder / "graph_one_machine"), "--dataset", str(folder / "dataset")]
    train += ["--relation", RELATION, *(word for name in settings for word in ("--set", f"{name}={settings[name]}"))]
    train += ["--checkpoint-every", "0", "--resume"]  # torchrun starts the same command again
    rows = [] if quick else [_run("model, one process", train, folder)]
    rows.append(_run("model, two processes", [*TORCHRUN, *train], folder))
    name = "model, two processes, one killed"
    state, seen = _out(folder, name) / "checkpoint" / "state.safetensors", set()

    def written() -> bool:
        if state.exists():
            seen.add(state.stat().st_mtime_ns)
        return len(seen) >= CHECKPOINTS

    killing = Killing(written, lambda pid: os.kill(descendants(pid)[2], signal.SIGKILL))  # of the two, the second
    return [*rows, _run(name, [*TORCHRUN, *train], folder, killing)]


def _run(name: str, command: list[str], folder: Path, killing: Killing | None = None) -> dict[str, Any]:
    print(f"{name} ...", flush=True)
    out = _out(folder, name)
    used = run_measured([*command, "--out", str(out)], out.with_suffix(".log"), ENVIRONMENT, ROOT, killing)
    if killing is not None and not killing.done:
        raise SystemExit(f"{name}: it was over before anything was killed")
    return {"run": name, **used}


def _out(folder: Path, name: str) -> Path:
    return folder / name.replace(",", "").replace(" ", "_")


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8", errors="replace")
    except OSError:  # it has just ended
        return ""


def compare(rows: list[dict[str, Any]], folder: Path) -> bool:
    """Write beside each run what it is equal to; gives whether all that must be equal is."""
    must = {"graph": ("graph, one machine", None), "model": ("model, two processes", "model.safetensors")}
    equal = True
    for row in rows:
        out = _out(folder, row["run"])
        reference, only = must[row["run"].split(",")[0]]
        files = [path.name for path in sorted(out.iterdir()) if path.is_file() and only in (None, path.name)]
        same = all((out / name).read_bytes() == (_out(folder, reference) / name).read_bytes() for name in files)
        if (out / "metrics.json").exists():
            row["dev"] = json.loads((out / "metrics.json").read_text(encoding="utf-8"))["dev"][RELATION]["f1"]
        if row["run"] != reference and row["run"] != "model, one process":
            row[f"equal to {reference}"] = same
            equal &= same
    return equal


def main(argv: list[str]) -> None:
    """Build and train in every way, and compare."""
    options = parser(__doc__).parse_args(argv)
    need(options.quick or installed("pyspark"), "needs pyspark: pip install 'cogstage[spark]'")
    need(options.quick or shutil.which("java") is not None, "needs Java")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that Spark's processes are ended too
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plan = QUICK if options.quick else SMALL
        made = write_hospital(plan, folder / "hospital")
        rows = graphs(folder, spark=not options.quick)
        for words in (
            ["facts", "table", folder / "hospital" / "facts.tsv", "--out", folder / "facts"],
            ["dataset", "build", "-g", folder / "graph_one_machine", "-f", folder / "facts", "-o", folder / "dataset"],
        ):
            run_measured([*COGSTAGE, *map(str, words)], folder / "dataset.log", cwd=ROOT)
        rows += models(folder, options.quick)
        equal = compare(rows, folder)
    report("hospital_two_workers", rows, options.out, made)
    if not equal:
        raise SystemExit("results differ that must be equal")


if __name__ == "__main__":
    main(sys.argv[1:])
