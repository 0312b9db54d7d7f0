"""``cogstage serve``: the explorer and the JSON API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from cogstage.cli import options
from cogstage.cli.console import say
from cogstage.cli.options import input_option, run_option


def serve(
    model: Path = options.MODEL,
    host: str = options.HOST,
    port: int = options.port(8764),
    workers: int = options.workers(1, "Number of processes; they share the memory of the model.", min=1, max=64),
    rate_limit: int = run_option(
        0, min=0, help="Requests per minute for each client and worker; 0 means no limit.", metavar="N"
    ),
    metrics: bool = run_option(False, "--metrics", help="Serve Prometheus metrics at /metrics."),
    health_port: int | None = options.HEALTH_PORT,
    public_url: str | None = options.URL,
    allowed_hosts: str = options.ALLOWED_HOSTS,
    trusted_proxies: str = options.TRUSTED_PROXIES,
    largest_batch: int = run_option(1000, min=1, help="Largest number of pairs in one batch request.", metavar="N"),
    corrections: Path | None = options.CORRECTIONS,
    facts: Path | None = input_option(
        None, "--facts", "-f", help="Facts folder; pages show the sources of known facts.", metavar="FOLDER"
    ),
    require_private: bool = options.REQUIRE_PRIVATE,
    hide_counts: bool = options.HIDE_COUNTS,
) -> None:
    """Serve the web explorer and the JSON API until stopped.

    Example: cogstage serve model --workers 2
    """
    from cogstage.web.explorer_app import create_explorer_app
    from cogstage.web.service import Limits, Service
    from cogstage.web.serving import Address, listed, on_own_port
    from cogstage.web.workers import serve as run

    address = Address(
        host,
        port,
        public_url,
        allowed_hosts=listed(allowed_hosts),
        trusted_proxies=listed(trusted_proxies),
        health_port=health_port,
    )
    limits = Limits(pairs=largest_batch, requests_a_minute=rate_limit)

    def build() -> Any:
        service = Service.load(model, limits, hide_counts, corrections, facts)
        if warning := service.check_privacy(require_private):
            say(warning)
        service.examples  # noqa: B018 (chosen now, once for all workers, and not in somebody's request)
        return on_own_port(create_explorer_app(service, public_url, metrics, address.access), health_port)

    run(
        build,
        address,
        workers,
        lambda: typer.echo(f"Explorer at {address.url}, API at /api/v1 (stop with Ctrl-C)", err=True),
    )
