"""``compare``: all methods × relations × seeds on frozen data, as tables and plots."""

from __future__ import annotations

from pathlib import Path

import typer


def compare(
    graph: Path = typer.Option(..., "--graph", "-g", help="Graph folder."),
    dataset: list[Path] = typer.Option(
        ...,
        "--dataset",
        "-d",
        help="Data set folder; again for a second table: other negatives, or another split (built with another seed).",
    ),
    out: Path = typer.Option(..., "--out", "-o", help="Folder that gathers the comparison; finished cells are kept."),
    methods: str | None = typer.Option(
        None,
        "--methods",
        "-m",
        help="Comma-separated: names such as svd+ntn, degree, cogstage, or the groups floor, paper, modern, "
        "fresh, cogstage-variants. Default: floor,paper,fresh,cogstage-variants.",
    ),
    seeds: int = typer.Option(5, "--seeds", min=1, help="How many seeds, counted from --seed."),
    seed: int = typer.Option(0, "--seed", min=0, help="The first seed."),
    relations: str | None = typer.Option(None, "--relations", "-r", help="Comma-separated; default: all."),
    jobs: int = typer.Option(2, "--jobs", "-j", min=1, help="Processes at a time, one core each."),
    ranking_heads: int = typer.Option(
        200, "--ranking-heads", min=0, help="Heads whose tails are ranked for MRR and Hits@k; 0 leaves ranking out."
    ),
    test: bool = typer.Option(
        False, "--test", help="Also measure on the test pairs and show those figures; once, when all is chosen."
    ),
    plots: bool = typer.Option(True, "--plots/--no-plots", help="Draw bars, precision-recall and reliability curves."),
    as_json: bool = typer.Option(False, "--json", help="Print the results as JSON instead of the table."),
) -> None:
    """Compare methods on one frozen data set: the paper's table, and more columns.

    Figures are those of the dev pairs. With --test the test pairs are measured, too, and shown instead.
    A run that was stopped goes on where it was; more methods, seeds or data sets may be added to the same folder.

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
