"""Limits on connections: deadlines for headers, bodies and slow readers, a number per process and per client.

uvicorn waits without end for a request that never ends and has no setting for it, so its protocol is extended here.
Each limit names the attack that it stops. On the open internet, put a proxy in front that buffers requests
(docs/howto/proxy.md).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from cogstage.web.security import HEADERS, client_network, is_in, networks

BACKLOG = 64  # connections accepted in one turn of the event loop
STOP_SECONDS = 60  # what is being answered when the server is stopped is finished within this time
RESERVE = 3 * BACKLOG  # file descriptors for files, databases and what is accepted before it can be refused


@dataclass(frozen=True)
class ConnectionLimits:
    """How long one process waits for its clients, and for how many."""

    header_seconds: float = 10.0  # from the first byte (or the connection) to the end of the header
    body_seconds: float = 5.0  # for the first bytes of the body; every `body_rate` bytes give one second more
    body_rate: int = 1000  # bytes per second that a body must have on average after that
    longest_body_seconds: float = 30.0  # the end of the body, at any rate
    read_seconds: float = 30.0  # a client that does not take its answer
    idle_seconds: int = 5  # between two requests
    most: int = 1000  # connections of a process at once
    share: float = 0.25  # of them that one client may hold (an address, or an IPv6 network of 64 bits)
    unlimited: tuple[str, ...] = ()  # proxies, which hold the connections of many clients

    def affordable(self) -> int:
        """``most``, or what the limit on file descriptors leaves of it."""
        try:
            import resource
        except ImportError:  # Windows has no such limit
            return self.most
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
    """uvicorn's HTTP protocol with a deadline for whatever a connection is waiting for.

    - Half-sent headers, slow bodies and unread answers would hold connections without end: deadlines.
    - A crowd of them that comes back at every deadline would keep others out: the connection that has waited longest
      is closed for a new one, so a client that sends its whole request at once is always answered.
    - One client with many connections would have the others' closed: it only ever loses its own.
    """

    limits = ConnectionLimits()
    most = 0  # connections of this process at once
    proxies: Sequence[IPv4Network | IPv6Network] = ()
    _deadline: asyncio.TimerHandle | None = None
    _waits_for = ""
    _since = 0.0
    _client: str | None = None  # None for a proxy
    _body_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._since = self.loop.time()
        self._wait("header", self.limits.header_seconds)
        address = self.client[0] if self.client else ""
        if not is_in(address, self.proxies):
            self._client = client_network(address)
            own = [c for c in self.connections if getattr(c, "_client", None) == self._client]
            if len(own) > max(1, int(self.most * self.limits.share)):
                self._close_oldest(own)
        if len(self.connections) > self.most:
            self._close_oldest(list(self.connections))

    def connection_lost(self, exc: Exception | None) -> None:
        self._wait("", 0)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._waits_for == "body":
            self._body_bytes += len(data)
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
        self._body_bytes = 0
        if what:
            self._deadline = self.loop.call_later(seconds, self._end, self.loop.time())

    def _end(self, begun: float) -> None:
        """Close the connection, unless it waits for a body that comes fast enough."""
        limits = self.limits
        if self._waits_for == "body":
            earned = min(limits.body_seconds + self._body_bytes / limits.body_rate, limits.longest_body_seconds)
            left = begun + earned - self.loop.time()
            if left > 0.001:
                self._deadline = self.loop.call_later(left, self._end, begun)
                return
        self.transport.abort()

    def _close_oldest(self, connections: Sequence[Any]) -> None:
        """Close the one that has waited longest for its client; this one, if the others are being answered."""
        waiting = [c for c in connections if c._waits_for or c.timeout_keep_alive_task is not None]
        oldest = min(waiting, key=lambda connection: connection._since, default=self)
        self.connections.discard(oldest)
        oldest.transport.abort()


def guarded(limits: ConnectionLimits) -> type[H11Protocol]:
    """The protocol with these limits."""
    values = {"limits": limits, "most": limits.affordable(), "proxies": networks(limits.unlimited)}
    return type("LimitedProtocol", (GuardedProtocol,), values)


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
        proxy_headers=False,  # the application has the middleware itself, with the proxies that it trusts
        backlog=BACKLOG,
        timeout_keep_alive=limits.idle_seconds,
        timeout_graceful_shutdown=STOP_SECONDS,
        **options,
    )
