"""``cogstage dataset``: build and describe data sets."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage import choices
from cogstage.cli import options
from cogstage.cli.app import CommandGroup
from cogstage.cli.console import print_json, progress
from cogstage.cli.options import argument, input_option, model_option

app = CommandGroup(
    "Build and describe data sets: facts matched to a graph, split, with negatives and a leakage report."
)


@app.command()
def build(
    graph: Path = options.graph(),
    facts: Path = input_option(..., "--facts", "-f", help="Facts folder.", metavar="FOLDER"),
    out: Path = options.out(),
    negatives: choices.NegativeKind = model_option("degree", help="How to sample negatives."),
    split: choices.SplitKind = model_option(
        "random", help="How to split facts: by pair, by unseen heads, by unseen tails, or by date."
    ),
    before: int | None = model_option(
        None,
        metavar="YEAR",
        help="For --split time, train on facts stated before this year and test on later ones.",
    ),
    hold_out: Path | None = input_option(
        None,
        help="Table of pairs to exclude, such as a reference set (columns head, and tail or outcome).",
        metavar="TABLE",
    ),
    outcomes: Path | None = options.OUTCOMES,
    relation: list[str] = options.relation("Relation; may be repeated. Default: all relations.", []),
    minimum: int = model_option(100, help="Leave out relations with fewer facts in the graph.", metavar="N"),
    cap: int | None = model_option(None, help="Keep at most this many facts per relation.", metavar="N"),
    seed: int = options.seed(),
    as_json: bool = options.as_json("Print JSON (the manifest)."),
) -> None:
    """Build a data set: a 70/15/15 split, one negative per positive, and a leakage report.

    All three kinds of negatives are saved and compared in leakage.txt. Models are trained on the kind in --negatives.

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
        typer.echo(f"warning: {warning}")
    typer.echo(f"The data set is in {out}; {out / 'leakage.txt'} shows how well simple scores do.")


@app.command()
def info(
    folder: Path = argument(..., help="Data set folder.", metavar="FOLDER"),
    as_json: bool = options.as_json("Print JSON (the manifest and the leakage report)."),
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
    built_with = dataset.manifest.get("options", {})
    typer.echo(f"{folder}: " + ", ".join(f"{key} {value}" for key, value in built_with.items() if value is not None))
    typer.echo("")
    typer.echo("\n".join(coverage_text(dataset.manifest)))
    typer.echo("")
    typer.echo(leakage_text(dataset.leakage, dataset.manifest["counts"]), nl=False)
