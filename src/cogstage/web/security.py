"""Before every page: hosts, proxies, security headers, limits per client, log and metrics.

Starlette checks the host name and uvicorn reads the headers of proxies. :class:`Guard` does what they do not; each part
names the attack that it stops.
"""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from prometheus_client import CollectorRegistry, Counter, Histogram, disable_created_metrics, generate_latest
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from cogstage.errors import UsageError

CONTENT_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": CONTENT_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
METHODS = frozenset({"GET", "HEAD", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"})
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SECRET_PATHS = re.compile(r"^(/+join/+).+", re.DOTALL)  # personal links: the rest of the path is a secret
CLIENTS = 10_000  # clients that are remembered
BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)  # seconds
CLIENT: ContextVar[str] = ContextVar("client", default="")  # of the request being answered, as client_network gives it
log = logging.getLogger("cogstage.web")


class PageError(HTTPException):
    """An error with a machine-readable code beside the words for people."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(status, message)
        self.code = code


@dataclass(frozen=True)
class HostAccess:
    """Names that an application answers to and proxies that it trusts.

    ``hosts`` None answers to every name, as in tests; a server always has a list.
    """

    hosts: tuple[str, ...] | None = None
    proxies: tuple[str, ...] = ()

    def middleware(self, guard: Middleware) -> list[Middleware]:
        """``guard`` between uvicorn's reading of proxy headers and Starlette's check of the host name."""
        # Names of others that point here would let a foreign page read the answers (DNS rebinding).
        hosts = [f"[{host}]" if ":" in host and not host.startswith("[") else host for host in self.hosts or ("*",)]
        return [
            Middleware(ProxyHeadersMiddleware, trusted_hosts=[str(network) for network in networks(self.proxies)]),
            guard,
            Middleware(TrustedHostMiddleware, allowed_hosts=hosts, www_redirect=False),
        ]


def networks(texts: Sequence[str]) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks as they stand in an option."""
    try:
        return [ip_network(text.strip(), strict=False) for text in texts if text.strip()]
    except ValueError as error:
        raise UsageError(f"`trusted_proxies`: {error}; an example is 127.0.0.1,172.17.0.0/16") from None


def is_in(address: str, trusted: Sequence[IPv4Network | IPv6Network]) -> bool:
    """Whether an address lies in one of the networks; what is no address never does."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in trusted)


def client_network(address: str) -> str:
    """The client behind an address, for counting: IPv6 clients own a network of 64 bits and change within it."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if parsed.version == 4:
        return address
    mapped = parsed.ipv4_mapped
    return str(mapped or ip_network((int(parsed) >> 64 << 64, 64)))


def loggable(text: str) -> str:
    """A path or method for the log: without secrets and control characters, which could forge lines."""
    shown = SECRET_PATHS.sub(r"\1***", text)[:200]
    return "".join(c if c.isascii() and c.isprintable() else c.encode("unicode_escape").decode() for c in shown)


async def refuse(send: Send, status: int, code: str, message: str, headers: dict[str, str] | None = None) -> None:
    """Answer with an error in the API's form."""
    body = json.dumps({"error": {"code": code, "message": message}}).encode()
    fields = {"content-type": "application/json", "content-length": str(len(body)), **(headers or {})}
    raw = [(name.encode(), value.encode()) for name, value in fields.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


class Guard:
    """ASGI middleware around all answers.

    - Security headers on every answer, errors included: scripts, frames and other sites.
    - A change that a browser sends on behalf of another site is refused (cross-site request forgery). ``public_url`` is
      the site's own address where a proxy hides it from us. Programs that send no Origin pass.
    - A body above ``largest_body`` bytes is refused, with or without a stated length (memory).
    - ``requests_per_minute`` of one client, counted in each worker; 0 is no limit.
    - One line per request in the log, without addresses, queries and secrets; unexpected errors become ``error_page``.
    """

    def __init__(
        self,
        app: ASGIApp,
        error_page: Callable[[Scope], Response],
        public_url: str | None = None,
        page_cache: str = "no-store",
        largest_body: int = 64 * 1024,
        requests_per_minute: int = 0,
        metrics: RequestMetrics | None = None,
    ) -> None:
        self.app, self._error_page, self._metrics = app, error_page, metrics
        self._largest_body, self._page_cache = largest_body, page_cache
        self._rate = RateLimit(requests_per_minute) if requests_per_minute else None
        self._own = urlsplit(public_url).netloc if public_url else None
        self._headers = dict(HEADERS)
        if public_url and public_url.startswith("https://"):
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        method, begun, status = scope["method"], time.perf_counter(), 0
        CLIENT.set(client_network(scope["client"][0]) if scope.get("client") else "")
        if method == "HEAD":  # routes are declared for GET; the server leaves the body of the answer out
            scope = {**scope, "method": "GET"}

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                self._add_headers(message, scope["path"])
            await send(message)

        try:
            if refusal := self._refusal(method, Headers(scope=scope)):
                await refuse(answer, *refusal)
            else:
                await self.app(scope, self._limited(receive), answer)
        except Exception:
            if status:
                raise
            log.exception("unexpected error in %s %s", loggable(method), loggable(scope["path"]))
            await self._error_page(scope)(scope, receive, answer)
        finally:
            passed = time.perf_counter() - begun
            log.info("%s %s %d %.0f ms", loggable(method), loggable(scope["path"]), status or 500, 1000 * passed)
            if self._metrics:
                self._metrics.note(scope, method, status or 500, passed)

    def _add_headers(self, message: Message, path: str) -> None:
        headers = MutableHeaders(scope=message)
        for name, value in self._headers.items():
            headers.setdefault(name, value)
        static = path.startswith("/static/") and message["status"] in (200, 304)
        headers.setdefault("Cache-Control", "public, max-age=86400" if static else self._page_cache)

    def _refusal(self, method: str, headers: Headers) -> tuple[int, str, str, dict[str, str]] | None:
        if len(headers.getlist("host")) > 1:  # a proxy may route by one of them, and we check the other
            return 400, "host_not_allowed", "A request has one Host.", {}
        if method not in SAFE_METHODS and self._is_foreign(headers):
            return 403, "cross_site", "This change was requested by another site.", {}
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length[:20]) > self._largest_body:
            return 413, "body_too_large", self._too_large(), {"connection": "close"}
        if self._rate and (wait := self._rate.wait(CLIENT.get())):
            message = f"more than {self._rate.per_minute} requests per minute; try again in {wait} s"
            return 429, "rate_limited", message, {"retry-after": str(wait)}
        return None

    def _is_foreign(self, headers: Headers) -> bool:
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return True
        origin = headers.get("origin")
        if origin is None:
            return False
        try:
            return urlsplit(origin).netloc not in (headers.get("host", ""), self._own)
        except ValueError:
            return True

    def _too_large(self) -> str:
        return f"a request can have at most {self._largest_body} bytes"

    def _limited(self, receive: Receive) -> Receive:
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._largest_body:
                raise PageError(413, "body_too_large", self._too_large())
            return message

        return counted


class RateLimit:
    """A bucket for each client that refills evenly over a minute."""

    def __init__(self, per_minute: int) -> None:
        self.per_minute = per_minute
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def wait(self, client: str) -> int:
        """Count a request; the seconds until one is allowed, 0 if this one is."""
        now = time.monotonic()
        left, then = self._left.pop(client, (float(self.per_minute), now))
        left = min(float(self.per_minute), left + (now - then) * self.per_minute / 60.0)
        allowed = left >= 1.0
        self._left[client] = (left - 1.0 if allowed else left, now)
        if len(self._left) > CLIENTS:
            self._left.popitem(last=False)
        return 0 if allowed else int((1.0 - left) * 60.0 / self.per_minute) + 1


class Attempts:
    """At most ``most`` failed attempts in ``window`` seconds, counted for an account from one client.

    An attempt is counted before it is judged, under one lock, so that simultaneous guesses cannot all pass; a success
    takes its count back. While an account has ``attack`` attempts from all clients together, each client has only
    ``most_under_attack``: many addresses guess slowly, and none of them locks the others out.
    Counts within one process.
    """

    def __init__(
        self,
        most: int = 10,
        window: float = 600.0,
        attack: int = 200,
        most_under_attack: int = 3,
        clients: int = CLIENTS,
    ) -> None:
        self._most, self._window, self._under_attack, self._clients = most, window, most_under_attack, clients
        self._made: OrderedDict[tuple[str, str], list[float]] = OrderedDict()
        self._recent: deque[tuple[str, float]] = deque(maxlen=attack)  # accounts and times of attempts
        self._lock = threading.Lock()

    def begin(self, account: str, address: str) -> bool:
        """Count an attempt; False if there were too many and it must not be made."""
        now, key = time.monotonic(), (account, client_network(address))
        with self._lock:
            made = [moment for moment in self._made.pop(key, ()) if moment > now - self._window]
            attacked = self._recent.maxlen == sum(a == account and t > now - self._window for a, t in self._recent)
            allowed = len(made) < (min(self._most, self._under_attack) if attacked else self._most)
            if allowed:
                made.append(now)
                self._recent.append((account, now))
            if made:
                self._made[key] = made
            while len(self._made) > self._clients:
                self._made.popitem(last=False)
        return allowed

    def succeeded(self, account: str, address: str) -> None:
        """The attempt that was begun last was right: forget this client's failures."""
        with self._lock:
            self._made.pop((account, client_network(address)), None)

    def __len__(self) -> int:
        """The number of clients that are remembered."""
        return len(self._made)


class RequestMetrics:
    """Requests and their durations by route and status, for Prometheus; those of this process."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "cogstage_requests", "Requests.", ("method", "route", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "cogstage_request_seconds", "Duration of requests.", ("route",), registry=self._registry, buckets=BUCKETS
        )

    def note(self, scope: Scope, method: str, status: int, seconds: float) -> None:
        """Count a request. Neither paths nor unknown methods make a series: they hold what somebody asked for."""
        route = getattr(scope.get("route"), "path", "other")
        self._requests.labels(method if method in METHODS else "other", route, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def answer(self) -> Response:
        """All counters as text."""
        return Response(generate_latest(self._registry), media_type="text/plain; version=0.0.4; charset=utf-8")
