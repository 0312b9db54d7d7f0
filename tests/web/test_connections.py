"""Half requests, slow bodies, readers that do not read, few file descriptors: the server goes on answering."""

from __future__ import annotations

import logging
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest
import uvicorn
from fastapi import FastAPI, Request
from postgres_cluster import free_port

from cogstage.web.connections import ConnectionLimits, QuietLog, configuration
from cogstage.web.security import HEADERS, client_network

QUICK = ConnectionLimits(header_seconds=1.0, body_seconds=1.0, read_seconds=1.0, most=60)
HALF_BODY = b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 900000\r\n\r\nab"


def echo() -> FastAPI:
    app = FastAPI()

    @app.post("/echo")
    async def read(request: Request) -> dict[str, int]:
        return {"bytes": len(await request.body())}

    @app.get("/large")
    def large() -> str:
        return "x" * 30_000_000

    @app.get("/")
    def root() -> dict[str, str]:
        return {"status": "ok"}

    return app


@contextmanager
def served(limits: ConnectionLimits = QUICK) -> Iterator[tuple[int, uvicorn.Server]]:
    port = free_port()
    server = uvicorn.Server(configuration(echo(), limits, host="127.0.0.1", port=port))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield port, server
    finally:
        server.should_exit = True
        thread.join(20)


def connect(port: int, sent: bytes = b"", source: str = "127.0.0.1") -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=20, source_address=(source, 0))
    connection.sendall(sent)
    return connection


def ended(connection: socket.socket) -> bool:
    """Whether the server ends the connection (waits for it, up to the socket's own time-out)."""
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    except TimeoutError:
        return False
    return True


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET / HTT",
        b"GET / HTTP/1.1\r\nHost: a\r\n",
        b"POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nab",
    ],
    ids=["nothing", "half a line", "half a header", "half a body"],
)
def test_a_request_that_never_ends_is_ended(begun: bytes) -> None:
    with served() as (port, server), connect(port, begun) as connection:
        assert ended(connection)
        deadline = time.monotonic() + 10
        while server.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not server.server_state.connections
        assert httpx.get(f"http://127.0.0.1:{port}/").json() == {"status": "ok"}


def test_a_byte_now_and_then_does_not_put_the_deadline_off() -> None:
    with served() as (port, _), connect(port, b"GET / HTTP/1.1\r\n") as connection:
        gone = False
        for _ in range(100):
            try:
                connection.sendall(b"X-A: b\r\n")
            except OSError:
                gone = True
                break
            time.sleep(0.1)
        assert gone


