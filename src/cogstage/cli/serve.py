"""``cogstage serve``: the explorer and the JSON API over a model."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import panels


def serve(
    model: Path = typer.Argument(..., help="Model folder.", metavar="MODEL", rich_help_panel=panels.INPUT),
    host: str = typer.Option("127.0.0.1", help="Address to listen on.", metavar="ADDRESS", rich_help_panel=panels.RUN),
    port: int = typer.Option(
        8764, min=1, max=65535, help="Port to listen on.", metavar="PORT", rich_help_panel=panels.RUN
    ),
    workers: int = typer.Option(
        1,
        min=1,
        max=64,
        help="Number of processes; they share the model's memory.",
        metavar="N",
        rich_help_panel=panels.RUN,
    ),
    rate_limit: int = typer.Option(
        0,
        min=0,
        help="Requests per minute for each client and worker; 0 means no limit.",
        metavar="N",
        rich_help_panel=panels.RUN,
    ),
    metrics: bool = typer.Option(
        False, "--metrics", help="Serve Prometheus metrics at /metrics.", rich_help_panel=panels.RUN
    ),
    url: str | None = typer.Option(
        None,
        help="Public address, if a proxy stands in front of the server.",
        metavar="URL",
        rich_help_panel=panels.RUN,
    ),
    allowed_hosts: str = typer.Option(
        "",
        help="Other host names to answer to, comma-separated; * allows any.",
        metavar="NAMES",
        rich_help_panel=panels.RUN,
    ),
    trusted_proxies: str = typer.Option(
        "",
        help="Addresses or networks of proxies whose X-Forwarded-For header is trusted, comma-separated.",
        metavar="ADDRESSES",
        rich_help_panel=panels.RUN,
    ),
    largest_batch: int = typer.Option(
        1000, min=1, help="Largest number of pairs in one batch request.", metavar="N", rich_help_panel=panels.RUN
    ),
    corrections: Path | None = typer.Option(
        None,
        help="Table of verdicts on triples; readers can add to it.",
        metavar="FILE",
        rich_help_panel=panels.RUN,
    ),
    require_private: bool = typer.Option(
        False,
        "--require-private",
        help="Refuse a model whose counts were not suppressed or privatised.",
        rich_help_panel=panels.PRIVACY,
    ),
    hide_counts: bool = typer.Option(
        False, "--hide-counts", help="Never show co-occurrence counts.", rich_help_panel=panels.PRIVACY
    ),
) -> None:
    """Serve the web explorer and the JSON API until stopped.

    Example: cogstage serve model --workers 2
    """
    from cogstage.web.explorer_app import create_explorer_app
    from cogstage.web.service import Limits, Service
    from cogstage.web.serving import Address, listed
    from cogstage.web.workers import listen
    from cogstage.web.workers import serve as run

    address = Address(host, port, url, allowed_hosts=listed(allowed_hosts), trusted_proxies=listed(trusted_proxies))
    address.check()
    listener = listen(host, port)
    limits = Limits(pairs=largest_batch, requests_a_minute=rate_limit)

    def build() -> object:
        service = Service.load(model, limits, hide_counts, corrections)
        if warning := service.check_privacy(require_private):
            typer.echo(warning, err=True)
        return create_explorer_app(service, url, metrics, address.access)

    run(
        build,
        listener,
        workers,
        ready=lambda: typer.echo(f"Explorer at {address.url}, API at /api/v1 (stop with Ctrl-C)", err=True),
    )
