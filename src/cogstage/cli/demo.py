"""``cogstage demo``."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli.console import print_json, progress


def demo(
    out: Path = typer.Option(Path("demo"), "--out", "-o", help="Folder for everything the demo makes."),
    seed: int = typer.Option(0, "--seed", min=0, help="Where randomness begins."),
    as_json: bool = typer.Option(False, "--json", help="The figures as JSON."),
) -> None:
    """The whole street on the embedded data set: build, train, evaluate, explain; ends in an HTML report.

    Example: cogstage demo --out demo
    """
    from cogstage.data.demo import DemoOptions, run_demo

    result = run_demo(out, DemoOptions(seed=seed), progress())
    if as_json:
        print_json({"report": str(out / "report.html"), "seconds": round(result.seconds, 1), "test": result.figures})
        return
    shown = result.cases[0].prediction
    model = out / "model"
    typer.echo(result.table.text())
    typer.echo(f"\nReport: {out / 'report.html'} ({result.seconds:.0f} s). Open it in a browser.\n")
    typer.echo("What to try next:")
    typer.echo(f'  cogstage explain {model} "{shown.head.name}" "{shown.tail.name}" -k 10')
    typer.echo(f'  cogstage discover {model} "{shown.head.name}" --new-only --explain')
    typer.echo(f"  cogstage serve {model}")
    typer.echo(f"  cogstage graph info {out / 'graph'};  cogstage dataset info {out / 'dataset'}")
    typer.echo("Your own data: see the tables in README.md. The demo's literature is of the 1970s: no medical advice.")
