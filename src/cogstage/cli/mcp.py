"""``cogstage mcp``: the agent interface."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.console import say
from cogstage.cli.options import run_option


def mcp(
    model: Path = options.MODEL,
    http: bool = run_option(False, "--http", help="Serve over HTTP instead of standard input and output."),
    host: str = options.HOST,
    port: int = options.port(8766),
    allowed_hosts: str = options.ALLOWED_HOSTS,
    trusted_proxies: str = options.TRUSTED_PROXIES,
    corrections: Path | None = options.CORRECTIONS,
    require_private: bool = options.REQUIRE_PRIVATE,
    hide_counts: bool = options.HIDE_COUNTS,
) -> None:
    """Serve a model to AI agents over the Model Context Protocol.

    The tools are search_terms, predict, explain, discover and evidence.

    Example: cogstage mcp model
    """
    from cogstage.errors import UsageError

    try:
        import mcp  # noqa: F401
    except ImportError:
        raise UsageError(
            "the agent interface needs the package mcp; install it with pip install 'cogstage[mcp]'"
        ) from None
    from cogstage.mcp.serving import serve_http, serve_stdio
    from cogstage.web.service import Service
    from cogstage.web.serving import Address, listed

    address = Address(host, port, allowed_hosts=listed(allowed_hosts), trusted_proxies=listed(trusted_proxies))
    address.check()
    service = Service.load(model, hide_counts=hide_counts, corrections=corrections)
    if warning := service.check_privacy(require_private):
        say(warning)
    if http:
        typer.echo(f"Agent interface at {address.url}/mcp (stop with Ctrl-C)", err=True)
        serve_http(service, address)
    else:
        serve_stdio(service)
