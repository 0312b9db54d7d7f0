"""``cogstage evaluate``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cogstage import choices
from cogstage.cli import options
from cogstage.cli.console import print_json, progress
from cogstage.cli.options import input_option, model_option, output_option
from cogstage.errors import UsageError

if TYPE_CHECKING:
    from cogstage.reporting import Report


def evaluate(
    model: Path = options.MODEL,
    dataset: Path | None = options.dataset("Data set folder.", None),
    reference: Path | None = input_option(
        None,
        "--reference",
        help="Reference set to evaluate on instead: a table with head (or drug), tail or outcome, and label.",
        metavar="TABLE",
    ),
    outcomes: Path | None = options.OUTCOMES,
    graph: Path | None = options.graph("Graph folder; use its counts instead of those the model was trained on.", None),
    corrections: Path | None = options.CORRECTIONS,
    on: choices.SplitName = model_option("test", "--on", help="Split of the data set to evaluate on."),
    relation: list[str] = options.relation("Relation; may be repeated. Default: all relations.", []),
    ranking_heads: int = options.RANKING_HEADS,
    rationales: bool = model_option(False, "--rationales", help="Also measure the faithfulness of rationales."),
    also: list[Path] = model_option(
        [],
        "--also",
        help="The same model trained with another seed, to measure the stability of rationales; may be repeated.",
        metavar="MODEL",
    ),
    rationale_pairs: int = model_option(
        512, min=1, help="Number of pairs on which rationales are measured.", metavar="N"
    ),
    candidates: int = model_option(
        10,
        min=0,
        help="Number of first candidates for a disorder among which contraindicated drugs are counted; 0 for none.",
        metavar="N",
    ),
    seed: int = options.seed("Random seed, for sampling pairs and heads."),
    out: Path | None = options.out("Output folder, for metrics.json and report.html.", None),
    keep: bool = output_option(
        False, "--keep", help="Save the test figures in the model folder, for the explorer's About page."
    ),
    as_json: bool = options.as_json(),
) -> None:
    """Evaluate a model on a data set or a reference set, next to the popularity and PPMI baselines.

    Example: cogstage evaluate model --dataset data --rationales --out evaluation
    """
    from cogstage.artefact import check_writable
    from cogstage.estimator import CogStage
    from cogstage.evaluation.full_evaluation import evaluate_on_dataset, evaluate_on_reference_set, figures_of
    from cogstage.evaluation.model_figures import keep_test_figures
    from cogstage.evaluation.reference_set import ReferenceSet
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset
    from cogstage.rationale.corrections import Corrections
    from cogstage.reporting import json_ready

    if (dataset is None) == (reference is None):
        raise UsageError("give a data set with --dataset or a reference set with --reference")
    if outcomes is not None and reference is None:
        raise UsageError("--outcomes requires --reference")
    if reference is not None and len(relation) > 1:
        raise UsageError("--relation: a reference set covers one relation; choose one")
    if keep and (dataset is None or on != "test" or graph is not None or corrections is not None):
        raise UsageError(
            "--keep saves test figures of the unchanged model; use it with --dataset, without --graph and --corrections"
        )
    if out is not None:
        check_writable(out)
    verdicts = Corrections() if corrections is None else Corrections.read(corrections)
    loaded = CogStage.load(model)
    if graph is not None:
        loaded = loaded.on_graph(Graph.load(graph))
    if dataset is not None:
        others = [CogStage.load(path) for path in also] if rationales else None
        how = (on, relation, ranking_heads, others, rationale_pairs, seed, progress(), verdicts, candidates)
        data = Dataset.load(dataset)
        result, report = evaluate_on_dataset(loaded, data, *how)
        if keep:
            keep_test_figures(model, loaded, data, figures_of(result))
    else:
        assert reference is not None
        judged = ReferenceSet.load(reference, outcomes)
        loaded = loaded.corrected(verdicts)
        result, report = evaluate_on_reference_set(loaded, judged, reference.name, relation[0] if relation else None)
    for warning in result["warnings"]:
        typer.echo(f"warning: {warning}", err=True)
    if out is not None:
        _write(out, result, report)
    if as_json:
        print_json(json_ready(result))
    else:
        typer.echo(report.text())


def _write(out: Path, result: dict[str, Any], report: Report) -> None:
    from cogstage.artefact import to_json, write_text
    from cogstage.reporting import json_ready

    report.write(out / "report.html")
    write_text(out / "metrics.json", to_json(json_ready(result)))
    typer.echo(f"wrote {out / 'metrics.json'} and {out / 'report.html'}", err=True)
