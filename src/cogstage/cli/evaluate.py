"""``evaluate``: classification, calibration and ranking figures of a model."""

from __future__ import annotations

from pathlib import Path

import typer


def evaluate(
    model: Path = typer.Argument(..., help="Model folder.", metavar="MODEL"),
    dataset: Path = typer.Option(..., "--dataset", "-d", help="Data set folder."),
    split: str = typer.Option("test", "--split", help="train, dev or test."),
    relation: list[str] | None = typer.Option(None, "--relation", "-r", help="Only this relation (may be repeated)."),
    ranking_heads: int = typer.Option(
        200, "--ranking-heads", min=0, help="Heads whose tails are ranked for MRR and Hits@k; 0 leaves ranking out."
    ),
    out: Path | None = typer.Option(None, "--out", "-o", help="Folder to write metrics.json into."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Measure a model on a data set: each metric with its 95 % interval.

    Example: cogstage evaluate model --dataset data --split test
    """
    from cogstage.artefact import to_json, write_text
    from cogstage.cli.console import print_json, progress
    from cogstage.evaluation.evaluate import evaluate as run
    from cogstage.evaluation.evaluate import table
    from cogstage.knowledge.dataset import Dataset
    from cogstage.rationale.cogstage import CogStage

    result = run(CogStage.load(model), Dataset.load(dataset), split, relation, ranking_heads, progress())
    if out is not None:
        write_text(out / "metrics.json", to_json(result))
    if as_json:
        print_json(result)
    else:
        typer.echo(table(result))
