"""Where an application listens: loopback by default, TLS where a certificate is given, health on a port of its own."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI
from starlette.types import ASGIApp, Receive, Scope, Send

from cogstage.errors import UsageError
from cogstage.web.base import create_app
from cogstage.web.security import HostAccess, networks

LOOPBACK = ("127.0.0.1", "::1", "localhost")
EVERYWHERE = ("0.0.0.0", "::", "")
STATUS_PATHS = ("/health", "/metrics")


def listed(text: str) -> tuple[str, ...]:
    """The parts of an option that takes several values with commas."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True)
class Address:
    """Where an application listens and under which address people reach it."""

    host: str = "127.0.0.1"
    port: int = 8765
    public_url: str | None = None  # as people reach it, when a proxy stands before it
    certificate: Path | None = None  # PEM files for TLS without a proxy
    key: Path | None = None
    allowed_hosts: tuple[str, ...] = ()  # further names in Host; "*" is any
    trusted_proxies: tuple[str, ...] = ()  # addresses or networks whose X-Forwarded-For is believed
    health_port: int | None = None  # where health and metrics are answered instead

    def check(self) -> None:
        """Raise on an address that cannot work."""
        if (self.certificate is None) != (self.key is None):
            raise UsageError("TLS needs both `certificate` and `key`")
        for file in (self.certificate, self.key):
            if file is not None and not file.is_file():
                raise UsageError(f"no such file: {file}")
        if self.public_url is not None:
            parts = urlsplit(self.public_url)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path.strip("/") or parts.query:
                raise UsageError(f"`public_url` is {self.public_url}; an example is https://study.example.org")
        if self.health_port == self.port:
            raise UsageError(f"`health_port` and `port` are both {self.port}; choose another one")
        networks(self.trusted_proxies)
        for host in self.allowed_hosts:
            if "*" in host and (host != "*" and (not host.startswith("*.") or "*" in host[1:])):
                raise UsageError(f"`allowed_hosts` has {host}; a pattern is *.example.org, and * is any host")

    def listen(self) -> list[socket.socket]:
        """Sockets on its ports."""
        return [listen(self.host, port) for port in (self.port, self.health_port) if port is not None]

    @property
    def access(self) -> HostAccess:
        """Whom the application believes: names it answers to, proxies whose word it takes."""
        named = [urlsplit(self.public_url).hostname or ""] if self.public_url else []
        own = [] if self.host in EVERYWHERE else [self.host]
        return HostAccess((*LOOPBACK, *own, *named, *self.allowed_hosts), self.trusted_proxies)

    @property
    def url(self) -> str:
        """The address for links, without a slash at the end."""
        if self.public_url:
            return self.public_url.rstrip("/")
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}"

    @property
    def is_https(self) -> bool:
        """Whether browsers reach it by TLS."""
        return self.url.startswith("https://")

    @property
    def secure_cookies(self) -> bool:
        """Cookies go over TLS only, except on plain loopback, where browsers would not send them back."""
        return self.is_https or self.host not in LOOPBACK


def bound(family: int, address: tuple[Any, ...], shared: bool = True) -> socket.socket:
    """A socket on a port; other sockets of ours may share it."""
    # Named as TCP, so that asyncio switches the delay of small packets off (40 ms an answer otherwise).
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError:
        made.close()
        raise
    return made


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the port; a port that is taken is an error of one line."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with bound(family, (host, port), shared=False) as alone:  # fails if anybody has the port, even to share it
            address = alone.getsockname()
        return bound(family, address)
    except OSError as error:
        raise UsageError(
            f"cannot listen on {host} port {port}: {error.strerror}; choose another `port` or `host`"
        ) from None


def on_own_port(app: FastAPI, port: int | None) -> ASGIApp:
    """The application with its health and metrics on ``port`` alone, where nothing else is answered.

    Whoever reaches the public port then learns nothing about the load, and probes need no host name.
    """
    if port is None:
        return app
    status = create_app("status")
    moved = [route for route in app.router.routes if getattr(route, "path", "").startswith(STATUS_PATHS)]
    for route in moved:
        app.router.routes.remove(route)
        status.router.routes.append(route)

    async def by_port(scope: Scope, receive: Receive, send: Send) -> None:
        reached = scope.get("server") or ("", None)
        await (status if reached[1] == port else app)(scope, receive, send)

    return by_port
