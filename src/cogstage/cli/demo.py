"""``cogstage demo``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from cogstage.cli import options
from cogstage.cli.console import print_json, progress

if TYPE_CHECKING:
    from cogstage.rationale.record import Prediction


def demo(
    out: Path = options.out("Output folder.", Path("demo")),
    seed: int = options.seed(min=0),
    as_json: bool = options.as_json("Print JSON (the metrics)."),
) -> None:
    """Run the full pipeline on the embedded data set: build, train, evaluate, explain, report.

    Example: cogstage demo --out demo
    """
    from cogstage.data.demo import DemoOptions, run_demo

    result = run_demo(out, DemoOptions(seed=seed), progress())
    report = out / "report.html"
    if as_json:
        textbook = {"right": result.right, "pairs": len(result.answers), "kinds": result.right_by_kind}
        seconds = round(result.seconds, 1)
        print_json({"report": str(report), "seconds": seconds, "test": result.figures, "textbook": textbook})
        return
    typer.echo("\n\n".join(table.text() for table in result.tables))
    typer.echo(f"\nReport: {report} ({result.seconds:.0f} s). Open it in a browser.\n")
    typer.echo("What to try next:")
    for command in suggested_commands(out, result.cases[0].prediction):
        typer.echo(f"  {command}")
    typer.echo("Your own data: see the tables in README.md. Nothing in the demo is medical advice.")


def suggested_commands(out: Path, shown: Prediction) -> list[str]:
    """What to try after the demo, each as it is typed."""
    model, head, tail = (shlex.quote(text) for text in (str(out / "model"), shown.head.name, shown.tail.name))
    graph, facts, dataset = (shlex.quote(str(out / name)) for name in ("graph", "facts", "dataset"))
    return [
        f"cogstage explain {model} {head} {tail}",
        f"cogstage explain {model} paracetamol 'high blood pressure' --relation may_treat",
        f"cogstage discover {model} {head} --new-only --explain",
        f"cogstage serve {model} --facts {facts}",
        f"cogstage graph info {graph}",
        f"cogstage dataset info {dataset}",
    ]
