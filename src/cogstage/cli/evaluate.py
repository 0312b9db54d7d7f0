"""``evaluate``: what a model's predictions and rationales are worth."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cogstage.cli import panels

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.reporting import Report


def evaluate(
    model: Path = typer.Argument(..., help="Model folder.", metavar="MODEL", rich_help_panel=panels.INPUT),
    dataset: Path | None = typer.Option(
        None, "--dataset", "-d", help="Data set folder.", metavar="FOLDER", rich_help_panel=panels.INPUT
    ),
    reference: Path | None = typer.Option(
        None,
        "--reference",
        help="Evaluate on a reference set instead: a table with head (or drug), tail or outcome, and label.",
        metavar="TABLE",
        rich_help_panel=panels.INPUT,
    ),
    outcomes: Path | None = typer.Option(
        None,
        "--outcomes",
        help="With --reference: the concepts of each outcome (columns outcome, concept).",
        metavar="TABLE",
        rich_help_panel=panels.INPUT,
    ),
    graph: Path | None = typer.Option(
        None,
        "--graph",
        "-g",
        help="Use the counts of this graph, which must have the model's vocabulary.",
        metavar="FOLDER",
        rich_help_panel=panels.INPUT,
    ),
    split: str = typer.Option(
        "test", "--split", help="Split to evaluate.", metavar="train|dev|test", rich_help_panel=panels.MODEL
    ),
    relation: list[str] | None = typer.Option(
        None,
        "--relation",
        "-r",
        help="Use only this relation; may be repeated.",
        metavar="NAME",
        rich_help_panel=panels.MODEL,
    ),
    ranking_heads: int = typer.Option(
        200,
        "--ranking-heads",
        min=0,
        help="Number of heads whose tails are ranked for MRR and Hits@k; 0 turns ranking off.",
        metavar="N",
        rich_help_panel=panels.MODEL,
    ),
    rationales: bool = typer.Option(
        False, "--rationales", help="Also measure the faithfulness of rationales.", rich_help_panel=panels.MODEL
    ),
    also: list[Path] | None = typer.Option(
        None,
        "--also",
        help="The same model trained with another seed, to measure the stability of rationales; may be repeated.",
        metavar="MODEL",
        rich_help_panel=panels.MODEL,
    ),
    count: int = typer.Option(
        512,
        "--count",
        min=1,
        help="Number of pairs on which rationales are measured.",
        metavar="N",
        rich_help_panel=panels.MODEL,
    ),
    seed: int = typer.Option(
        0, "--seed", help="Random seed for sampling pairs and heads.", metavar="N", rich_help_panel=panels.MODEL
    ),
    out: Path | None = typer.Option(
        None,
        "--out",
        "-o",
        help="Folder for metrics.json and report.html.",
        metavar="FOLDER",
        rich_help_panel=panels.OUTPUT,
    ),
    as_json: bool = typer.Option(False, "--json", help="Print the result as JSON.", rich_help_panel=panels.OUTPUT),
) -> None:
    """Evaluate a model on a data set or a reference set, next to the popularity and PPMI baselines.

    Example: cogstage evaluate model --dataset data --rationales --out evaluation
    """
    from cogstage.cli.console import print_json
    from cogstage.errors import UsageError
    from cogstage.reporting import json_ready

    if (dataset is None) == (reference is None):
        raise UsageError("give a data set with --dataset or a reference set with --reference")
    if outcomes is not None and reference is None:
        raise UsageError("--outcomes belongs to --reference")
    if out is not None:
        _check_out(out)
    loaded = _load(model, graph)
    if reference is not None:
        result, report = _on_reference(loaded, reference, outcomes, relation)
    else:
        assert dataset is not None
        options = (split, relation, ranking_heads, also if rationales else None, count, seed)
        result, report = _on_dataset(loaded, dataset, rationales, *options)
    for warning in result["warnings"]:
        typer.echo(f"warning: {warning}", err=True)
    if out is not None:
        _write(out, result, report)
    if as_json:
        print_json(json_ready(result))
    else:
        typer.echo(report.text())


def _load(model: Path, graph: Path | None) -> CogStage:
    from cogstage.estimator import CogStage
    from cogstage.graph.cooccurrence import Graph

    loaded = CogStage.load(model)
    return loaded if graph is None else loaded.on_graph(Graph.load(graph))


def _on_dataset(
    model: CogStage,
    dataset: Path,
    rationales: bool,
    split: str,
    relation: list[str] | None,
    ranking_heads: int,
    also: list[Path] | None,
    count: int,
    seed: int,
) -> tuple[dict[str, Any], Report]:
    from cogstage.cli.console import progress
    from cogstage.estimator import CogStage
    from cogstage.evaluation.evaluate import evaluate as run
    from cogstage.evaluation.evaluation_report import evaluation_report
    from cogstage.evaluation.floor_rows import add_floor, floor_table, model_graph
    from cogstage.evaluation.rationale_figures import measure_rationales
    from cogstage.evaluation.record_measures import measure_records, records_table
    from cogstage.knowledge.dataset import Dataset

    data = Dataset.load(dataset)
    bar = progress()
    result = run(model, data, split, relation, ranking_heads, bar)
    add_floor(result, model_graph(model), data, ranking_heads, bar)
    measured, records = [], []
    if rationales:
        models = [model, *(CogStage.load(path) for path in also or [])]
        measured = [
            measure_rationales(models, data, name, count, seed, split, bar) for name in relation or model.relations
        ]
        records = [measure_records(model, data, name, count, seed, split) for name in relation or model.relations]
        result["rationales"] = [figures.to_dict() for figures in measured]
        result["records"] = records
    tables = [floor_table(result)]
    for figures, record in zip(measured, records, strict=True):
        tables += [*figures.tables(), records_table(record)]
    return result, evaluation_report(model, data, result, tables, seed)


def _on_reference(
    model: CogStage, reference: Path, outcomes: Path | None, relation: list[str] | None
) -> tuple[dict[str, Any], Report]:
    from cogstage.errors import UsageError
    from cogstage.evaluation.reference_set import ReferenceSet, evaluate_on_reference
    from cogstage.reporting import Report, Section

    if relation and len(relation) > 1:
        raise UsageError("--relation: a reference set is about one relation")
    measured = evaluate_on_reference(model, ReferenceSet.load(reference, outcomes), relation[0] if relation else None)
    result = {"reference": reference.name, **measured.to_dict(), "warnings": measured.warnings()}
    missing = ", ".join(measured.missing[:20]) + (" and others" if len(measured.missing) > 20 else "")
    notes = [f"Not in the graph: {missing}."] if missing else []
    sections = [Section("Figures", [measured.table()])]
    return result, Report(f"A model on the reference set {reference.name}", measured.warnings(), sections, notes)


def _check_out(out: Path) -> None:
    """Raise before any work is done if the folder cannot be written."""
    import tempfile

    from cogstage.errors import UsageError

    try:
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=out):
            pass
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror or error}") from error


def _write(out: Path, result: dict[str, Any], report: Report) -> None:
    from cogstage.artefact import to_json, write_text
    from cogstage.reporting import json_ready

    report.write(out / "report.html")
    write_text(out / "metrics.json", to_json(json_ready(result)))
    typer.echo(f"wrote {out / 'metrics.json'} and {out / 'report.html'}", err=True)
