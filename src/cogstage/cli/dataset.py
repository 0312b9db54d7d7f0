"""``cogstage dataset``: build data sets from a graph and facts, and show what is in them."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import panels
from cogstage.cli.console import print_json, progress

app = typer.Typer(
    help="Build and describe data sets: facts on a graph, split, with negatives and a leakage report.",
    no_args_is_help=True,
)


@app.command()
def build(
    graph: Path = typer.Option(
        ..., "--graph", "-g", help="Graph folder.", metavar="FOLDER", rich_help_panel=panels.INPUT
    ),
    facts: Path = typer.Option(
        ..., "--facts", "-f", help="Facts folder.", metavar="FOLDER", rich_help_panel=panels.INPUT
    ),
    out: Path = typer.Option(
        ..., "--out", "-o", help="Data set folder to write.", metavar="FOLDER", rich_help_panel=panels.OUTPUT
    ),
    negatives: str = typer.Option(
        "degree", help="How negatives are sampled.", metavar="uniform|degree|hard", rich_help_panel=panels.MODEL
    ),
    split: str = typer.Option(
        "random",
        help="How facts are split: by pair, by unseen heads, by unseen tails, or by date.",
        metavar="random|cold-head|cold-tail|time",
        rich_help_panel=panels.MODEL,
    ),
    before: int | None = typer.Option(
        None,
        metavar="YEAR",
        help="With --split time: train on facts stated before this year, test on later ones.",
        rich_help_panel=panels.MODEL,
    ),
    hold_out: Path | None = typer.Option(
        None,
        help="Pairs to keep out of the data set (columns head, and tail or outcome), such as a reference set.",
        metavar="TABLE",
        rich_help_panel=panels.INPUT,
    ),
    outcomes: Path | None = typer.Option(
        None,
        help="With --hold-out: the concepts of each outcome (columns outcome, tail).",
        metavar="TABLE",
        rich_help_panel=panels.INPUT,
    ),
    relation: list[str] = typer.Option(
        [],
        "--relation",
        "-r",
        help="Use only this relation; may be repeated.",
        metavar="NAME",
        rich_help_panel=panels.MODEL,
    ),
    minimum: int = typer.Option(
        100, help="Leave out relations with fewer facts in the graph.", metavar="N", rich_help_panel=panels.MODEL
    ),
    cap: int | None = typer.Option(
        None, help="Keep at most this many facts per relation.", metavar="N", rich_help_panel=panels.MODEL
    ),
    seed: int = typer.Option(
        0, help="Random seed; the same input and seed give the same bytes.", metavar="N", rich_help_panel=panels.MODEL
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the manifest as JSON.", rich_help_panel=panels.OUTPUT),
) -> None:
    """Build a data set: a 70/15/15 split, one negative per positive, and a leakage report.

    All three kinds of negatives are saved and compared in leakage.txt; models use the one of --negatives.

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
    folder: Path = typer.Argument(..., help="Data set folder.", metavar="FOLDER", rich_help_panel=panels.INPUT),
    as_json: bool = typer.Option(
        False, "--json", help="Print the manifest and the leakage report as JSON.", rich_help_panel=panels.OUTPUT
    ),
) -> None:
    """Show a data set: options, counts, coverage of the facts, and the leakage report.

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
