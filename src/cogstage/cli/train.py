"""``cogstage train``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cogstage import choices
from cogstage.cli import options
from cogstage.cli.console import print_json, progress
from cogstage.cli.options import model_option, output_option, run_option
from cogstage.errors import UsageError

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


def show_options(wanted: bool) -> None:
    """List the options that --set can change, and exit."""
    if wanted:
        from cogstage.model.config import Config
        from cogstage.model.paper import PaperConfig

        for title, config in (("--preset default", Config), ("--preset paper", PaperConfig)):
            typer.echo(title)
            for line in config.describe():
                typer.echo(f"  {line}")
        raise typer.Exit()


def train(
    graph: Path = options.graph(),
    dataset: Path = options.dataset("Data set folder; must be built on this graph."),
    out: Path = options.out(),
    relation: list[str] = options.relation("Relation; may be repeated. Default: all relations.", []),
    world: choices.World = model_option(
        "open", help="Triples that can be reasons: known facts and recognised triples (open), or known facts (closed)."
    ),
    preset: choices.Preset = model_option("default", help="Model configuration; paper is the published model."),
    settings: list[str] = model_option(
        [],
        "--set",
        help="Change a model option, such as --set folds=5; may be repeated.",
        metavar="NAME=VALUE",
    ),
    corrections: Path | None = options.CORRECTIONS,
    seed: int = options.seed(),
    resume: bool = options.resume("Continue an interrupted run, from the checkpoint in --out."),
    checkpoint_every: float = run_option(30.0, min=0, help="Time between checkpoints.", metavar="SECONDS"),
    time_limit: float | None = run_option(
        None, help="Stop after this time and keep the best model so far.", metavar="MINUTES"
    ),
    trace: Path | None = output_option(
        None, help="File for the training history, one JSON line per round.", metavar="FILE"
    ),
    tensorboard: Path | None = output_option(None, help="Folder for TensorBoard event files.", metavar="FOLDER"),
    list_options: bool = model_option(
        False,
        "--options",
        help="List the options that --set can change, and exit.",
        is_eager=True,
        callback=show_options,
    ),
    as_json: bool = options.as_json("Print JSON (the final metrics)."),
) -> None:
    """Train a model on a graph and a data set.

    Example: cogstage train --graph graph --dataset data --relation may_treat --out model

    Several processes: torchrun --nproc-per-node 2 --no-python cogstage train --graph graph --dataset data --out model
    """
    from cogstage.artefact import one_line_if_full
    from cogstage.estimator import CogStage
    from cogstage.evaluation.hit_rate import hit_rates
    from cogstage.evaluation.model_figures import reliability_of
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset
    from cogstage.knowledge.verdicts import view_with_verdicts
    from cogstage.locks import lock_folder
    from cogstage.model.presets import preset_config
    from cogstage.model_folder import CHECKPOINT, check_output
    from cogstage.progress import SILENT
    from cogstage.rationale.corrections import Corrections, numbered
    from cogstage.training.distributed import join, leave

    config = preset_config(preset).replace(world=world).parse(settings)
    if time_limit is not None and time_limit <= 0:
        raise UsageError(f"--time-limit {time_limit}: must be greater than 0 minutes")
    check_output(out)
    model = CogStage(relation or "all", preset=preset, seed=seed, **config.to_dict())
    processes = join()
    view, counted = Dataset.load(dataset).for_fitting(), Graph.load(graph)
    if corrections is not None:
        verdicts = Corrections.read(corrections).verdicts(counted.vocabulary, view.relations)
        numbers = numbered(verdicts, counted.vocabulary, view.relations)
        view = view_with_verdicts(view, numbers, counted.n_nodes)
    mine = lock_folder(out) if processes.first else nullcontext()
    try:
        with mine, one_line_if_full(out):
            model.fit(
                counted,
                view,
                progress=progress() if processes.first else SILENT,
                checkpoint=out / CHECKPOINT,
                checkpoint_every=checkpoint_every,
                resume=resume,
                time_limit=None if time_limit is None else 60.0 * time_limit,
                trace=trace,
                tensorboard=tensorboard,
            )
            if processes.first:
                model.predictor.warm()
                model.metrics["hit_rate"] = hit_rates(model, view, model.relations)
                model.metrics["reliability"] = reliability_of(model, view, model.relations, "dev")
                model.save(out)
                show(model, out, as_json)
    finally:
        leave()


def show(model: CogStage, out: Path, as_json: bool) -> None:
    """The closing table: dev figures of each relation."""
    metrics: dict[str, Any] = model.metrics
    if as_json:
        print_json({"model": str(out), **{name: value for name, value in metrics.items() if name != "history"}})
        return
    width = max(len(name) for name in (*metrics["dev"], "relation"))
    typer.echo(f"{'relation':<{width}}  {'pairs':>6}  dev F1  precision  recall  AUROC  Brier")
    for name, figures in metrics["dev"].items():
        typer.echo(
            f"{name:<{width}}  {figures['pairs']:>6,}  {figures['f1']:>6.3f}  {figures['precision']:>9.3f}"
            f"  {figures['recall']:>6.3f}  {figures['auroc']:>5.3f}  {figures['brier']:>5.3f}"
        )
    typer.echo(
        f"{out}: epoch {metrics['kept_epoch']} of {metrics['epochs']} in {metrics['seconds']:.0f} s;"
        f" ended: {metrics['stopped']}"
    )
