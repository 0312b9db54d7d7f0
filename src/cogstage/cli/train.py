"""``cogstage train``."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cogstage.cli import panels
from cogstage.cli.console import print_json, progress

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


def show_options(wanted: bool) -> None:
    """Print every option of --set and stop."""
    if wanted:
        from cogstage.model.config import Config
        from cogstage.model.paper import PaperConfig

        for title, config in (("--preset default", Config), ("--preset paper", PaperConfig)):
            typer.echo(title)
            for line in config.describe():
                typer.echo(f"  {line}")
        raise typer.Exit()


def train(
    graph: Path = typer.Option(..., help="Graph folder.", metavar="FOLDER", rich_help_panel=panels.INPUT),
    dataset: Path = typer.Option(
        ..., help="Data set folder, built on this graph.", metavar="FOLDER", rich_help_panel=panels.INPUT
    ),
    out: Path = typer.Option(..., help="Model folder to write.", metavar="FOLDER", rich_help_panel=panels.OUTPUT),
    relation: str = typer.Option(
        "all", help="Relations to train, comma-separated, or all.", metavar="NAMES", rich_help_panel=panels.MODEL
    ),
    world: str = typer.Option(
        "open",
        help="open uses recognised triples as reasons; closed uses known facts only.",
        metavar="open|closed",
        rich_help_panel=panels.MODEL,
    ),
    preset: str = typer.Option(
        "default",
        help="Model configuration; paper is the published model.",
        metavar="default|paper",
        rich_help_panel=panels.MODEL,
    ),
    settings: list[str] = typer.Option(
        [],
        "--set",
        help="Change a model option, such as --set folds=5; may be repeated.",
        metavar="NAME=VALUE",
        rich_help_panel=panels.MODEL,
    ),
    seed: int = typer.Option(0, help="Random seed.", metavar="N", rich_help_panel=panels.MODEL),
    resume: bool = typer.Option(
        False, "--resume", help="Continue from the checkpoint in --out.", rich_help_panel=panels.RUN
    ),
    checkpoint_every: float = typer.Option(
        30.0, min=0, help="Time between two checkpoints.", metavar="SECONDS", rich_help_panel=panels.RUN
    ),
    time_limit: float | None = typer.Option(
        None, help="Stop after this time and keep the best model so far.", metavar="MINUTES", rich_help_panel=panels.RUN
    ),
    trace: Path | None = typer.Option(
        None,
        help="File for the training history, one JSON line per round.",
        metavar="FILE",
        rich_help_panel=panels.OUTPUT,
    ),
    tensorboard: Path | None = typer.Option(
        None, help="Folder for TensorBoard event files.", metavar="FOLDER", rich_help_panel=panels.OUTPUT
    ),
    options: bool = typer.Option(
        False,
        "--options",
        help="Show every option of --set and stop.",
        is_eager=True,
        callback=show_options,
        rich_help_panel=panels.MODEL,
    ),
    as_json: bool = typer.Option(
        False, "--json", help="Print the final metrics as JSON.", rich_help_panel=panels.OUTPUT
    ),
) -> None:
    """Train a model on a graph and a data set.

    Example: cogstage train --graph graph --dataset data --relation may_treat --out model

    Several processes: torchrun --nproc-per-node 2 --no-python cogstage train --graph graph --dataset data --out model
    """
    from cogstage.artefact import lock_folder, one_line_if_full
    from cogstage.errors import UsageError
    from cogstage.estimator import CogStage, preset_config
    from cogstage.evaluation.hit_rate import hit_rates
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset
    from cogstage.model_folder import CHECKPOINT, check_output
    from cogstage.progress import SILENT
    from cogstage.training.distributed import join, leave

    config = preset_config(preset).replace(world=world).parse(settings)
    if time_limit is not None and time_limit <= 0:
        raise UsageError(f"--time-limit {time_limit}: must be above 0 minutes")
    check_output(out)
    names: str | list[str] = [name.strip() for name in relation.split(",")]
    model = CogStage("all" if names == ["all"] else names, preset=preset, seed=seed, **config.to_dict())
    processes = join()
    view = Dataset.load(dataset).for_fitting()
    mine = lock_folder(out) if processes.first else nullcontext()
    try:
        with mine, one_line_if_full(out):
            model.fit(
                Graph.load(graph),
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
                model.metrics["hit_rate"] = hit_rates(model, view, model.relations)
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
        f" ended because: {metrics['stopped']}"
    )
