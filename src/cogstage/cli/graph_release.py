"""``cogstage graph audit``: measure how private a private release is."""

from __future__ import annotations

from dataclasses import asdict

import typer

from cogstage.cli import options
from cogstage.cli.console import print_json, progress
from cogstage.cli.options import model_option, privacy_option
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
