"""``cogstage serve``: the explorer and the JSON API over a model."""

from __future__ import annotations

from pathlib import Path

import typer


def serve(
    model: Path = typer.Argument(..., help="Model folder.", metavar="MODEL"),
    host: str = typer.Option("127.0.0.1", help="Address to listen on."),
    port: int = typer.Option(8764, min=1, max=65535, help="Port to listen on."),
    workers: int = typer.Option(1, min=1, max=64, help="Processes; they share the model's memory."),
    rate_limit: int = typer.Option(0, min=0, help="Requests a minute for each client and worker; 0 is no limit."),
    metrics: bool = typer.Option(False, "--metrics", help="Counters for Prometheus at /metrics."),
    url: str | None = typer.Option(None, help="Address that people use, if a proxy stands before the server."),
    largest_batch: int = typer.Option(1000, min=1, help="Pairs in one batch at most."),
) -> None:
    """Serve the explorer's pages and the JSON API until stopped.

    Example: cogstage serve model --workers 2
    """
    from cogstage.web.explorer_app import create_explorer_app
    from cogstage.web.service import Limits, Service
    from cogstage.web.workers import listen
    from cogstage.web.workers import serve as run

    listener = listen(host, port)
    limits = Limits(pairs=largest_batch, requests_a_minute=rate_limit)
    shown = f"[{host}]" if ":" in host else host
    run(
        lambda: create_explorer_app(Service.load(model, limits), url, metrics),
        listener,
        workers,
        ready=lambda: typer.echo(f"Explorer at http://{shown}:{port}, API at /api/v1 (stop with Ctrl-C)", err=True),
    )
