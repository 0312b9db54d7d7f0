"""A standalone Spark (master and two workers on loopback) writes the graph that one machine writes, byte for byte.

The processes come from the pip package, through ``bin/spark-class``. In a second build one
worker is killed on the way. A quick run has one worker and no second build.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.harness import (
    add_ratios,
    installed,
    measured,
    need,
    need_literature,
    parser,
    report,
    run_side,
    side_row,
)
from benchmarks.literature_graph import sample, smaller_lexicon


def build(documents: str, lexicon: str, out: str, engine: str, master: str) -> dict[str, Any]:
    """One build; the time is that of the build alone."""
    from cogstage.graph.build import build_folder
    from cogstage.graph.options import BuildOptions

    options = BuildOptions(min_count=5, keep_context=True)
    with measured() as took:
        built = build_folder(documents, out, lexicon, options, engine=engine, master=master)
    return {**took, "nodes": built.nodes, "edges": built.edges}


class Standalone:
    """A master and workers on loopback, ended with the block."""

    def __init__(self, folder: Path, workers: int) -> None:
        import pyspark

        self.home = Path(pyspark.__file__).parent
        self.folder, self.workers = folder, workers
        self.processes: list[subprocess.Popen[bytes]] = []
        self.master = ""

    def _start(self, name: str, *arguments: str) -> Path:
        log = self.folder / f"{name}.log"
        environment = {**os.environ, "SPARK_HOME": str(self.home), "SPARK_LOCAL_IP": "127.0.0.1"}
        environment |= {"PYSPARK_PYTHON": sys.executable, "SPARK_WORKER_DIR": str(self.folder / name)}
        command = ["bash", str(self.home / "bin" / "spark-class"), *arguments]
        with log.open("wb") as handle:
            process = subprocess.Popen(command, stdout=handle, stderr=handle, env=environment, start_new_session=True)
        self.processes.append(process)
        return log

    def __enter__(self) -> Standalone:
        deploy = "org.apache.spark.deploy"
        log = self._start(
            "master", f"{deploy}.master.Master", "--host", "127.0.0.1", "--port", "0", "--webui-port", "0"
        )
        self.master = self._wait(log, r"spark://127\.0\.0\.1:\d+")
        for name in (f"worker-{number}" for number in range(1, self.workers + 1)):
            worker = ["--host", "127.0.0.1", "--webui-port", "0", "--cores", "1", "--memory", "2g", self.master]
            log = self._start(name, f"{deploy}.worker.Worker", *worker)
            self._wait(log, "Successfully registered with master")
        return self

    def _wait(self, log: Path, pattern: str, seconds: float = 180) -> str:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            found = re.search(pattern, log.read_text(encoding="utf-8", errors="replace"))
            if found:
                return found[0]
            time.sleep(0.3)
        raise SystemExit(f"Spark did not come up: {log.read_text(encoding='utf-8', errors='replace')[-500:]}")

    def kill_worker(self) -> None:
        """End the second worker, and what it runs, at once."""
        os.killpg(self.processes[2].pid, signal.SIGKILL)

    def __exit__(self, *error: object) -> None:
        for process in reversed(self.processes):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def main(argv: list[str] | None = None) -> None:
    """Build on one machine, on a standalone Spark, and on one that loses a worker; compare the folders."""
    arguments = parser(__doc__)
    arguments.add_argument("--documents", type=int, help="use only the first N documents")
    options = arguments.parse_args(argv)
    count = options.documents or (500 if options.quick else None)
    literature = need_literature(options.data)
    documents, lexicon = literature / "documents.jsonl.gz", literature / "lexicon.tsv"
    need(installed("pyspark"), "needs pyspark: pip install 'cogstage[spark]'")
    need(shutil.which("java") is not None, "needs Java")
    rows: list[dict[str, Any]] = []
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that Spark's processes are ended too
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if count is not None:
            documents = sample(documents, folder, count)
        if options.quick:
            lexicon = smaller_lexicon(lexicon, folder, 8)
        common = {"documents": str(documents), "lexicon": str(lexicon)}
        with Standalone(folder, 1 if options.quick else 2) as spark:
            ways = {"one machine": "local", "standalone Spark": "spark"}
            if not options.quick:
                ways["standalone Spark, a worker killed"] = "spark"
            for number, (label, engine) in enumerate(ways.items()):
                out = folder / f"graph-{number}"
                if "killed" in label:
                    delay = rows[1]["seconds"] * 0.4
                    threading.Timer(delay, spark.kill_worker).start()
                side = run_side(
                    "benchmarks.spark_graph:build",
                    {**common, "out": str(out), "engine": engine, "master": spark.master},
                    {"SPARK_LOCAL_IP": "127.0.0.1"},
                )
                first = folder / "graph-0"
                same = all((out / path.name).read_bytes() == path.read_bytes() for path in first.iterdir())
                result = side["result"]
                more = {"nodes": result["nodes"], "edges": result["edges"], "identical": same}
                rows.append(side_row(label, side, **more))
    add_ratios(rows, rows[0])
    notes = {"documents": count or "all", "CPU seconds, peak MB": "of the driver, not of Spark's workers"}
    report("spark_graph", rows, options.out, notes)
    if not all(row["identical"] for row in rows):
        raise SystemExit("the graphs differ")


if __name__ == "__main__":
    main()
