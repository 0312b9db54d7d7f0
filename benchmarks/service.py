"""The web service under load: single pairs, pages, candidate lists, and single pairs beside large batches.

    python -m benchmarks service [--quick] [--model FOLDER] [--out FOLDER]

Requests go over loopback from a bounded loop in a process of its own; every pair and every list is asked once, so that
nothing is answered from memory. The reference is the same model asked for the same pairs in Python, one after the
other: what is slower than that is the service's own. Without ``--model`` a may_treat model of the embedded data set is
trained first (with ``--quick`` a small untrained one is made). The list of 5,000 candidates is one of an untrained
model of planted data, whose answers mean nothing and take as long.

A busy machine says little by its clock, so each row also gives the service's processor time per request.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
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


def load(model: str) -> Any:
    """A model folder."""
    from cogstage.estimator import CogStage

    return CogStage.load(model)


def keys_of_pairs(model: Any, number: int, seed: int) -> list[dict[str, str]]:
    """Different pairs of the first relation's heads and tails, as questions."""
    relation, terms = model.relations[0], model.vocabulary.term
    generator = np.random.default_rng(seed)
    heads, tails = (generator.permutation(model.ends(relation, side)) for side in ("head", "tail"))
    found: list[dict[str, str]] = []
    for shift in range(len(tails)):
        for place, head in enumerate(heads):
            tail = tails[(place + shift) % len(tails)]
            if head != tail:
                found.append({"head": terms[head], "tail": terms[tail], "relation": relation})
            if len(found) == number:
                return found
    return found


def lists(model: Any, path: str, number: int, name: str = "tail") -> list[str]:
    """Different questions for the candidates of a tail."""
    relation, terms = model.relations[0], model.vocabulary.term
    tails = np.random.default_rng(0).permutation(model.ends(relation, "tail"))[:number]
    return [f"{path}?{urllib.parse.urlencode({name: terms[tail], 'relation': relation})}" for tail in tails]


def pair_paths(path: str, pairs: Sequence[dict[str, str]]) -> list[str]:
    """Addresses of pairs."""
    return [f"{path}?{urllib.parse.urlencode(pair)}" for pair in pairs]


async def _answered(reader: asyncio.StreamReader) -> None:
    """Read one answer to its end."""
    head = await reader.readuntil(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(head.decode())
    fields = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:] if b": " in line)
    if b"content-length" in fields:
        await reader.readexactly(int(fields[b"content-length"]))
        return
    while (size := int((await reader.readline()).strip(), 16)) > 0:  # sent in pieces
        await reader.readexactly(size + 2)
    await reader.readline()


async def _client(port: int, paths: Sequence[str], taken: list[float]) -> None:
    """One connection that asks its questions one after the other."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for path in paths:
        begun = time.perf_counter()
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await _answered(reader)
        taken.append(time.perf_counter() - begun)
    writer.close()


async def _batches(port: int, body: bytes, until: asyncio.Event) -> None:
    """One connection that asks for a large batch again and again."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    while not until.is_set():
        head = f"POST /api/v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n"
        writer.write(head.encode() + b"Content-Type: application/json\r\n\r\n" + body)
        await _answered(reader)
    writer.close()


def ask(port: int, paths: Sequence[str], clients: int, batches: Sequence[bytes] = ()) -> dict[str, Any]:
    """All ``paths`` over ``clients`` connections at once; beside them one more for each of ``batches``."""

    async def everybody() -> list[float]:
        taken: list[float] = []
        done = asyncio.Event()
        others = [asyncio.create_task(_batches(port, body, done)) for body in batches]
        if others:
            await asyncio.sleep(1.0)  # they are all under way
        await asyncio.gather(*(_client(port, paths[number::clients], taken) for number in range(clients)))
        done.set()
        await asyncio.gather(*others)
        return taken

    begun = time.perf_counter()
    taken = asyncio.run(everybody())
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "requests_s": len(taken) / seconds, **_quantiles(taken)}


def _quantiles(taken: list[float]) -> dict[str, float]:
    p50, p99 = (float(np.quantile(taken, share)) * 1000 for share in (0.5, 0.99))
    return {"p50_ms": p50, "p99_ms": p99}


def in_python(model: str, pairs: list[dict[str, str]]) -> dict[str, Any]:
    """The same pairs without a service."""
    loaded = load(model)
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


