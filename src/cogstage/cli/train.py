"""``cogstage train``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

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
    graph: Path = typer.Option(..., help="Graph folder."),
    dataset: Path = typer.Option(..., help="Data set folder, built on this graph."),
    out: Path = typer.Option(..., help="Folder for the model."),
    relation: str = typer.Option("all", help="A relation, several with commas, or all."),
    world: str = typer.Option("open", help="open: recognised triples are reasons; closed: known facts alone."),
    preset: str = typer.Option("default", help="default, or paper for the published model."),
    settings: list[str] = typer.Option(
        [], "--set", help="Change an option, for example --set folds=5; repeat for more."
    ),
    seed: int = typer.Option(0, help="Random seed."),
    resume: bool = typer.Option(False, "--resume", help="Continue from the checkpoint in --out."),
    checkpoint_every: float = typer.Option(30.0, min=0, help="Seconds between two checkpoints."),
    time_limit: float | None = typer.Option(None, help="Stop after this many minutes and keep the best model so far."),
    trace: Path | None = typer.Option(None, help="File for the training history, one JSON line per round."),
    tensorboard: Path | None = typer.Option(None, help="Folder for TensorBoard event files."),
    options: bool = typer.Option(
        False, "--options", help="Show every option of --set and stop.", is_eager=True, callback=show_options
    ),
    as_json: bool = typer.Option(False, "--json", help="The final figures as JSON."),
) -> None:
    """Train a model on a graph and a data set.

    Example: cogstage train --graph graph --dataset data --relation may_treat --out model

    Several processes: torchrun --nproc-per-node 2 --no-python cogstage train --graph graph --dataset data --out model
    """
    from cogstage.errors import UsageError
    from cogstage.estimator import CogStage, preset_config
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
    try:
        model.fit(
            Graph.load(graph),
            Dataset.load(dataset),
            progress=progress() if processes.first else SILENT,
            checkpoint=out / CHECKPOINT,
            checkpoint_every=checkpoint_every,
            resume=resume,
            time_limit=None if time_limit is None else 60.0 * time_limit,
            trace=trace,
            tensorboard=tensorboard,
        )
        if processes.first:
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
