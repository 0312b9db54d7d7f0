"""Several workers on one port: the model is loaded once, then the process forks, so that workers share its pages."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

import uvicorn

from cogstage.errors import CogstageError, UsageError
from cogstage.web.connections import configuration

QUICK_DEATH = 2.0  # seconds; a worker that dies sooner than this, again and again, is not worth restarting


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the port; a port that is taken is said in one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with _socket(family) as alone:  # to be told if anybody has the port: one that may be shared is not refused
            alone.bind((host, port))
            address = alone.getsockname()
        return _bound(family, address)
    except OSError as error:
        raise UsageError(f"cannot listen on {host}:{port}: {error.strerror}; choose another `port`") from None


def _socket(family: int) -> socket.socket:
    # Named as TCP, so that asyncio switches the delay of small packets off (40 ms an answer otherwise).
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    return made


def _bound(family: int, address: tuple[Any, ...]) -> socket.socket:
    """A socket on a port that other sockets of ours are bound to as well."""
    made = _socket(family)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def serve(build: Callable[[], Any], listener: socket.socket, workers: int, ready: Callable[[], None]) -> None:
    """Run ``build()``'s app on ``listener``. ``build`` runs once; further workers are forks of this process.

    Each of several workers listens with a socket of its own on the same port, among which the kernel shares out the
    connections: on one common socket the first to wake takes all that wait.
    """
    app = build()
    if workers == 1:
        ready()
        _run(app, listener)
        return
    gc.collect()
    gc.freeze()  # the collector would otherwise touch, and so copy, every page that the workers share
    children: dict[int, float] = {}
    stopping = False

    def stop(signum: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for child in children:
            os.kill(child, signal.SIGTERM)

    def start() -> None:
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                _run(app, _bound(listener.family, listener.getsockname()))
            finally:
                os._exit(0)
        children[child] = time.monotonic()

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for _ in range(workers):
        start()
    ready()
    quick = 0
    while children:
        try:
            child, _ = os.wait()
        except InterruptedError:
            continue
        except ChildProcessError:
            break
        begun = children.pop(child, 0.0)
        if not stopping:
            quick = quick + 1 if time.monotonic() - begun < QUICK_DEATH else 0
            if quick > 2 * workers:
                stop(signal.SIGTERM, None)
                raise CogstageError("workers fail at start; run with `workers` 1 to see the error")
            start()


def _run(app: Any, listener: socket.socket) -> None:
    uvicorn.Server(configuration(app, level=logging.WARNING)).run(sockets=[listener])
