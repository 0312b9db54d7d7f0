"""The web service: latency and throughput of explain over clients, start-up, and what a second worker costs.

    python -m benchmarks service [--quick] [--model FOLDER] [--out FOLDER]

Requests go over loopback from a bounded loop in a process of its own; every pair is asked once, so that nothing is
answered from memory. The reference is the same model asked for the same pairs in Python, one after the other: what is
slower than that is the service's own. Without ``--model`` a may_treat model of the embedded data set is trained first
(with ``--quick`` a small untrained one is made).
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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import measured, parser, report, run_side, side_row


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
    from cogstage.estimator import CogStage

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
    return {"seconds": seconds, "requests_s": len(taken) / seconds, **_quantiles(taken)}


def _quantiles(taken: list[float]) -> dict[str, float]:
    p50, p99 = (float(np.quantile(taken, share)) * 1000 for share in (0.5, 0.99))
    return {"p50_ms": p50, "p99_ms": p99}


def in_python(model: str, paths: list[str]) -> dict[str, Any]:
    """The same pairs without a service."""
    from cogstage.estimator import CogStage

    loaded = CogStage.load(model)
    pairs = [dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query)) for path in paths]
    for pair in pairs[:50]:
        loaded.predict(**pair).to_json()
    taken = []
    with measured() as took:
        for pair in pairs[50:]:
            begun = time.perf_counter()
            loaded.predict(**pair).to_json()
            taken.append(time.perf_counter() - begun)
    return {**took, "requests_s": len(taken) / took["seconds"], **_quantiles(taken)}


def cpu_of(process: int) -> float:
    """Processor seconds of a process and its children so far."""
    listing = subprocess.run(["ps", "--ppid", str(process), "-o", "pid="], capture_output=True, text=True).stdout
    total = 0
    for pid in [process, *(int(pid) for pid in listing.split())]:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def untrained_model(out: str) -> None:
    """A model whose answers mean nothing, which is no matter for the time that they take."""
    from benchmarks.planted import Plan, planted
    from cogstage.estimator import CogStage

    graph, dataset = planted(Plan(terms=2_000, edges=60_000, topics=20, facts=200))
    CogStage("may_treat", warm_start="none").fit(graph, dataset, time_limit=1e-3).save(out)


def embedded_model(folder: str, seconds: float) -> None:
    """A may_treat model of the embedded data set."""
    from cogstage.data import embedded
    from cogstage.estimator import CogStage
    from cogstage.knowledge.build import build_dataset

    graph = embedded.graph()
    data = build_dataset(graph, embedded.facts(), f"{folder}/data", seed=0)
    CogStage("may_treat").fit(graph, data, time_limit=seconds).save(f"{folder}/model")


def main(argv: list[str] | None = None) -> None:
    """Measure and report."""
    arguments = parser(__doc__)
    arguments.add_argument("--model", help="model folder; without it one is trained on the embedded data set")
    options = arguments.parse_args(argv)
    number, crowd = (150, (1, 4)) if options.quick else (3000, (1, 2, 4, 8))
    with tempfile.TemporaryDirectory() as scratch:
        model = options.model
        if model is None:
            model = f"{scratch}/model"
            if options.quick:
                run_side("benchmarks.service:untrained_model", {"out": model})
            else:
                run_side("benchmarks.service:embedded_model", {"folder": scratch, "seconds": 200})
        paths = addresses(model, number * 4, seed=0)
        alone = run_side("benchmarks.service:in_python", {"model": model, "paths": paths[: number + 50]})
        direct = alone["result"]
        rows = [{**side_row("in Python", alone), **{k: direct[k] for k in ("requests_s", "p50_ms", "p99_ms")}}]
        for workers in (1, 2):
            rows += served(model, workers, paths, number, crowd)
        for row in rows:
            row["× requests"], row["× p50"] = row["requests_s"] / direct["requests_s"], row["p50_ms"] / direct["p50_ms"]
        one, two = (row["peak MB"] for row in rows if row.get("clients") == crowd[-1])
        report("service", rows, options.out, {"requests": number, "second worker's share of memory": two / one - 1})


def served(model: str, workers: int, paths: list[str], number: int, crowd: Sequence[int]) -> list[dict[str, Any]]:
    """A row for each number of clients; processor time and memory are those of the service."""
    rows = []
    process, port, ready = start(model, workers)
    try:
        ask(port, paths[-50:], 2)
        for place, clients in enumerate(crowd):
            worked = cpu_of(process.pid)
            measured_here = ask(port, paths[place * number % len(paths) :][:number], clients)
            side = {"cpu_seconds": cpu_of(process.pid) - worked, "peak_mb": memory_mb(process.pid), **measured_here}
            rest = {key: measured_here[key] for key in ("requests_s", "p50_ms", "p99_ms")}
            label = f"service, {workers} worker{'s' if workers > 1 else ''}"
            rows.append({**side_row(label, side), "clients": clients, "start_s": ready, **rest})
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()
    return rows


if __name__ == "__main__":
    main()
