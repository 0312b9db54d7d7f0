"""``cogstage mcp``: the agent interface over a model."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import panels


def mcp(
    model: Path = typer.Argument(..., help="Model folder.", metavar="MODEL", rich_help_panel=panels.INPUT),
    http: bool = typer.Option(
        False, "--http", help="Serve over HTTP instead of standard input and output.", rich_help_panel=panels.RUN
    ),
    host: str = typer.Option(
        "127.0.0.1", help="Address to listen on, with --http.", metavar="ADDRESS", rich_help_panel=panels.RUN
    ),
    port: int = typer.Option(
        8766, min=1, max=65535, help="Port to listen on, with --http.", metavar="PORT", rich_help_panel=panels.RUN
    ),
    allowed_hosts: str = typer.Option(
        "",
        help="Other host names to answer to, comma-separated; * allows any.",
        metavar="NAMES",
        rich_help_panel=panels.RUN,
    ),
    corrections: Path | None = typer.Option(
        None, help="Table of verdicts on triples.", metavar="FILE", rich_help_panel=panels.RUN
    ),
    require_private: bool = typer.Option(
        False,
        "--require-private",
        help="Refuse a model whose counts were never suppressed.",
        rich_help_panel=panels.RUN,
    ),
    hide_counts: bool = typer.Option(
        False, "--hide-counts", help="Hide all co-occurrence counts.", rich_help_panel=panels.RUN
    ),
) -> None:
    """Serve predict, explain, discover, evidence and term search to agents (Model Context Protocol).

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

    address = Address(host, port, allowed_hosts=listed(allowed_hosts))
    service = Service.load(model, hide_counts=hide_counts, corrections=corrections)
    if warning := service.check_privacy(require_private):
        typer.echo(warning, err=True)
    if http:
        typer.echo(f"Agent interface at {address.url}/mcp (stop with Ctrl-C)", err=True)
        serve_http(service, address)
    else:
        serve_stdio(service)