def untrained_model(out: str, terms: int = 2_000, facts: int = 200) -> None:
    """A model whose answers mean nothing, which is no matter for the time that they take."""
    from benchmarks.planted import Plan, planted
    from cogstage.estimator import CogStage

    graph, dataset = planted(Plan(terms=terms, edges=30 * terms, topics=20, facts=facts))
    little = {"folds": 0, "recognition_passes": 1, "decision_epochs": 1, "decision_steps": 1}
    CogStage("may_treat", **little).fit(graph, dataset, time_limit=1e-3).save(out)


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
    number, crowd = (120, (1, 8)) if options.quick else (3000, (1, 2, 4, 8))
    with tempfile.TemporaryDirectory() as scratch:
        model = options.model
        if model is None:
            model = f"{scratch}/model"
            if options.quick:
                run_side("benchmarks.service:untrained_model", {"out": model})
            else:
                run_side("benchmarks.service:embedded_model", {"folder": scratch, "seconds": 200})
        large = f"{scratch}/large"
        plan = {"terms": 1_500, "facts": 1_500} if options.quick else {"terms": 22_000, "facts": 25_000}
        run_side("benchmarks.service:untrained_model", {"out": large, **plan})
        loaded = load(model)
        pairs = keys_of_pairs(loaded, 4 * number, seed=0)
        alone = run_side("benchmarks.service:in_python", {"model": model, "pairs": pairs[: number + 50]})
        rows = [{**side_row("in Python", alone), **{k: alone["result"][k] for k in ("requests_s", "p50_ms", "p99_ms")}}]
        for workers in (1, 2):
            rows += served(model, workers, number, crowd, pairs, loaded)
        rows += long_list(large, 3 if options.quick else 20)
        report("service", rows, options.out, {"requests": number, "candidates": rows[-1]["candidates"]})


def served(
    model: str, workers: int, number: int, crowd: Sequence[int], pairs: Sequence[dict[str, str]], loaded: Any
) -> list[dict[str, Any]]:
    """A row for each kind of request and number of clients; processor time and memory are those of the service."""
    explain, label = pair_paths("/api/v1/explain", pairs), f"{workers} worker{'s' if workers > 1 else ''}"
    few = max(10, number // 10)
    body = {"relation": pairs[0]["relation"], "k": 0}
    batches = [
        json.dumps({**body, "pairs": [{k: pair[k] for k in ("head", "tail")} for pair in pairs[n::4][:1000]]}).encode()
        for n in range(4)
    ]
    rows = []
    with service(model, workers) as running:
        ask(running.port, explain[-50:], 2)
        for place, clients in enumerate(crowd):
            asked = explain[place * number % len(explain) :][:number]
            rows.append(running.row(f"explain, {label}", asked, clients))
        rows.append(running.row(f"pair page, {label}", pair_paths("/pair", pairs[-few:]), 1))
        listed = lists(loaded, "/api/v1/discover", few)
        rows.append(running.row(f"discover, {label}", listed, crowd[-1], candidates=_candidates(loaded)))
        beside = f"explain beside 4 × {len(pairs[0::4][:1000]):,} pairs, {label}"
        rows.append(running.row(beside, explain[-2 * few : -few], 1, batches))
    return rows


def long_list(model: str, number: int) -> list[dict[str, Any]]:
    """Lists over thousands of candidates, one after the other."""
    loaded = load(model)
    with service(model, 1) as running:
        asked = lists(loaded, "/api/v1/discover", number + 1)
        ask(running.port, asked[:1], 1)
        return [running.row("discover, long list", asked[1:], 1, candidates=_candidates(loaded))]


def _candidates(model: Any) -> int:
    return len(model.ends(model.relations[0], "head"))


@dataclass(frozen=True)
class Running:
    """A service under measurement."""

    pid: int
    port: int
    ready: float  # seconds until it first answered

    def row(
        self, label: str, paths: Sequence[str], clients: int, batches: Sequence[bytes] = (), candidates: int = 0
    ) -> dict[str, Any]:
        """Ask, and tell how long it took, what it cost and what the service holds."""
        worked = cpu_of(self.pid)
        taken = ask(self.port, paths, clients, batches)
        cpu = cpu_of(self.pid) - worked
        rest = {key: taken[key] for key in ("requests_s", "p50_ms", "p99_ms")}
        row = side_row(label, {**taken, "cpu_seconds": cpu, "peak_mb": memory_mb(self.pid)})
        # what the batches cost cannot be told from what the single questions beside them cost
        row["CPU ms per request"] = None if batches else 1000 * cpu / len(paths)
        return {**row, "clients": clients, "candidates": candidates or None, "start_s": self.ready, **rest}


@contextmanager
def service(model: str, workers: int) -> Iterator[Running]:
    """A service for as long as it is measured."""
    process, port, ready = start(model, workers)
    try:
        yield Running(process.pid, port, ready)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


if __name__ == "__main__":
    main()
