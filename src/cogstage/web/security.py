"""What stands before every page: security headers, known hosts and proxies, no posting from other sites, a careful log.

All are plain ASGI layers, so that they hold for pages, static files and errors alike.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cogstage.errors import UsageError
from cogstage.web.limits import refuse

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
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
SECRET_PATHS = re.compile(r"^(/join/).+")  # personal links: the rest of the path is a secret
log = logging.getLogger("cogstage.web")


@dataclass(frozen=True)
class HostAccess:
    """Whom an application believes. ``hosts`` None answers to every name, as in tests; a server always has a list."""

    hosts: tuple[str, ...] | None = None
    proxies: tuple[str, ...] = ()


def networks(texts: Sequence[str]) -> list[IPv4Network | IPv6Network]:
    """Addresses and networks as they stand in an option."""
    try:
        return [ip_network(text.strip(), strict=False) for text in texts if text.strip()]
    except ValueError as error:
        raise UsageError(f"`trusted_proxies`: {error}; an example is 127.0.0.1,172.17.0.0/16") from None


def loggable(path: str) -> str:
    """A path as it may stand in a log: without secrets, without control characters."""
    shown = SECRET_PATHS.sub(r"\1***", path)
    return shown[:200].encode("ascii", "backslashreplace").decode().replace("\n", "\\n").replace("\r", "\\r")


class SecurityHeaders:
    """Adds the headers to every answer; ``https`` tells browsers to stay with TLS."""

    def __init__(self, app: ASGIApp, https: bool = False, page_cache: str = "no-store") -> None:
        self.app = app
        self._headers = dict(HEADERS)
        self._page_cache = page_cache
        if https:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                static = scope["path"].startswith("/static/") and message["status"] in (200, 304)
                headers.setdefault("Cache-Control", "public, max-age=86400" if static else self._page_cache)
            await send(message)

        await self.app(scope, receive, with_headers)


class TrustedProxies:
    """The client's address and scheme as a proxy reports them, if the proxy is one of ours; nobody else is believed.

    X-Forwarded-For is read from its end: each proxy adds whom it heard from, so the first address that is no proxy of
    ours is the client, and whatever stands before it was written by the client.
    """

    def __init__(self, app: ASGIApp, proxies: Sequence[str] = ()) -> None:
        self.app = app
        self._trusted = networks(proxies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._trusted and scope["type"] == "http" and scope.get("client") and self._ours(scope["client"][0]):
            headers = Headers(scope=scope)
            chain = [part.strip() for value in headers.getlist("x-forwarded-for") for part in value.split(",")]
            for address in reversed(chain):
                if not _is_address(address):
                    break
                scope["client"] = (address, 0)
                if not self._ours(address):
                    break
            scheme = headers.get("x-forwarded-proto", "")
            if scheme in ("http", "https"):
                scope["scheme"] = scheme
        await self.app(scope, receive, send)

    def _ours(self, address: str) -> bool:
        return _is_address(address) and any(ip_address(address) in network for network in self._trusted)


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


class AllowedHosts:
    """Answers only to known names in ``Host``.

    Without this a page elsewhere could point a name of its own at this machine, and a browser would let it read the
    answers (DNS rebinding).
    """

    def __init__(self, app: ASGIApp, hosts: Sequence[str] | None = None) -> None:
        self.app = app
        self._hosts = None if hosts is None or "*" in hosts else {host.strip().lower().strip("[]") for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and self._hosts is not None:
            given = Headers(scope=scope).getlist("host")
            if len(given) != 1 or _host_name(given[0]) not in self._hosts:
                await refuse(
                    send,
                    400,
                    "host_not_allowed",
                    "This server does not accept this host name. Its administrator can allow it.",
                )
                return
        await self.app(scope, receive, send)


def _host_name(host: str) -> str:
    """The name in a Host header, without its port."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()


class SameOrigin:
    """Refuses changes that a browser sends on behalf of another site; programs that send no such headers pass.

    ``public_url`` is the site's own address where a proxy hides it from us (many put another name into ``Host``).
    """

    def __init__(self, app: ASGIApp, public_url: str | None = None) -> None:
        self.app = app
        self._own = urlsplit(public_url).netloc if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS and self._foreign(Headers(scope=scope)):
            await refuse(send, 403, "cross_site", "This change was requested by another site.")
            return
        await self.app(scope, receive, send)

    def _foreign(self, headers: Headers) -> bool:
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return True
        origin = headers.get("origin")
        if origin is None:
            return False
        try:
            return urlsplit(origin).netloc not in (headers.get("host", ""), self._own)
        except ValueError:
            return True


class AccessLog:
    """One line a request: method, path without secrets and query, status, milliseconds. No addresses, no tokens."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            passed = 1000 * (time.perf_counter() - begun)
            log.info("%s %s %d %.0f ms", scope["method"], loggable(scope["path"]), status, passed)
