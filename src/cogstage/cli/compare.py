"""``cogstage compare``."""

from __future__ import annotations

from pathlib import Path

import typer

from cogstage.cli import options
from cogstage.cli.options import model_option, output_option, run_option


def compare(
    graph: Path = options.graph(),
    dataset: list[Path] = options.dataset("Data set folder; may be repeated, for other negatives or splits."),
    out: Path = options.out("Output folder; finished runs in it are reused."),
    methods: str | None = model_option(
        None,
        "--methods",
        "-m",
        help="Methods, comma-separated: names such as svd+ntn, degree, cogstage, or the groups "
        "floor, paper, modern, fresh, cogstage-variants. Default: floor,paper,fresh,cogstage-variants.",
        metavar="NAMES",
    ),
    seeds: int = model_option(5, "--seeds", min=1, help="Number of seeds, counted from --seed.", metavar="N"),
    seed: int = options.seed("Random seed; the first of --seeds.", min=0),
    relation: list[str] = options.relation("Relation; may be repeated. Default: all relations.", []),
    corrections: Path | None = options.CORRECTIONS,
    jobs: int = run_option(2, "--jobs", "-j", min=1, help="Number of parallel runs, one core each.", metavar="N"),
    ranking_heads: int = options.RANKING_HEADS,
    test: bool = model_option(
        False,
        "--test",
        help="Also evaluate on the test pairs and show those figures; use it once, after all choices are made.",
    ),
    plots: bool = output_option(
        True, "--plots/--no-plots", help="Draw bar charts, precision-recall curves and reliability curves."
    ),
    as_json: bool = options.as_json("Print JSON (one entry per result)."),
) -> None:
    """Compare methods on the same data sets, relations and seeds.

    Figures are for dev pairs, or for test pairs with --test. Repeat the command to continue an interrupted
    comparison, or to add methods, seeds or data sets to the same folder.

    Example: cogstage compare --graph graph --dataset data --methods floor,svd+distmult,cogstage --seeds 3 --out table
    """
    from cogstage.cli.console import print_json, progress
    from cogstage.errors import UsageError
    from cogstage.evaluation.compare import compare as run
    from cogstage.evaluation.compare import dataset_name
    from cogstage.evaluation.tables import comparison_report
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset
    from cogstage.rationale.corrections import Corrections
    from cogstage.reporting import json_ready

    data = {}
    for path in dataset:
        loaded = Dataset.load(path)
        name = dataset_name(loaded)
        if name in data:
            raise UsageError(
                f"{path}: there is already a data set named {name}; use another seed or two output folders"
            )
        data[name] = loaded
    result = run(
        Graph.load(graph),
        data,
        None if methods is None else [part.strip() for part in methods.split(",") if part.strip()],
        range(seed, seed + seeds),
        out,
        relation or None,
        jobs,
        ranking_heads,
        plots,
        progress(),
        test,
        None if corrections is None else Corrections.read(corrections),
    )
    if as_json:
        print_json(json_ready(list(result.rows())))
    else:
        typer.echo(comparison_report(result).markdown())
