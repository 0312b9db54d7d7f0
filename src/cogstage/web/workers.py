"""Running an application: one process, or several workers on one port that share the pages of one model."""

from __future__ import annotations

import gc
import logging
import os
import signal
import socket
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import RawArray
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from cogstage.errors import CogstageError
from cogstage.web.connections import ConnectionLimits, configuration
from cogstage.web.serving import Address, bound

log = logging.getLogger("cogstage.web")
QUICK_DEATH = 2.0  # seconds; a worker that dies sooner than this, again and again, is not worth restarting
HUNG_SECONDS = 60.0  # in which the event loop of a worker must turn


def serve(
    build: Callable[[], ASGIApp],
    address: Address,
    workers: int = 1,
    announce: Callable[[], None] = lambda: None,
    level: int = logging.WARNING,
    hung_seconds: float = HUNG_SECONDS,
) -> None:
    """Serve ``build()``'s application at ``address`` until stopped; what is being answered then is finished.

    The ports are taken before ``build`` runs, and it runs once. ``announce`` is called when the server starts.
    """
    address.check()
    listeners = address.listen()
    app = build()

    def run(sockets: list[socket.socket], **more: Any) -> None:
        limits = ConnectionLimits(unlimited=address.trusted_proxies)
        certificate, key = (None if file is None else str(file) for file in (address.certificate, address.key))
        config = configuration(app, limits, level, ssl_certfile=certificate, ssl_keyfile=key, **more)
        uvicorn.Server(config).run(sockets=sockets)

    if workers == 1:
        announce()
        run(listeners)
    else:
        Workers(run, listeners, workers, hung_seconds).supervise(announce)


class Workers:
    """Forks of this process, each with sockets of its own on the same ports.

    uvicorn starts workers as fresh processes, each with a model of its own, on one common socket, from which the first
    to wake takes all that wait. A worker that ends, or whose event loop does not turn for a while, is replaced.
    Workers end with their parent, so that none of them keeps the port.
    """

    def __init__(
        self, run: Callable[..., None], listeners: list[socket.socket], number: int, hung_seconds: float
    ) -> None:
        self._run, self._listeners, self._hung_seconds = run, listeners, hung_seconds
        self._parent = os.getpid()
        self._turned = RawArray("d", number)  # when the event loop of each worker turned last
        self._children: dict[int, tuple[int, float]] = {}  # number and start by process id
        self._stopping = False

    def supervise(self, announce: Callable[[], None]) -> None:
        """Start the workers and keep them running until this process is stopped."""
        gc.collect()
        gc.freeze()  # the collector would otherwise touch, and so copy, every page that the workers share
        signal.signal(signal.SIGTERM, self._stop)
        signal.signal(signal.SIGINT, self._stop)
        for number in range(len(self._turned)):
            self._start(number)
        announce()
        quick = 0
        while self._children:
            self._end_hung()
            child, _ = os.waitpid(-1, os.WNOHANG)
            if child == 0:
                time.sleep(0.2)
                continue
            number, begun = self._children.pop(child)
            if self._stopping:
                continue
            quick = quick + 1 if time.monotonic() - begun < QUICK_DEATH else 0
            if quick > 2 * len(self._turned):
                self._stop()
                raise CogstageError("workers fail at start; run with `workers` 1 to see the error")
            self._start(number)

    def _stop(self, signum: int = 0, frame: FrameType | None = None) -> None:
        self._stopping = True
        for child in self._children:
            os.kill(child, signal.SIGTERM)

    def _end_hung(self) -> None:
        for child, (number, _) in self._children.items():
            if not self._stopping and time.monotonic() - self._turned[number] > self._hung_seconds:
                log.error("worker %d does not respond and is replaced", child)
                os.kill(child, signal.SIGKILL)

    def _start(self, number: int) -> None:
        self._turned[number] = time.monotonic()
        child = os.fork()
        if child == 0:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            try:
                self._work(number)
            finally:
                os._exit(0)
        self._children[child] = (number, time.monotonic())

    def _work(self, number: int) -> None:
        async def notify() -> None:
            self._turned[number] = time.monotonic()
            if os.getppid() != self._parent:
                os.kill(os.getpid(), signal.SIGTERM)

        sockets = [bound(listener.family, listener.getsockname()) for listener in self._listeners]
        self._run(sockets, callback_notify=notify, timeout_notify=0)
