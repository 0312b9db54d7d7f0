"""``evaluate``: what a model's predictions and rationales are worth."""

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
    rationales: bool = typer.Option(False, "--rationales", help="Also measure whether rationales carry the decision."),
    also: list[Path] | None = typer.Option(
        None, "--also", help="The same model of another seed, for the stability of rationales (may be repeated)."
    ),
    pairs: int = typer.Option(512, "--pairs", min=1, help="Test pairs on which rationales are measured."),
    seed: int = typer.Option(0, "--seed", help="Which test pairs those are."),
    out: Path | None = typer.Option(None, "--out", "-o", help="Folder for metrics.json and report.html."),
    as_json: bool = typer.Option(False, "--json", help="Print JSON."),
) -> None:
    """Measure a model on a data set: each metric with its 95 % interval, and the faithfulness of its rationales.

    Example: cogstage evaluate model --dataset data --rationales --out evaluation
    """
    from cogstage.artefact import to_json, write_text
    from cogstage.cli.console import print_json, progress
    from cogstage.estimator import CogStage
    from cogstage.evaluation.evaluate import evaluate as run
    from cogstage.evaluation.evaluate import figures_table
    from cogstage.evaluation.rationale_figures import measure_rationales
    from cogstage.knowledge.dataset import Dataset

    loaded, data = CogStage.load(model), Dataset.load(dataset)
    result = run(loaded, data, split, relation, ranking_heads, progress())
    measured = []
    if rationales:
        models = [loaded, *(CogStage.load(path) for path in also or [])]
        measured = [
            measure_rationales(models, data, name, pairs, seed, split, progress())
            for name in relation or loaded.relations
        ]
        result["rationales"] = [figures.to_dict() for figures in measured]
    tables = [entry for figures in measured for entry in figures.tables()]
    if out is not None:
        from cogstage.evaluation.evaluation_report import evaluation_report

        evaluation_report(loaded, data, result, tables, seed).write(out / "report.html")
        write_text(out / "metrics.json", to_json(result))
        typer.echo(f"wrote {out / 'metrics.json'} and {out / 'report.html'}", err=True)
    if as_json:
        print_json(result)
    else:
        typer.echo("\n\n".join(entry.text() for entry in (figures_table(result), *tables)))
