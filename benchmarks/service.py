"""The web service: latency and throughput of explain over clients, start-up, and what a second worker costs.

    python -m benchmarks service [--quick] [--model FOLDER] [--out FOLDER]

Requests go over loopback from a bounded loop in a process of its own; every pair is asked once, so that nothing is
answered from memory. Without ``--model`` a may_treat model of the embedded data set is trained first.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import parser, report, run_side


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def start(model: str, workers: int) -> tuple[subprocess.Popen[bytes], int, float]:
    """A service, its port, and the seconds until it first answered."""
    port, begun = free_port(), time.perf_counter()
    code = "from cogstage.cli.main import run; run()"
    arguments = ["serve", model, "--port", str(port), "--workers", str(workers)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.DEVNULL, env=environment)
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/health", timeout=5):
                return process, port, time.perf_counter() - begun
        except OSError:
            if process.poll() is not None:
                raise RuntimeError("the service did not start") from None
            time.sleep(0.02)


def memory_mb(process: int) -> float:
    """Proportional memory of a process and its children: shared pages are divided among those who share them."""
    listing = subprocess.run(["ps", "--ppid", str(process), "-o", "pid="], capture_output=True, text=True).stdout
    total = 0
    for pid in [process, *(int(pid) for pid in listing.split())]:
        rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        total += next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss:"))
    return total / 1024


def addresses(model: str, number: int, seed: int) -> list[str]:
    """Different pairs to explain."""
    from cogstage.rationale.cogstage import CogStage

    loaded = CogStage.load(model)
    relation = loaded.relations[0]
    generator = np.random.default_rng(seed)
    heads, tails = (generator.permutation(loaded.ends(relation, side)) for side in ("head", "tail"))
    found: list[str] = []
    for shift in range(len(tails)):
        for place, head in enumerate(heads):
            tail = tails[(place + shift) % len(tails)]
            if head != tail:
                keys = {
                    "head": loaded.vocabulary.term[head],
                    "tail": loaded.vocabulary.term[tail],
                    "relation": relation,
                }
                found.append(f"/api/v1/explain?{urllib.parse.urlencode(keys)}")
            if len(found) == number:
                return found
    return found


async def _client(port: int, paths: list[str], taken: list[float]) -> None:
    """One connection that asks its pairs one after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for path in paths:
        begun = time.perf_counter()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if b": " in line)
        length = int(fields[b"content-length"])
        await reader.readexactly(length)
        taken.append(time.perf_counter() - begun)
    writer.close()


def ask(port: int, paths: list[str], clients: int) -> dict[str, Any]:
    """All ``paths`` over ``clients`` connections at once."""

    async def everybody() -> list[float]:
        taken: list[float] = []
        await asyncio.gather(*(_client(port, paths[number::clients], taken) for number in range(clients)))
        return taken

    begun = time.perf_counter()
    taken = asyncio.run(everybody())
    seconds = time.perf_counter() - begun
    p50, p99 = (float(np.quantile(taken, share)) * 1000 for share in (0.5, 0.99))
    return {"seconds": seconds, "requests_s": len(taken) / seconds, "p50_ms": p50, "p99_ms": p99}


def embedded_model(folder: str, seconds: float) -> None:
    """A may_treat model of the embedded data set."""
    from cogstage.data import embedded
    from cogstage.knowledge.build import build_dataset
    from cogstage.rationale.cogstage import CogStage

    graph = embedded.graph()
    data = build_dataset(graph, embedded.facts(), f"{folder}/data", seed=0)
    CogStage("may_treat").fit(graph, data, time_limit=seconds).save(f"{folder}/model")


def main(argv: list[str] | None = None) -> None:
    """Measure and report."""
    wanted = parser(__doc__)
    wanted.add_argument("--model", help="model folder; without it one is trained on the embedded data set")
    options = wanted.parse_args(argv)
    with tempfile.TemporaryDirectory() as scratch:
        model = options.model
        if model is None:
            run_side("benchmarks.service:embedded_model", {"folder": scratch, "seconds": 60 if options.quick else 200})
            model = f"{scratch}/model"
        number = 400 if options.quick else 3000
        paths = addresses(model, number * 4, seed=0)
        rows: list[dict[str, Any]] = []
        alone = 0.0
        for workers in (1, 2):
            process, port, ready = start(model, workers)
            try:
                ask(port, paths[-50:], 2)
                for place, clients in enumerate((1, 2, 4, 8) if not options.quick else (1, 4)):
                    part = paths[place * number % len(paths) :][:number]
                    measured = ask(port, part, clients)
                    rows.append({"workers": workers, "clients": clients, "start_s": ready, **measured})
                used = memory_mb(process.pid)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait()
            extra = {"memory_mb": used}
            if workers == 1:
                alone = used
            else:
                extra["second_worker_share"] = (used - alone) / alone
            rows[-1] |= extra
        report("service", rows, options.out, {"requests": number})


if __name__ == "__main__":
    main()
