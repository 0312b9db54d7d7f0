"""From a graph and a fitting view to trained networks, for both models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.model.config import Config
from cogstage.model.network import Network
from cogstage.model.paper import PaperConfig
from cogstage.options import Options
from cogstage.progress import SILENT, Progress
from cogstage.training.calibration import Calibration
from cogstage.training.checkpoint import Checkpoint
from cogstage.training.default import DefaultTraining
from cogstage.training.distributed import Processes, join
from cogstage.training.measures import dev_measures
from cogstage.training.paper import PaperTraining
from cogstage.training.trace import Recorder
from cogstage.training.trainer import Progression, Trainer, TrainingMethod

CHANCE = 0.55  # a dev AUROC below it says that nothing was learned


@dataclass(frozen=True)
class FitOptions:
    """How a training runs, apart from what is trained."""

    progress: Progress = SILENT
    checkpoint: Path | str | None = None
    checkpoint_every: float = 30.0
    resume: bool = False
    time_limit: float | None = None
    trace: Path | str | None = None
    tensorboard: Path | str | None = None


@dataclass(frozen=True)
class Trained:
    """A network with its calibration and figures."""

    network: Network | nn.ModuleDict
    calibration: Mapping[str, Calibration]
    metrics: dict[str, Any]


def train(
    graph: Graph,
    view: FittingView,
    targets: Sequence[int],
    config: Options,
    seed: int,
    options: FitOptions,
) -> Trained:
    """Train the default model on several relations at once, or the published one on each in turn."""
    if view.vocabulary_hash != graph.vocabulary.hash:
        raise UsageError("the graph and the data set do not belong together; build the data set on this graph")
    processes = join()
    recorder = Recorder(options.trace, options.tensorboard) if processes.first else Recorder(None, None)
    try:
        with one_thread():
            if isinstance(config, Config):
                return _train_default(graph, view, targets, config, seed, options, processes, recorder)
            assert isinstance(config, PaperConfig)
            return _train_paper(graph, view, targets, config, seed, options, processes, recorder)
    finally:
        recorder.close()


def _train_default(
    graph: Graph,
    view: FittingView,
    targets: Sequence[int],
    config: Config,
    seed: int,
    options: FitOptions,
    processes: Processes,
    recorder: Recorder,
) -> Trained:
    method = DefaultTraining(graph, view, targets, config, seed, processes, options.progress)
    _warn(graph, method, options.progress)
    state = _run(method, seed, options, processes, recorder, _checkpoint(options))
    calibration, dev = {}, {}
    for target in targets:
        name, (logit, label) = view.relations[target], method.dev_logits(target)
        calibration[name] = Calibration.fit_kinds(logit, label, method.contrast_logits(target))
        dev[name] = dev_measures(calibration[name].logits(logit), label)
    _warn_of_chance(dev, options.progress)
    return Trained(method.trained(), calibration, {"dev": dev, **_history(state)})


def _train_paper(
    graph: Graph,
    view: FittingView,
    targets: Sequence[int],
    config: PaperConfig,
    seed: int,
    options: FitOptions,
    processes: Processes,
    recorder: Recorder,
) -> Trained:
    networks, ppmi = nn.ModuleDict(), graph.ppmi()
    calibration: dict[str, Calibration] = {}
    metrics: dict[str, dict[str, Any]] = {}
    for target in targets:
        name = view.relations[target]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            method = PaperTraining(config, ppmi, view, name, processes=processes)
        state = _run(method, seed, options, processes, recorder, _checkpoint(options, name if len(targets) > 1 else ""))
        logit, label = method.dev_logits(target)
        calibration[name] = Calibration.fit(logit, label)
        metrics[name] = {"dev": dev_measures(calibration[name].logits(logit), label), **_history(state)}
        networks[str(target)] = method.network.eval()
    dev = {name: figures["dev"] for name, figures in metrics.items()}
    _warn_of_chance(dev, options.progress)
    first = next(iter(metrics.values()))
    return Trained(networks, calibration, {**first, "dev": dev, "by_relation": metrics})


def _run(
    method: TrainingMethod,
    seed: int,
    options: FitOptions,
    processes: Processes,
    recorder: Recorder,
    checkpoint: Checkpoint | None,
) -> Progression:
    trainer = Trainer(
        method,
        seed,
        processes=processes,
        progress=options.progress,
        checkpoint=checkpoint,
        record=recorder,
        time_limit=options.time_limit,
    )
    return trainer.run(options.resume)


def _history(state: Progression) -> dict[str, Any]:
    return {
        "kept_epoch": state.kept_epoch,
        "epochs": state.epoch,
        "seconds": round(state.seconds, 1),
        "stopped": state.stopped,
        "history": state.history,
    }


def _checkpoint(options: FitOptions, part: str = "") -> Checkpoint | None:
    return None if options.checkpoint is None else Checkpoint(Path(options.checkpoint) / part, options.checkpoint_every)


@contextmanager
def one_thread() -> Iterator[None]:
    """Train on one thread: the batches are small, and threads that wait for work burn as much as they save."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1, user_api="blas"):
            yield
    finally:
        torch.set_num_threads(before)


def _warn(graph: Graph, method: DefaultTraining, progress: Progress) -> None:
    """Say what is odd about the input but has a defined behaviour."""
    without, candidates, wanted = method.without_ppmi, len(method.sampler.candidates), method.config.associations
    if without:
        progress.say(f"{without:,} of {graph.n_nodes:,} terms have no positive PPMI: stage 1 learns nothing about them")
    if candidates <= wanted:
        progress.say(f"only {candidates} candidates for {wanted} associations: all of them are used")


def _warn_of_chance(dev: Mapping[str, Mapping[str, float]], progress: Progress) -> None:
    for relation, figures in dev.items():
        if figures["auroc"] < CHANCE:
            progress.say(
                f"{relation} was not learned: dev AUROC {figures['auroc']:.2f} is chance;"
                " check the data, or train for longer"
            )
