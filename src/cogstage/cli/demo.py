"""``cogstage demo``."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.console import print_json, progress


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
        textbook = {"right": result.right, "pairs": len(result.answers)}
        seconds = round(result.seconds, 1)
        print_json({"report": str(report), "seconds": seconds, "test": result.figures, "textbook": textbook})
        return
    shown = result.cases[0].prediction
    model = out / "model"
    typer.echo("\n\n".join(table.text() for table in result.tables))
    typer.echo(f"\nReport: {report} ({result.seconds:.0f} s). Open it in a browser.\n")
    typer.echo("What to try next:")
    typer.echo(f'  cogstage explain {model} "{shown.head.name}" "{shown.tail.name}" --relation {shown.relation}')
    typer.echo(f'  cogstage explain {model} paracetamol "high blood pressure" --relation may_treat')
    typer.echo(f'  cogstage discover {model} "{shown.head.name}" --new-only --explain')
    typer.echo(f"  cogstage serve {model}")
    typer.echo(f"  cogstage graph info {out / 'graph'};  cogstage dataset info {out / 'dataset'}")
    typer.echo("Your own data: see the tables in README.md. Nothing in the demo is medical advice.")
