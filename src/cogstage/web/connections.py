"""Connections that cost nothing to hold: time-outs for headers, bodies and slow readers, a limit, a quiet log.

uvicorn waits for ever for a request that never ends. Its protocol is extended here, so that a few thousand half
requests neither use up the file descriptors nor fill the log.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import time
from dataclasses import dataclass
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cogstage.web.security import HEADERS

BACKLOG = 64  # connections accepted in one turn of the event loop
RESERVE = 3 * BACKLOG  # file descriptors for files, databases and what is accepted before it can be refused


@dataclass(frozen=True)
class ConnectionLimits:
    """How long and how many connections one process waits for."""

    header_seconds: float = 10.0  # from the first byte (or the connection) to the end of the header
    body_seconds: float = 30.0  # from there to the end of the body
    read_seconds: float = 30.0  # a client that does not take its answer
    idle_seconds: int = 5  # between two requests
    most: int = 1000  # connections of a process at once

    def affordable(self) -> int:
        """``most``, or what the limit on file descriptors leaves of it."""
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return max(16, min(self.most, soft - RESERVE))


class QuietLog(logging.Filter):
    """Lets each message through ``most`` times a minute, then counts how often it was left out.

    Messages are told apart by their format, not by what is put into it: an attack varies the latter.
    """

    def __init__(self, most: int = 5, window: float = 60.0) -> None:
        super().__init__()
        self._most, self._window = most, window
        self._seen: dict[tuple[str, str], list[float]] = {}  # begin of the window, let through, left out

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is written; a routine line (INFO) always is."""
        if record.levelno < logging.WARNING:
            return True
        now = time.monotonic()
        seen = self._seen.setdefault((record.name, str(record.msg)[:200]), [now, 0, 0])
        if now - seen[0] > self._window:
            left_out, seen[:] = seen[2], [now, 0, 0]
            if left_out:
                record.msg, record.args = f"{record.getMessage()} (and {left_out:.0f} more like it before)", None
        seen[1] += 1
        if seen[1] > self._most:
            seen[2] += 1
            return False
        return True


class GuardedProtocol(H11Protocol):
    """uvicorn's HTTP protocol with a deadline for whatever a connection is waiting for."""

    limits = ConnectionLimits()
    most = 0  # connections of this process at once
    _deadline: asyncio.TimerHandle | None = None
    _waits_for = ""
    _since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._wait("header", self.limits.header_seconds)
        if len(self.connections) > self.most:
            self._make_room()

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait("", 0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._since = self.loop.time()
        self._watch()

    def pause_writing(self) -> None:
        self.flow.pause_writing()
        self._wait("reader", self.limits.read_seconds)

    def resume_writing(self) -> None:
        self.flow.resume_writing()
        self._wait("", 0)
        self._watch()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        # Closing waits until what was written is taken; a client that never reads would hold it for ever.
        self._wait("reader", self.limits.read_seconds)

    def send_400_response(self, msg: str) -> None:
        headers = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
        fields = [(b"content-type", b"text/plain; charset=utf-8"), (b"connection", b"close"), *headers]
        try:
            for event in (
                h11.Response(status_code=400, headers=fields, reason=b"Bad Request"),
                h11.Data(data=msg.encode("ascii", "replace")),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        except h11.LocalProtocolError:  # an answer was under way
            pass
        self.transport.close()
        self._wait("reader", self.limits.read_seconds)

    def _watch(self) -> None:
        """Set the deadline for what the connection waits for now."""
        if self._waits_for == "reader":
            return
        state = self.conn.their_state
        if state is h11.IDLE:
            # Between requests uvicorn's own timer runs; it ends with the first byte of the next header.
            self._wait("header" if self.timeout_keep_alive_task is None else "", self.limits.header_seconds)
        elif state is h11.SEND_BODY:
            self._wait("body", self.limits.body_seconds)
        else:
            self._wait("", 0)

    def _wait(self, what: str, seconds: float) -> None:
        if what and what == self._waits_for:
            return  # the deadline stands: a byte now and then does not put it off
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
        self._waits_for = what
        if what:
            self._deadline = self.loop.call_later(seconds, self._end)

    def _end(self) -> None:
        self.transport.abort()

    def _make_room(self) -> None:
        """Drop the connection that has waited longest for a header: whoever asks something at once gets through."""
        waiting: list[Any] = [c for c in self.connections if getattr(c, "_waits_for", "") in ("header", "reader")]
        waiting += [c for c in self.connections if getattr(c, "timeout_keep_alive_task", None) is not None]
        oldest = min(waiting, key=lambda connection: connection._since, default=self)
        self.connections.discard(oldest)
        oldest.transport.abort()


def guarded(limits: ConnectionLimits) -> type[H11Protocol]:
    """The protocol with these limits."""
    return type("LimitedProtocol", (GuardedProtocol,), {"limits": limits, "most": limits.affordable()})


def configuration(
    app: Any, limits: ConnectionLimits | None = None, level: int = logging.INFO, **options: Any
) -> uvicorn.Config:
    """uvicorn's configuration for every server of ours; ``level`` is that of the log."""
    limits = limits or ConnectionLimits()
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(message)s")
    for handler in logging.getLogger().handlers:
        if not any(isinstance(present, QuietLog) for present in handler.filters):
            handler.addFilter(QuietLog())
    return uvicorn.Config(
        app,
        http=guarded(limits),
        ws="none",
        access_log=False,  # it would print personal links
        log_config=None,
        server_header=False,
        proxy_headers=False,  # X-Forwarded-For is read by TrustedProxies, and only where it may be believed
        backlog=BACKLOG,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=5,
        **options,
    )
