"""How the default model is trained: stage 1, stage 2, stage 2 once more per fold, then stage 3.

Stage 3 learns from recognitions that have not seen the fold of the pair at hand, so that it sees in training what it
will see in prediction.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_order import PairOrder
from cogstage.knowledge.dataset import FittingView
from cogstage.model.config import Config
from cogstage.model.network import Network, PreparedNetwork
from cogstage.model.recall import fact_columns, unit_rows, vectors, with_facts
from cogstage.model.recognition import Knowledge, inputs
from cogstage.progress import SILENT, Progress
from cogstage.relations import RelationIndex
from cogstage.training.checkpoint import moments, restore_moments
from cogstage.training.decision import DecisionModule
from cogstage.training.distributed import Processes
from cogstage.training.recognition import RecognitionModule
from cogstage.training.sampling import PairBatch, Sampler
from cogstage.training.trainer import NotANumber
from cogstage.triples import TripleIndex

BLOCK = 250  # steps of stage 2 per round
VIEWED_TOGETHER = 512  # pairs


@dataclass(frozen=True)
class Phase:
    """A part of training with optimisers of its own; ``per_round`` steps make a round."""

    stage: int  # 2 or 3
    title: str
    steps: int
    per_round: int
    fold: int = -1  # of stage 2; -1 is the recognition that is kept

    def factor(self, step: int) -> float:
        """Factor of the learning rate: it rises for a tenth of the phase, then falls to nothing."""
        share = step / self.steps
        if share < 0.1:
            return 0.04 + 0.96 * share / 0.1
        return 0.5 * (1.0 + math.cos(math.pi * (share - 0.1) / 0.9)) + 1e-4


class DefaultTraining:
    """Trains the default model round by round, for :class:`cogstage.training.trainer.Trainer`."""

    keep_best = False  # the rate of stage 3 falls to nothing: the last epoch is what it leads to

    def __init__(
        self,
        graph: Graph,
        view: FittingView,
        targets: Sequence[int],
        config: Config,
        seed: int,
        processes: Processes | None = None,
        progress: Progress = SILENT,
    ) -> None:
        relations, facts = len(view.relations), view.train_facts()
        self.config, self.relations, self.targets = config, view.relations, tuple(targets)
        self.sampler = Sampler(view, config, graph, targets, seed)
        index = TripleIndex(facts, relations, graph.n_nodes, self.sampler.fact_folds)
        order = PairOrder.from_graph(graph)
        self.knowledge = Knowledge(self.sampler.counts, index, self.sampler.types, order=order)
        self._processes = processes or Processes()
        self._data_hash = _hash(graph, self.sampler.train.values())
        self._folds = range(-1, config.folds)
        progress.start("Stage 1, SVD of counts and facts")
        self._recall(graph, seed)
        progress.done()
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            opposite = RelationIndex(view.relations).opposite
            self._recognitions = {fold: RecognitionModule(config, graph.n_nodes, relations) for fold in self._folds}
            self._decisions = {target: DecisionModule(config, target, opposite[target]) for target in targets}
        self.network = nn.ModuleDict(
            {
                "recognition": nn.ModuleList(self._recognitions.values()),
                "decision": nn.ModuleList(self._decisions.values()),
            }
        )
        self._seen: dict[int, Sight] = {}  # training pairs by target
        self._seen_dev: dict[int, Sight] = {}
        phases = self._plan()
        self._rounds = [(phase, begin) for phase in phases for begin in range(0, phase.steps, phase.per_round)]
        self._optimisers = self._make_optimisers(phases[0])
        self._reported: Phase | None = None

    def _recall(self, graph: Graph, seed: int) -> None:
        """Stage 1: υ, and ρ of each recognition from the facts that it may learn from."""
        config, relations = self.config, len(self.relations)
        ppmi = graph.ppmi(config.ppmi_shift, config.ppmi_smoothing).astype(np.float32)
        self.without_ppmi = int((np.diff(ppmi.indptr) == 0).sum())  # number of terms
        self._term = vectors(ppmi, config.dimension, seed)
        unit = unit_rows(ppmi)
        self._fact = {}
        for fold in self._folds:
            columns, _ = fact_columns(self.sampler.facts(fold), relations, graph.n_nodes)
            self._fact[fold] = vectors(with_facts(unit, columns, config.fact_weight), config.dimension, seed)

    def _plan(self) -> list[Phase]:
        config, sampler = self.config, self.sampler
        phases = []
        for fold in self._folds:
            steps = config.recognition_passes * -(-len(sampler.facts(fold)) // config.recognition_batch)
            part = f", fold {fold + 1}" if fold >= 0 else ""
            phases.append(Phase(2, f"Stage 2, recognition{part}", steps, BLOCK, fold))
        batches = sum(len(sampler.pair_batches(target, np.random.default_rng(0))) for target in self.targets)
        phases.append(Phase(3, "Stage 3, decision", batches * config.decision_epochs, batches))
        return [phase for phase in phases if phase.steps]

    @property
    def rounds(self) -> int:
        """Number of rounds."""
        return len(self._rounds)

    def is_epoch(self, number: int) -> bool:
        """Rounds of stage 3 are epochs."""
        return self._rounds[number][0].stage == 3

    def may_stop(self, epoch: int, best_epoch: int) -> bool:
        """Never stops early."""
        return False

    def run_round(
        self,
        number: int,
        rng: np.random.Generator,
        progress: Progress = SILENT,
        tick: Callable[[], None] = lambda: None,
    ) -> dict[str, float]:
        """Train one round; gives the mean loss."""
        phase, begin = self._rounds[number]
        if begin == 0:
            self._optimisers = self._make_optimisers(phase)
        if phase.stage == 3 or phase is not self._reported:  # the rounds of stage 2 are one step for a reader
            progress.start(phase.title, phase.per_round if phase.stage == 3 else phase.steps - begin)
            self._reported = phase
        run = self._recognition_round if phase.stage == 2 else self._decision_round
        losses = []
        for loss in run(phase, begin, rng):
            losses.append(loss)
            progress.advance(1)
            tick()
        name = "L_r" if phase.stage == 2 else "L_p"
        if phase.stage == 2 and begin + phase.per_round >= phase.steps:
            progress.done(f"{name} {np.mean(losses):.4f}")
        return {name: float(np.mean(losses))}

    def _recognition_round(self, phase: Phase, begin: int, rng: np.random.Generator) -> Iterable[float]:
        """Steps of L_r."""
        module, x = self._recognitions[phase.fold], self._inputs(phase.fold)
        for step in range(begin, min(begin + phase.per_round, phase.steps)):
            batch = self.sampler.triple_batch(rng, phase.fold)
            loss = module.loss(x, batch[self._processes.share(len(batch))], self.knowledge)
            total = float(batch.related_weight.sum() + batch.contrast_weight.sum())
            rate = self.config.recognition_rate * phase.factor(step)
            with torch.no_grad():  # SparseAdam has no weight decay; like it, touch the terms of the batch alone
                terms = torch.from_numpy(np.unique(batch.triples[:, [0, 2]]))
                module.offset[terms] *= 1.0 - rate * self.config.offset_decay
            yield self._step(module, self._optimisers, loss / total, rate)

    def _decision_round(self, phase: Phase, begin: int, rng: np.random.Generator) -> Iterable[float]:
        """One epoch of L_p; each decision learns alone."""
        if not self._seen:
            self._see_pairs()
        epoch = begin // phase.per_round
        for optimiser, (target, module) in zip(self._optimisers, self._decisions.items(), strict=True):
            batches, label = self.sampler.pair_batches(target, rng), torch.from_numpy(self.sampler.train[target].label)
            alone = Phase(3, "", len(batches) * self.config.decision_epochs, len(batches))
            for step, rows in enumerate(batches, start=epoch * len(batches)):
                mine = torch.from_numpy(rows[self._processes.share(len(rows))])
                logit = module(*(part[mine] for part in self._seen[target]))
                loss = F.binary_cross_entropy_with_logits(logit, label[mine], reduction="sum") / len(rows)
                yield self._step(module, [optimiser], loss, self.config.decision_rate * alone.factor(step))
                module.keep_signs()

    def _step(self, module: nn.Module, optimisers: Sequence[torch.optim.Optimizer], loss: Tensor, rate: float) -> float:
        module.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        value = self._processes.total(float(loss.detach()))
        self._processes.sum_gradients(list(module.parameters()))
        if not math.isfinite(value):
            raise NotANumber(f"the loss of {type(module).__name__} is no longer a number")
        for optimiser in optimisers:
            optimiser.param_groups[0]["lr"] = rate
            optimiser.step()
        return value

    def _make_optimisers(self, phase: Phase) -> list[torch.optim.Optimizer]:
        """AdamW for the module of the phase, and SparseAdam for its offsets; in stage 3 one AdamW per decision."""
        if phase.stage == 3:
            return [
                torch.optim.AdamW(module.parameters(), weight_decay=0.0, fused=True)
                for module in self._decisions.values()
            ]
        module = self._recognitions[phase.fold]
        dense = [parameter for name, parameter in module.named_parameters() if name != "offset"]
        decay = self.config.recognition_decay
        return [torch.optim.AdamW(dense, weight_decay=decay, fused=True), torch.optim.SparseAdam([module.offset])]

    def _inputs(self, fold: int) -> Tensor:
        return torch.from_numpy(inputs(self._term, self._fact[fold]))

    def _prepared(self, fold: int) -> PreparedNetwork:
        weights, hidden = self._recognitions[fold].weights(), None if fold < 0 else fold
        given = self.config, self._term, self._fact[fold], weights, self.sampler.candidates, self.knowledge
        return PreparedNetwork(*given, hidden)

    def _see_pairs(self) -> None:
        """View training pairs with the recognitions that have not seen them, and dev pairs with the kept one."""
        folds: dict[int, list[np.ndarray]] = {target: [] for target in self.targets}
        seen: dict[int, list[Sight]] = {target: [] for target in self.targets}
        for fold in np.unique(np.concatenate([pairs.fold for pairs in self.sampler.train.values()])).tolist():
            prepared = self._prepared(fold)
            for target, pairs in self.sampler.train.items():
                folds[target].append(np.flatnonzero(pairs.fold == fold))
                seen[target].append(sight(prepared, pairs[folds[target][-1]]))
        kept = self._prepared(-1)
        for target, dev in self.sampler.dev.items():
            back = torch.from_numpy(np.argsort(np.concatenate(folds[target])))
            self._seen[target] = Sight(*(torch.cat(parts)[back] for parts in zip(*seen.pop(target), strict=True)))
            self._seen_dev[target] = sight(kept, dev)

    @torch.no_grad()
    def dev_logits(self, target: int) -> tuple[np.ndarray, np.ndarray]:
        """Logits and labels of a target's dev pairs."""
        if not self._seen_dev:
            self._see_pairs()
        logit: Tensor = self._decisions[target](*self._seen_dev[target])
        return logit.numpy().astype(np.float64), self.sampler.dev[target].label

    @torch.no_grad()
    def contrast_logits(self, target: int) -> dict[str, np.ndarray]:
        """Logits of the further kinds of dev negatives, for calibration."""
        kept = self._prepared(-1)
        return {
            kind: self._decisions[target](*sight(kept, PairBatch.unlabelled(pairs))).numpy().astype(np.float64)
            for kind, pairs in self.sampler.contrasts(target).items()
            if len(pairs)
        }

    def trained(self) -> Network:
        """The model as it is now."""
        decisions = {target: module.weights() for target, module in self._decisions.items()}
        return Network(self.config, self._term, self._fact[-1], self._recognitions[-1].weights(), decisions)

    def finish(self) -> None:
        """Drop what decisions saw of the training pairs."""
        self._seen.clear()

    def trainable_weights(self) -> dict[str, Tensor]:
        """Epochs change the decisions alone."""
        return {name: value.detach() for name, value in self.network.named_parameters() if name.startswith("decision.")}

    def state(self) -> dict[str, Tensor]:
        """The moments of the optimisers; with the network's weights all that a resumed run needs."""
        return {key: value for optimiser in self._optimisers for key, value in moments(optimiser, self.network).items()}

    def restore(self, state: Mapping[str, Tensor], next_round: int) -> None:
        """Go on with the optimisers of the phase that the last round belonged to."""
        self._optimisers = self._make_optimisers(self._rounds[max(next_round - 1, 0)][0])
        for optimiser in self._optimisers:
            restore_moments(optimiser, self.network, state)

    def identity(self) -> dict[str, Any]:
        """Configuration, targets and a hash of graph and training pairs."""
        return {"config": self.config.to_dict(), "targets": list(self.targets), "data": self._data_hash}


class Sight(NamedTuple):
    """What decisions see of pairs, as tensors; it stays the same while stage 3 learns."""

    similarity: Tensor  # (n, 2, N)
    lifted: Tensor  # (n, 2, N, 2R)
    known: Tensor  # (n, 2, N, 2R)
    pair: Tensor  # (n, 2)


def sight(prepared: PreparedNetwork, pairs: PairBatch) -> Sight:
    """View pairs, some at a time."""
    parts = []
    for at in range(0, max(len(pairs), 1), VIEWED_TOGETHER):
        view = prepared.view(pairs.head[at : at + VIEWED_TOGETHER], pairs.tail[at : at + VIEWED_TOGETHER])
        parts.append([view.similarity, view.lifted, view.known, view.pair])
    return Sight(*(torch.from_numpy(np.concatenate(arrays)) for arrays in zip(*parts, strict=True)))


def _hash(graph: Graph, train: Iterable[PairBatch]) -> str:
    digest = hashlib.sha256(graph.hash.encode())
    for pairs in train:
        for array in (pairs.head, pairs.tail, pairs.label):
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
