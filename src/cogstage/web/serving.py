"""Running an application with uvicorn: loopback by default, TLS where a certificate is given, logs without secrets."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from starlette.types import ASGIApp

from cogstage.errors import UsageError
from cogstage.web.security import HostAccess, networks

LOOPBACK = ("127.0.0.1", "::1", "localhost")
EVERYWHERE = ("0.0.0.0", "::", "")


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
        networks(self.trusted_proxies)
        for host in self.allowed_hosts:
            if "*" in host and (host != "*" and (not host.startswith("*.") or "*" in host[1:])):
                raise UsageError(f"`allowed_hosts` has {host}; a pattern is *.example.org, and * is any host")

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


def serve(app: ASGIApp, address: Address) -> None:
    """Serve until stopped."""
    import uvicorn

    from cogstage.web.connections import ConnectionLimits, configuration

    address.check()
    check_free(address)
    config = configuration(
        app,
        ConnectionLimits(unlimited=address.trusted_proxies),
        host=address.host,
        port=address.port,
        ssl_certfile=str(address.certificate) if address.certificate else None,
        ssl_keyfile=str(address.key) if address.key else None,
    )
    uvicorn.Server(config).run()


def check_free(address: Address) -> None:
    """Raise if the port is taken: uvicorn says so in a log line only."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        with socket.socket(family) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((address.host, address.port))
    except OSError as error:
        raise UsageError(
            f"cannot listen on {address.host} port {address.port}: {error.strerror}; choose another `port` or `host`"
        ) from None
