"""``cogstage dataset``: build data sets from a graph and facts, and show what is in them."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli.console import print_json, progress

app = typer.Typer(help="Data sets: facts on a graph, split, with negatives and a leakage report.", no_args_is_help=True)


@app.command()
def build(
    graph: Path = typer.Option(..., "--graph", "-g", help="Graph folder."),
    facts: Path = typer.Option(..., "--facts", "-f", help="Facts folder."),
    out: Path = typer.Option(..., "--out", "-o", help="Data set folder to write."),
    negatives: str = typer.Option("degree", help="Negatives in the pairs: uniform, degree or hard."),
    split: str = typer.Option("random", help="What is dealt out: random (pairs), cold-head, cold-tail or time."),
    before: int | None = typer.Option(
        None, metavar="YEAR", help="With --split time: fit on facts stated before this year, test on later ones."
    ),
    hold_out: Path | None = typer.Option(
        None, help="Table of pairs (head, tail or outcome) to keep out of the data set, such as a reference set."
    ),
    outcomes: Path | None = typer.Option(None, help="Table of the concepts (outcome, tail) of --hold-out's outcomes."),
    relation: list[str] = typer.Option([], "--relation", "-r", help="Only this relation (may be given several times)."),
    minimum: int = typer.Option(100, help="Leave out relations with fewer facts in the graph."),
    cap: int | None = typer.Option(None, help="At most this many facts per relation."),
    seed: int = typer.Option(0, help="Random seed."),
    as_json: bool = typer.Option(False, "--json", help="Print the manifest as JSON."),
) -> None:
    """Build a data set: 70/15/15 by pairs of concepts, one negative per positive, manifest and leakage report.

    All three kinds of negatives are saved and compared in leakage.txt; --negatives says which one models see.

    Example: cogstage dataset build --graph graph --facts facts --negatives degree --out data
    """
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.facts import Facts
    from cogstage.knowledge.hold_out import HoldOut
    from cogstage.knowledge.leakage_text import counts_text

    dataset = build_dataset(
        Graph.load(graph),
        Facts.load(facts),
        out,
        negatives=negatives,
        split=split,
        seed=seed,
        minimum=minimum,
        cap=cap,
        relations=tuple(relation) or None,
        before=before,
        hold_out=None if hold_out is None else HoldOut.read(hold_out, outcomes),
        progress=progress(),
    )
    if as_json:
        print_json(dataset.manifest)
        return
    typer.echo("\n".join(counts_text(dataset.manifest["counts"])))
    for warning in dataset.leakage["warnings"]:
        typer.echo(f"look at: {warning}")
    typer.echo(f"The data set is in {out}; {out / 'leakage.txt'} says how much of the answer leaks.")


@app.command()
def info(
    folder: Path = typer.Argument(..., help="Data set folder."),
    as_json: bool = typer.Option(False, "--json", help="Print manifest and leakage report as JSON."),
) -> None:
    """Show a data set: how it was made, its counts, what of the facts is in it, and its leakage report.

    Example: cogstage dataset info data
    """
    from cogstage.knowledge.dataset import Dataset
    from cogstage.knowledge.leakage_text import coverage_text, leakage_text

    dataset = Dataset.load(folder)
    if as_json:
        print_json({"manifest": dataset.manifest, "leakage": dataset.leakage})
        return
    options = dataset.manifest.get("options", {})
    typer.echo(f"{folder}: " + ", ".join(f"{key} {value}" for key, value in options.items() if value is not None))
    typer.echo("")
    typer.echo("\n".join(coverage_text(dataset.manifest)))
    typer.echo("")
    typer.echo(leakage_text(dataset.leakage, dataset.manifest["counts"]), nl=False)
