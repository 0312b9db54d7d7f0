"""Guards in front of the app: size of a request's body, requests per minute, and counters for Prometheus."""

from __future__ import annotations

import json
import threading
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

CLIENTS = 10_000  # clients whose rate is remembered
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds


async def refuse(send: Send, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
    """Answer with an error in the API's form."""
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    fields = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    raw = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


class BodyLimit:
    """Refuses a request whose body is larger than ``most`` bytes, whether or not it says its length."""

    def __init__(self, app: App, most: int) -> None:
        self.app, self.most = app, most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Read the body up to the limit, then hand it on."""
        if scope["type"] != "http" or scope["method"] in ("GET", "HEAD", "OPTIONS"):
            await self.app(scope, receive, send)
            return
        received = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            received += message.get("body", b"")
            more = message.get("more_body", False)
            if len(received) > self.most:
                await refuse(
                    send,
                    413,
                    "body_too_large",
                    f"a request can have at most {self.most} bytes",
                    {"connection": "close"},
                )
                return
        handed = False

        async def replay() -> Message:
            nonlocal handed
            if handed:
                return await receive()
            handed = True
            return {"type": "http.request", "body": bytes(received), "more_body": False}

        await self.app(scope, replay, send)


class RateLimit:
    """A bucket for each client address that refills evenly over a minute. Counted in each worker on its own."""

    def __init__(self, app: App, a_minute: int) -> None:
        self.app, self.a_minute = app, a_minute
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request through, or say when to come back."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        client = scope["client"][0] if scope.get("client") else "unknown"
        now = time.monotonic()
        left, then = self._left.pop(client, (float(self.a_minute), now))
        left = min(float(self.a_minute), left + (now - then) * self.a_minute / 60.0)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        if allowed:
            await self.app(scope, receive, send)
        else:
            wait = int((1.0 - left) * 60.0 / self.a_minute) + 1
            message = f"more than {self.a_minute} requests per minute; try again in {wait} s"
            await refuse(send, 429, "rate_limited", message, {"retry-after": str(wait)})


class Attempts:
    """At most ``most`` failed attempts in ``window`` seconds, counted for an account from one address.

    An attempt is counted before it is judged, under one lock, so that simultaneous guesses cannot all pass; a success
    takes its count back. An account also has ``most_everywhere`` attempts from all addresses together: many addresses
    cannot guess for ever, and one address that guesses wrong does not lock others out. Counts within one process.
    """

    def __init__(self, most: int = 10, window: float = 600.0, most_everywhere: int = 200) -> None:
        self._most, self._window, self._everywhere = most, window, most_everywhere
        self._made: OrderedDict[tuple[str, str], list[float]] = OrderedDict()
        self._lock = threading.Lock()

    def begin(self, account: str, address: str) -> bool:
        """Count an attempt; False if there were too many and it must not be made."""
        now = time.monotonic()
        keys = (((account, address), self._most), ((account, ""), self._everywhere))
        with self._lock:
            for key, most in keys:
                recent = [moment for moment in self._made.get(key, ()) if moment > now - self._window]
                self._made[key] = recent
                if len(recent) >= most:
                    return False
            for key, _ in keys:
                self._made[key].append(now)
                self._made.move_to_end(key)
            while len(self._made) > CLIENTS:
                self._made.popitem(last=False)
        return True

    def succeeded(self, account: str, address: str) -> None:
        """The attempt that was begun last was right: forget this address's failures."""
        with self._lock:
            self._made.pop((account, address), None)
            everywhere = self._made.get((account, ""))
            if everywhere:
                everywhere.pop()


class Metrics:
    """Requests and their durations by route and status, in the text form that Prometheus reads."""

    def __init__(self, app: App) -> None:
        self.app = app
        self._requests: dict[tuple[str, str, int], int] = {}
        self._seconds: dict[str, list[float]] = {}
        self._buckets: dict[str, list[int]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Measure a request, or answer ``/metrics``."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["path"] == "/metrics":
            body = self.text().encode()
            headers = [(b"content-type", b"text/plain; version=0.0.4; charset=utf-8")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": body})
            return
        begun = time.perf_counter()
        status = 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            # The route's pattern, not the path: a path may hold what somebody asked for, and would never end.
            route = getattr(scope.get("route"), "path", "other")
            self._note(scope["method"], route, status, time.perf_counter() - begun)

    def _note(self, method: str, route: str, status: int, seconds: float) -> None:
        key = (method, route, status)
        self._requests[key] = self._requests.get(key, 0) + 1
        self._seconds.setdefault(route, [0.0, 0.0])
        self._seconds[route][0] += seconds
        self._seconds[route][1] += 1
        counts = self._buckets.setdefault(route, [0] * len(BUCKETS))
        for number, bound in enumerate(BUCKETS):
            counts[number] += seconds <= bound

    def text(self) -> str:
        """All counters of this worker."""
        lines = ["# TYPE cogstage_requests_total counter"]
        lines += [
            f'cogstage_requests_total{{method="{method}",route="{route}",status="{status}"}} {number}'
            for (method, route, status), number in sorted(self._requests.items())
        ]
        lines.append("# TYPE cogstage_request_seconds histogram")
        for route, (total, number) in sorted(self._seconds.items()):
            for bound, count in zip(BUCKETS, self._buckets[route], strict=True):
                lines.append(f'cogstage_request_seconds_bucket{{route="{route}",le="{bound}"}} {count}')
            lines.append(f'cogstage_request_seconds_bucket{{route="{route}",le="+Inf"}} {number:.0f}')
            lines.append(f'cogstage_request_seconds_sum{{route="{route}"}} {total:.6f}')
            lines.append(f'cogstage_request_seconds_count{{route="{route}"}} {number:.0f}')
        return "\n".join(lines) + "\n"
