"""What stands before every page: security headers, no posting from other sites, a careful log.

All are plain ASGI layers, so that they hold for pages, static files and errors alike.
"""

from __future__ import annotations

import logging
import re
import time
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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


class SameOrigin:
    """Refuses changes that a browser sends on behalf of another site; programs that send no such headers pass.

    ``public_url`` is the site's own address where a proxy hides it from us (many put another name into ``Host``).
    """

    def __init__(self, app: ASGIApp, public_url: str | None = None) -> None:
        self.app = app
        self._own = urlsplit(public_url).netloc if public_url else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and scope["method"] not in SAFE_METHODS and self._foreign(Headers(scope=scope)):
            await refuse(send, 403, "cross_site", "This change was asked for by another site.")
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
