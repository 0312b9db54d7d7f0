"""Latency of the web service over clients that ask at once, and the processor time that a request takes it."""

from __future__ import annotations

import signal
import tempfile
from typing import Any

from benchmarks.growth.curve import Curve
from benchmarks.service import ask, cpu_of, keys_of_pairs, load, memory_mb, pair_paths, start, untrained_model


def latency(clients: int, requests: int) -> dict[str, Any]:
    """``requests`` different pairs by so many clients, to one worker; memory is what the service holds more after."""
    with tempfile.TemporaryDirectory() as scratch:
        model = f"{scratch}/model"
        untrained_model(model)
        paths = pair_paths("/api/v1/explain", keys_of_pairs(load(model), requests + 50, seed=clients))
        process, port, _ = start(model, 1)
        try:
            ask(port, paths[-50:], 2)
            worked, held = cpu_of(process.pid), memory_mb(process.pid)
            taken = ask(port, paths[:requests], clients)
            cpu, more = cpu_of(process.pid) - worked, memory_mb(process.pid) - held
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()
    per_request = {"cpu_seconds": cpu / requests, "latency": taken["p50_ms"] / 1000}
    return {**per_request, "seconds": taken["seconds"], "work_mb": max(0.0, more)}


SIZES: dict[str, Any] = {"full": (1, 2, 4, 8, 16, 32), "quick": (1, 4)}
REQUESTS: dict[str, Any] = {"fixed": {"requests": 320}, "quick_fixed": {"requests": 60}}
CURVES = (
    Curve(
        "Service, median latency over clients",
        "clients that ask at once",
        "benchmarks.growth.service:latency",
        "clients",
        **SIZES,
        **REQUESTS,
        needed=1.0,
        why="one worker answers one after the other: who asks waits for those before",
        y="latency",
        y_label="seconds (clock), median",
    ),
    Curve(
        "Service, processor time of a request over clients",
        "clients that ask at once",
        "benchmarks.growth.service:latency",
        "clients",
        full=SIZES["full"],
        quick=(),
        **REQUESTS,
        needed=0.0,
        why="a request is the same work however many others wait",
    ),
)
