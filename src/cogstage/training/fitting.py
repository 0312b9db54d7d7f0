"""From a graph and a fitting view to trained networks, for both models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from threadpoolctl import threadpool_limits
from torch import nn

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.graph.ppmi import Ppmi
from cogstage.knowledge.dataset import FittingView
from cogstage.model.config import Config
from cogstage.model.fast.memory import quick_release, release, rest
from cogstage.model.network import Network
from cogstage.model.paper import PaperConfig
from cogstage.model.recall import PpmiWithFacts, RecallTargets, fact_vectors
from cogstage.model.recognition import Knowledge, Recognition
from cogstage.options import Options
from cogstage.progress import SILENT, Progress
from cogstage.relations import RelationIndex
from cogstage.scratch import drop
from cogstage.training.calibration import Calibration
from cogstage.training.checkpoint import Checkpoint
from cogstage.training.distributed import Processes, join
from cogstage.training.measures import dev_measures
from cogstage.training.paper import PaperTraining
from cogstage.training.sampling import Sampler
from cogstage.training.staged import StagedTraining
from cogstage.training.trace import Recorder
from cogstage.training.trainer import Progression, Trainer, TrainingMethod
from cogstage.triples import TripleIndex, usual_types

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

    network: nn.Module
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
        with one_thread(), quick_release():
            if isinstance(config, Config):
                return _train_default(graph, view, targets, config, seed, options, processes, recorder)
            assert isinstance(config, PaperConfig)
            return _train_paper(graph, view, targets, config, seed, options, processes, recorder)
    finally:
        recorder.close()


def prepare(
    graph: Graph,
    view: FittingView,
    targets: Sequence[int],
    config: Config,
    seed: int,
    processes: Processes | None = None,
    progress: Progress = SILENT,
    restored: bool = False,
) -> StagedTraining:
    """The default model, ready to be trained; weights about to be ``restored`` need no start from the SVD."""
    ppmi, relations = graph.lazy_ppmi(config.ppmi_shift, config.ppmi_smoothing), len(view.relations)
    facts = view.train_facts()
    usual = usual_types(graph.vocabulary.type, facts, relations)
    sampler = Sampler(view, config, graph.n_nodes, targets, usual, seed)
    opposite = torch.from_numpy(RelationIndex(view.relations).opposite[list(targets)])
    index = TripleIndex(facts, relations, graph.n_nodes, sampler.fact_folds)
    knowledge = Knowledge(PairCounts.from_graph(graph), index, usual, order=PairOrder.from_graph(graph))
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = Network(config, graph.n_nodes, relations, targets, opposite, graph.in_order is not None)
        network.add_folds(config.folds)
        rest(*(network if restored else network.recall).parameters())
        if not restored:
            progress.start("Stage 1, SVD of counts and facts")
            release()
            network.recall.start_from_svd(ppmi, seed)
            rest(*network.recall.parameters())
            place_facts(network, ppmi, sampler, seed)
            progress.done()
        recall_targets = RecallTargets.from_ppmi(ppmi)  # after the SVD, so that their memory does not add up
        drop(graph.source, graph.target, graph.count)
        _warn(graph, recall_targets, sampler, config, progress)
        return StagedTraining(network, recall_targets, knowledge, sampler, view, processes)


@torch.no_grad()
def place_facts(network: Network, ppmi: Ppmi, sampler: Sampler, seed: int) -> None:
    """Give every recognition its ρ, made from the facts that it may learn from and no others."""
    config = network.config
    for fold, recognition in enumerate([network.recognition, *network.folds], start=-1):
        matrix = PpmiWithFacts.from_facts(ppmi, sampler.facts(fold), network.relations, config.fact_weight)
        vectors = fact_vectors(matrix, config.dimension, seed)
        kept = cast(Recognition, recognition).fact_vectors
        kept.copy_(torch.from_numpy(vectors))
        rest(kept)
        release()


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
    checkpoint = _checkpoint(options)
    restored = options.resume and checkpoint is not None and checkpoint.exists
    method = prepare(graph, view, targets, config, seed, processes, options.progress, restored)
    state, metrics = _run(method, seed, options, processes, recorder, checkpoint)
    return Trained(method.network.eval(), _calibrations(method), {**metrics, **_history(state)})


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
    networks, ppmi = nn.ModuleDict(), graph.lazy_ppmi()
    calibration: dict[str, Calibration] = {}
    metrics: dict[str, dict[str, Any]] = {}
    for target in targets:
        name = view.relations[target]
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            method = PaperTraining(config, ppmi, view, name, processes=processes)
        checkpoint = _checkpoint(options, name if len(targets) > 1 else "")
        state, figures = _run(method, seed, options, processes, recorder, checkpoint)
        networks[str(target)], metrics[name] = method.network.eval(), {**figures, **_history(state)}
        calibration |= _calibrations(method)
    dev = {name: figures["dev"][name] for name, figures in metrics.items()}
    first = next(iter(metrics.values()))
    return Trained(networks, calibration, {**first, "dev": dev, "by_relation": metrics})


def _run(
    method: TrainingMethod,
    seed: int,
    options: FitOptions,
    processes: Processes,
    recorder: Recorder,
    checkpoint: Checkpoint | None,
) -> tuple[Progression, dict[str, Any]]:
    trainer = Trainer(
        method,
        seed,
        processes=processes,
        progress=options.progress,
        checkpoint=checkpoint,
        record=recorder,
        time_limit=options.time_limit,
    )
    state = trainer.run(options.resume)
    dev = {}
    for target in method.targets:
        logit, label = method.dev_logits(target)
        dev[method.relations[target]] = dev_measures(Calibration.fit(logit, label).logits(logit), label)
    _warn_of_chance(dev, options.progress)
    return state, {"dev": dev}


def _calibrations(method: TrainingMethod) -> dict[str, Calibration]:
    return {method.relations[target]: Calibration.fit(*method.dev_logits(target)) for target in method.targets}


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


def _warn(graph: Graph, targets: RecallTargets, sampler: Sampler, config: Config, progress: Progress) -> None:
    """Say what is odd about the input but has a defined behaviour."""
    without = graph.n_nodes - len(targets.nodes)
    if without:
        progress.say(f"{without:,} of {graph.n_nodes:,} terms have no positive PPMI: stage 1 learns nothing about them")
    candidates = len(sampler.candidates)
    if candidates <= config.associations:
        progress.say(f"only {candidates} candidates for {config.associations} associations: all of them are used")


def _warn_of_chance(dev: Mapping[str, Mapping[str, float]], progress: Progress) -> None:
    for relation, figures in dev.items():
        if figures["auroc"] < CHANCE:
            progress.say(
                f"{relation} was not learned: dev AUROC {figures['auroc']:.2f} is chance;"
                " check the data, or train for longer"
            )
