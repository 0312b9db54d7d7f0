"""``cogstage graph audit`` and ``release``: measure private releases, and make them with a ledger."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.console import print_json, progress, report_graph
from cogstage.cli.options import argument, model_option, privacy_option
from cogstage.errors import CogstageError

PRIVATE = "EPS,DELTA,M, or EPS,DELTA,M,laplace, as for `graph build`."


def audit(
    private: str = privacy_option(..., "--private", help=PRIVATE, metavar="EPS,DELTA,M"),
    order: bool = privacy_option(False, "--order", help="Audit a release with the order in time."),
    releases: int = model_option(
        10_000, min=100, help="Number of releases with a patient, and as many without.", metavar="N"
    ),
    confidence: float = model_option(0.99, help="Probability that all bounds hold.", metavar="P"),
    as_json: bool = options.as_json(),
) -> None:
    """Release worst-case inputs with and without one patient many times, and bound ε from below.

    No data is needed. The exit code is 1 if a bound exceeds the claimed ε.
    """
    from cogstage.graph.audit import audit as measure
    from cogstage.graph.options import PrivacyOptions

    result = measure(PrivacyOptions.parse(private), releases, confidence, order, progress())
    if as_json:
        print_json({**asdict(result), "epsilon": result.epsilon, "passed": result.passed})
    else:
        for bound in result.bounds:
            typer.echo(f"{bound.input:<8}{bound.rule:<11}{bound.assumption:<16}ε ≥ {bound.epsilon:.3f}")
        typer.echo(
            f"highest lower bound on ε: {result.epsilon:.3f}; claimed: {result.private.epsilon:g} "
            f"(δ {result.private.delta:g}, {releases:,} releases, confidence {confidence:g})"
        )
    if not result.passed:
        raise CogstageError(f"the release is not private: ε is at least {result.epsilon:.3f}")


def release(
    graph: Path = argument(..., help="Graph folder.", metavar="GRAPH"),
    out: Path = options.out("Output folder; an existing graph is replaced."),
    private: str | None = privacy_option(
        None, help=f"Add noise to a graph built with --pairs-per-patient M: {PRIVATE}", metavar="EPS,DELTA,M"
    ),
    ledger: Path | None = privacy_option(
        None, help="Ledger of all releases of these patients (default: GRAPH.ledger.json).", metavar="FILE"
    ),
    budget: str | None = privacy_option(
        None, help="Most that all releases together may cost a patient; set with the first.", metavar="EPS,DELTA"
    ),
    as_json: bool = options.as_json(),
) -> None:
    """Release a graph, and enter it in a ledger that refuses releases beyond its budget."""
    from cogstage.graph.ledger import Budget
    from cogstage.graph.options import PrivacyOptions
    from cogstage.graph.releasing import release_folder

    ledger = graph.with_name(f"{graph.name}.ledger.json") if ledger is None else ledger
    wanted = None if private is None else PrivacyOptions.parse(private)
    released, charged = release_folder(graph, out, wanted, ledger, None if budget is None else Budget.parse(budget))
    report_graph(released, out, as_json)
    private_entries = sum(entry.private is not None for entry in charged.entries)
    if private_entries:
        typer.echo(
            f"{ledger}: {private_entries} private releases used ε = {charged.spent():.3g} "
            f"of {charged.budget.epsilon:g} at δ = {charged.budget.delta:g}",
            err=True,
        )
