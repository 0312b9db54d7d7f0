"""Several workers on one port: the model is loaded once, then the process forks, so that workers share its pages."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from multiprocessing.sharedctypes import RawArray
from types import FrameType
from typing import Any

import uvicorn

from cogstage.errors import CogstageError, UsageError
from cogstage.web.connections import ConnectionLimits, configuration

log = logging.getLogger("cogstage.web")
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


def serve(
    build: Callable[[], Any],
    listener: socket.socket,
    workers: int,
    ready: Callable[[], None],
    proxies: Sequence[str] = (),
    hung_seconds: float = 60.0,
) -> None:
    """Run ``build()``'s app on ``listener``. ``build`` runs once; several workers are forks of this process.

    uvicorn starts workers as fresh processes, each with a model of its own, on one common socket, from which the first
    to wake takes all that wait. Here they share the pages of the model, and each has a socket of its own on the port.
    A worker that ends, or whose event loop does not turn for ``hung_seconds``, is replaced. Workers end with the
    parent, so that none of them keeps the port. When stopped, they finish what they are answering.
    """
    app = build()
    limits = ConnectionLimits(unlimited=tuple(proxies))
    if workers == 1:
        ready()
        uvicorn.Server(configuration(app, limits, level=logging.WARNING)).run(sockets=[listener])
        return
    gc.collect()
    gc.freeze()  # the collector would otherwise touch, and so copy, every page that the workers share
    parent = os.getpid()
    turned = RawArray("d", workers)  # when the event loop of each worker turned last
    children: dict[int, tuple[int, float]] = {}  # number and start by process id
    stopping = False

    def stop(signum: int, frame: FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for child in children:
            os.kill(child, signal.SIGTERM)

    def work(number: int) -> None:
        async def notify() -> None:
            turned[number] = time.monotonic()
            if os.getppid() != parent:
                os.kill(os.getpid(), signal.SIGTERM)

        config = configuration(app, limits, level=logging.WARNING, callback_notify=notify, timeout_notify=0)
        uvicorn.Server(config).run(sockets=[_bound(listener.family, listener.getsockname())])

    def start(number: int) -> None:
        turned[number] = time.monotonic()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                work(number)
            finally:
                os._exit(0)
        children[child] = (number, time.monotonic())

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for number in range(workers):
        start(number)
    ready()
    quick = 0
    while children:
        for child, (number, _) in children.items():
            if not stopping and time.monotonic() - turned[number] > hung_seconds:
                log.error("worker %d does not respond and is replaced", child)
                os.kill(child, signal.SIGKILL)
        child, _ = os.waitpid(-1, os.WNOHANG)
        if child == 0:
            time.sleep(0.2)
            continue
        number, begun = children.pop(child)
        if not stopping:
            quick = quick + 1 if time.monotonic() - begun < QUICK_DEATH else 0
            if quick > 2 * workers:
                stop(signal.SIGTERM, None)
                raise CogstageError("workers fail at start; run with `workers` 1 to see the error")
            start(number)
