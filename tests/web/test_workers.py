"""Several workers on one port: orphans, hung workers, stopping."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from postgres_cluster import free_port

pytestmark = pytest.mark.slow


@contextmanager
def running(workers: int = 2) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    port = free_port()
    code = f"""
        import os, time
        from fastapi import FastAPI
        from cogstage.web.serving import Address
        from cogstage.web.workers import serve
        app = FastAPI()
        app.add_api_route("/", lambda: os.getpid())
        app.add_api_route("/slow", lambda: time.sleep(8))
        serve(lambda: app, Address(port={port}), {workers}, hung_seconds=2.0)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(code)])
    url = f"http://127.0.0.1:{port}/"
    try:
        wait_for(lambda: bool(pid_at(url)))
        yield process, url
    finally:
        process.kill()
        process.wait(30)


def pid_at(url: str) -> int:
    """The process that answers; 0 if none does."""
    try:
        return int(httpx.get(url, timeout=1).text)
    except httpx.TransportError:
        return 0


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.1)


def both(url: str) -> set[int]:
    """The two workers."""
    seen: set[int] = set()

    def ask() -> bool:
        seen.add(pid_at(url))
        return len(seen - {0}) == 2

    wait_for(ask)
    return seen - {0}


def is_free(url: str) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", httpx.URL(url).port))
        except OSError:
            return False
    return True


def test_workers_end_with_their_parent() -> None:
    with running() as (process, url):
        assert both(url)
        assert not is_free(url)
        process.kill()
        process.wait(30)
        wait_for(lambda: is_free(url))


def test_a_hung_worker_is_replaced() -> None:
    with running() as (_, url):
        before = both(url)
        hung = min(before)
        os.kill(hung, signal.SIGSTOP)
        after: set[int] = set()

        def replaced() -> bool:
            after.add(pid_at(url))
            return len(after - before - {0}) == 1

        wait_for(replaced)
        with pytest.raises(ProcessLookupError):
            os.kill(hung, 0)


@pytest.mark.parametrize("workers", [1, 2])
def test_what_is_being_answered_is_finished(workers: int) -> None:
    with running(workers) as (process, url):
        answers: list[int] = []
        asking = threading.Thread(target=lambda: answers.append(httpx.get(f"{url}slow", timeout=60).status_code))
        asking.start()
        time.sleep(1)
        process.terminate()
        asking.join(60)
        assert answers == [200]
        process.wait(30)


@pytest.mark.parametrize("workers", [1, 2])
def test_health_and_metrics_on_a_port_of_their_own(workers: int, small_model_folder: Path) -> None:
    port, health_port = free_port(), free_port()
    code = "from cogstage.cli.main import run; run()"
    words = ["serve", small_model_folder, "--port", port, "--health-port", health_port, "--workers", workers]
    process = subprocess.Popen([sys.executable, "-c", code, *map(str, words), "--metrics"], stderr=subprocess.DEVNULL)
    public, own = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{health_port}"

    def is_live() -> bool:
        try:
            return httpx.get(f"{own}/health/live", timeout=5).status_code == 200
        except httpx.TransportError:
            return False

    try:
        wait_for(is_live)
        assert httpx.get(f"{own}/health/ready", headers={"Host": "10.1.2.3:8000"}).text == "ok\n"  # as probes ask
        assert httpx.get(f"{public}/about").status_code == 200
        assert "cogstage_requests_total" in httpx.get(f"{own}/metrics").text
        for base, paths in ((public, ["health", "health/live", "metrics"]), (own, ["", "about", "api/v1/model"])):
            for path in paths:
                assert httpx.get(f"{base}/{path}").status_code == 404, (base, path)
        again = subprocess.run(
            [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True, timeout=60
        )
        assert again.returncode == 2
        assert f"port {port}: Address already in use" in again.stderr
    finally:
        process.terminate()
        process.wait(60)
