"""``cogstage serve``: the explorer and the JSON API over a model."""

from __future__ import annotations

from pathlib import Path

import typer


def serve(
    model: Path = typer.Argument(..., help="Model folder.", metavar="MODEL"),
    host: str = typer.Option("127.0.0.1", help="Address to listen on."),
    port: int = typer.Option(8764, min=1, max=65535, help="Port to listen on."),
    workers: int = typer.Option(1, min=1, max=64, help="Processes; they share the model's memory."),
    rate_limit: int = typer.Option(0, min=0, help="Requests per minute for each client and worker; 0 is no limit."),
    metrics: bool = typer.Option(False, "--metrics", help="Counters for Prometheus at /metrics."),
    url: str | None = typer.Option(None, help="Address that people use, if a proxy stands before the server."),
    allowed_hosts: str = typer.Option("", help="Further host names to answer to, with commas; '*' is any."),
    trusted_proxies: str = typer.Option("", help="Proxies whose X-Forwarded-For is believed (addresses, networks)."),
    largest_batch: int = typer.Option(1000, min=1, help="Pairs in one batch at most."),
    require_private: bool = typer.Option(
        False, "--require-private", help="Refuse a model whose counts were never suppressed."
    ),
    hide_counts: bool = typer.Option(False, "--hide-counts", help="Never show how often terms were counted together."),
) -> None:
    """Serve the explorer's pages and the JSON API until stopped.

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
        service = Service.load(model, limits, hide_counts)
        if warning := service.check_privacy(require_private):
            typer.echo(warning, err=True)
        return create_explorer_app(service, url, metrics, address.access)

    run(
        build,
        listener,
        workers,
        ready=lambda: typer.echo(f"Explorer at {address.url}, API at /api/v1 (stop with Ctrl-C)", err=True),
    )