def test_a_second_request_on_a_connection_has_a_deadline_too() -> None:
    with served() as (port, _), connect(port, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n") as connection:
        assert connection.recv(12) == b"HTTP/1.1 200"
        connection.sendall(b"GET / HTTP/1.1\r\n")
        assert ended(connection)


def test_whoever_does_not_read_the_answer_is_dropped() -> None:
    with served() as (port, server), connect(port, b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n"):
        deadline = time.monotonic() + 20
        while not server.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.02)
        while server.server_state.connections and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not server.server_state.connections


def test_a_slow_answer_is_not_cut_short() -> None:
    """Deadlines are for the client: what the server takes to answer counts for nothing."""
    app = FastAPI()

    @app.get("/")
    def slow() -> str:
        time.sleep(2.5)
        return "done"

    port = free_port()
    server = uvicorn.Server(configuration(app, QUICK, host="127.0.0.1", port=port))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    assert httpx.get(f"http://127.0.0.1:{port}/", timeout=20).json() == "done"
    server.should_exit = True
    thread.join(20)


@pytest.mark.parametrize("begun", [b"GET / HTTP/1.1\r\n", HALF_BODY], ids=["headers", "bodies"])
def test_a_crowd_of_half_requests_keeps_nobody_out(begun: bytes) -> None:
    """Far more connections than allowed: those that wait longest go, so whoever asks at once is answered."""
    patient = ConnectionLimits(header_seconds=60.0, body_seconds=60.0, longest_body_seconds=60.0, most=60)
    with served(patient) as (port, server):
        held = [connect(port, begun, f"127.0.1.{number % 200 + 1}") for number in range(400)]
        for _ in range(20):
            assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
            assert httpx.post(f"http://127.0.0.1:{port}/echo", content=b"abc").json() == {"bytes": 3}
        assert len(server.server_state.connections) <= 61
        for connection in held:
            connection.close()


def test_a_body_must_keep_a_lowest_rate() -> None:
    """A byte now and then ends with the first deadline; a steady body may take longer, up to the last one."""
    limits = ConnectionLimits(body_seconds=1.0, body_rate=1000, longest_body_seconds=4.0)

    def send(part: bytes, most_seconds: float) -> float:
        """Seconds until the server closes the connection."""
        with served(limits) as (port, _), connect(port, HALF_BODY) as connection:
            begun = time.monotonic()
            while (passed := time.monotonic() - begun) < most_seconds:
                try:
                    connection.sendall(part)
                except OSError:
                    break
                time.sleep(0.1)
            return passed

    assert send(b"x", 3.5) < 3.0
    assert 3.5 <= send(b"x" * 500, 10.0) < 8.0


def test_a_client_loses_only_connections_of_its_own() -> None:
    limits = ConnectionLimits(header_seconds=60.0, body_seconds=60.0, most=60, share=0.25)
    with served(limits) as (port, server), connect(port, HALF_BODY, "127.0.0.9") as patient:
        held = [connect(port, HALF_BODY) for _ in range(200)]
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
        assert len(server.server_state.connections) <= 17  # a quarter of 60, the patient one, and one being closed
        patient.sendall(b"x" * 899_998)
        assert patient.recv(12) == b"HTTP/1.1 200"
        for connection in held:
            connection.close()


def test_a_proxy_holds_the_connections_of_many_clients() -> None:
    limits = ConnectionLimits(header_seconds=60.0, most=60, share=0.1, unlimited=("127.0.0.0/8",))
    with served(limits) as (port, server):
        held = [connect(port, b"GET / HTTP/1.1\r\n") for _ in range(50)]
        assert httpx.get(f"http://127.0.0.1:{port}/").status_code == 200
        assert len(server.server_state.connections) >= 50
        for connection in held:
            connection.close()


def test_ipv6_clients_are_counted_by_their_network() -> None:
    assert client_network("2001:db8:1:2::1") == client_network("2001:db8:1:2:ffff::9") == "2001:db8:1:2::/64"
    assert client_network("2001:db8:1:3::1") != client_network("2001:db8:1:2::1")
    assert client_network("::ffff:9.9.9.9") == client_network("9.9.9.9") == "9.9.9.9"
    assert client_network("unknown") == "unknown"


def test_two_host_headers_are_no_request() -> None:
    """A proxy might route by one of them and the application check the other."""
    two = b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"
    with served() as (port, _), connect(port, two) as connection:
        assert connection.recv(12) == b"HTTP/1.1 400"


@pytest.mark.parametrize(
    "sent",
    [
        b"\x00\x01\r\n\r\n",
        b"GET / HTTP/1.1\r\nno header\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    ],
)
def test_what_is_no_request_gets_the_headers_of_every_answer(sent: bytes) -> None:
    with served() as (port, _), connect(port, sent) as connection:
        answer = b""
        while part := connection.recv(65536):
            answer += part
        assert answer.startswith(b"HTTP/1.1 400")
        for name in HEADERS:
            assert name.lower().encode() in answer.lower()


@pytest.mark.slow
def test_few_file_descriptors_and_many_half_requests() -> None:
    """1,500 half requests against 256 descriptors: requests are answered, and the log stays small."""
    port = free_port()
    code = f"""
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))
        import uvicorn
        from fastapi import FastAPI
        from cogstage.web.connections import configuration
        app = FastAPI()
        app.add_api_route("/", lambda: {{"status": "ok"}})
        uvicorn.Server(configuration(app, host="127.0.0.1", port={port})).run()
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    held: list[socket.socket] = []
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                httpx.get(f"http://127.0.0.1:{port}/")
                break
            except httpx.TransportError:
                time.sleep(0.1)
        answered = 0
        for number in range(1500):
            try:
                held.append(connect(port, b"GET / HTTP/1.1\r\n"))
            except OSError:
                continue
            if number % 100 == 99:
                answered += httpx.get(f"http://127.0.0.1:{port}/", timeout=20).status_code == 200
        assert answered == 15
    finally:
        for connection in held:
            connection.close()
        process.terminate()
        log = process.communicate(timeout=30)[0]
    assert len(log) < 50_000


def test_a_message_is_logged_a_few_times_and_then_counted() -> None:
    quiet = QuietLog(most=3, window=0.2)

    def record(level: int, message: str, *values: object) -> logging.LogRecord:
        return logging.LogRecord("a", level, "", 0, message, values, None)

    assert [quiet.filter(record(logging.ERROR, "lost %s", n)) for n in range(10)] == [True] * 3 + [False] * 7
    assert all(quiet.filter(record(logging.INFO, "routine")) for _ in range(10))
    assert quiet.filter(record(logging.ERROR, "another"))
    time.sleep(0.25)
    later = record(logging.ERROR, "lost %s", 11)
    assert quiet.filter(later)
    assert later.getMessage() == "lost 11 (and 7 more like it before)"
