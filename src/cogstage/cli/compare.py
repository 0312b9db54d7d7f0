"""``compare``: all methods × relations × seeds on frozen data, as tables and plots."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import panels


def compare(
    graph: Path = typer.Option(
        ..., "--graph", "-g", help="Graph folder.", metavar="FOLDER", rich_help_panel=panels.INPUT
    ),
    dataset: list[Path] = typer.Option(
        ...,
        "--dataset",
        "-d",
        help="Data set folder; may be repeated, for other negatives or another split.",
        metavar="FOLDER",
        rich_help_panel=panels.INPUT,
    ),
    out: Path = typer.Option(
        ...,
        "--out",
        "-o",
        help="Folder for the results; finished runs in it are kept.",
        metavar="FOLDER",
        rich_help_panel=panels.OUTPUT,
    ),
    methods: str | None = typer.Option(
        None,
        "--methods",
        "-m",
        help="Methods, comma-separated: names such as svd+ntn, degree, cogstage, or the groups "
        "floor, paper, modern, fresh, cogstage-variants. Default: floor,paper,fresh,cogstage-variants.",
        metavar="NAMES",
        rich_help_panel=panels.MODEL,
    ),
    seeds: int = typer.Option(
        5, "--seeds", min=1, help="Number of seeds, counted from --seed.", metavar="N", rich_help_panel=panels.MODEL
    ),
    seed: int = typer.Option(0, "--seed", min=0, help="First random seed.", metavar="N", rich_help_panel=panels.MODEL),
    relations: str | None = typer.Option(
        None,
        "--relations",
        "-r",
        help="Relations, comma-separated; all by default.",
        metavar="NAMES",
        rich_help_panel=panels.MODEL,
    ),
    jobs: int = typer.Option(
        2, "--jobs", "-j", min=1, help="Number of processes, one core each.", metavar="N", rich_help_panel=panels.RUN
    ),
    ranking_heads: int = typer.Option(
        200,
        "--ranking-heads",
        min=0,
        help="Number of heads whose tails are ranked for MRR and Hits@k; 0 turns ranking off.",
        metavar="N",
        rich_help_panel=panels.MODEL,
    ),
    test: bool = typer.Option(
        False,
        "--test",
        help="Measure on the test pairs as well and show those figures; use it once, after all choices are made.",
        rich_help_panel=panels.MODEL,
    ),
    plots: bool = typer.Option(
        True,
        "--plots/--no-plots",
        help="Draw bars, precision-recall curves and reliability curves.",
        rich_help_panel=panels.OUTPUT,
    ),
    as_json: bool = typer.Option(
        False, "--json", help="Print the results as JSON instead of a table.", rich_help_panel=panels.OUTPUT
    ),
) -> None:
    """Compare methods on the same data sets, relations and seeds.

    Figures are of the dev pairs; with --test, of the test pairs. An interrupted comparison continues when the
    command is repeated, and methods, seeds or data sets can be added to the same folder.

    Example: cogstage compare --graph graph --dataset data --methods floor,svd+distmult,cogstage --seeds 3 --out table
    """
    from cogstage.cli.console import print_json, progress
    from cogstage.errors import UsageError
    from cogstage.evaluation.compare import compare as run
    from cogstage.evaluation.compare import dataset_name
    from cogstage.evaluation.tables import comparison_report
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset
    from cogstage.reporting import json_ready

    data = {}
    for path in dataset:
        loaded = Dataset.load(path)
        name = dataset_name(loaded)
        if name in data:
            raise UsageError(f"{path}: a second data set named {name}; give it another seed, or compare in two folders")
        data[name] = loaded
    result = run(
        Graph.load(graph),
        data,
        _listed(methods),
        range(seed, seed + seeds),
        out,
        _listed(relations),
        jobs,
        ranking_heads,
        plots,
        progress(),
        test,
    )
    if as_json:
        print_json(json_ready(list(result.rows())))
    else:
        typer.echo(comparison_report(result).markdown())


def _listed(text: str | None) -> list[str] | None:
    return [part.strip() for part in text.split(",") if part.strip()] if text is not None else None
