"""How the default model is trained: stage 1, then stage 2, then stage 2 once more per fold, then stage 3.

Stage 3 learns from recognitions that have not seen the fold of the pair at hand, so that it sees in training what it
will see in prediction.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cogstage.knowledge.dataset import FittingView
from cogstage.model.decision import WeighedReasons
from cogstage.model.fast.memory import release, rest, trim, wake
from cogstage.model.network import Answer, Network, PreparedRecognition
from cogstage.model.recall import BATCH, RecallTargets
from cogstage.model.recognition import Knowledge, Recognition, features
from cogstage.progress import SILENT, Progress
from cogstage.scratch import FileRows, drop
from cogstage.training.checkpoint import weights
from cogstage.training.distributed import Processes
from cogstage.training.optimiser import Adam
from cogstage.training.sampling import PairBatch, Sampler, TripleBatch
from cogstage.training.trainer import NotANumber

BLOCK = 250  # steps of pre-training per round
EVALUATE_AT_ONCE = 512
HASHED_AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Phase:
    """A stretch of training with one optimiser; ``per_round`` steps make a round."""

    stage: int  # 1, 2 or 3
    title: str
    steps: int
    per_round: int
    fold: int = -1  # of stage 2; -1 is the recognition that is kept

    def factor(self, step: int) -> float:
        """What the learning rate is multiplied by: it rises for a tenth of the phase, then falls to nothing."""
        share = step / self.steps
        if share < 0.1:
            return 0.04 + 0.96 * share / 0.1
        return 0.5 * (1.0 + math.cos(math.pi * (share - 0.1) / 0.9)) + 1e-4


@dataclass(frozen=True)
class PairInputs:
    """What the decisions see of all pairs of a split; it stays the same while stage 3 learns."""

    likeness: FileRows  # (n, 2, N)
    lifted: FileRows  # (n, 2, N, K)
    known: FileRows  # (n, 2, N, K)
    pair: FileRows  # (n, 2)


class StagedTraining:
    """Trains the default model round by round, for :class:`cogstage.training.trainer.Trainer`."""

    keep_best = False  # the rate of stage 3 falls to nothing: the last epoch is what it leads to

    def __init__(
        self,
        network: Network,
        recall_targets: RecallTargets,
        knowledge: Knowledge,
        sampler: Sampler,
        view: FittingView,
        processes: Processes | None = None,
    ) -> None:
        self.network, self.knowledge, self.sampler = network, knowledge, sampler
        self.relations: Sequence[str] = view.relations
        self.targets: Sequence[int] = network.decision.targets
        self._recall_targets, self._processes = recall_targets, processes or Processes()
        self._data_hash = self._hash(view)
        self._candidates = torch.from_numpy(sampler.candidates)
        self._ready: PreparedRecognition | None = None  # one fold's at a time
        self._seen: dict[str, PairInputs] = {}  # by split
        self._resumed = False
        phases = self._plan()
        self._rounds = [(phase, begin) for phase in phases for begin in range(0, phase.steps, phase.per_round)]
        self._adam = self._optimiser(phases[0])

    def _plan(self) -> list[Phase]:
        config, sampler = self.network.config, self.sampler
        nodes = -(-len(self._recall_targets.nodes) // BATCH)
        phases = [Phase(1, "Stage 1, recall", config.recall_passes * nodes, BLOCK)]
        for fold in range(-1, config.folds):
            steps = config.recognition_passes * -(-len(sampler.facts(fold)) // config.recognition_batch)
            part = f", fold {fold + 1}" if fold >= 0 else ""
            phases.append(Phase(2, f"Stage 2, recognition{part}", steps, BLOCK, fold))
        self._least = config.decision_steps / config.decision_epochs
        batches = len(sampler.pair_batches(np.random.default_rng(0), self._least))
        phases.append(Phase(3, "Stage 3, decision", batches * config.decision_epochs, batches))
        return [phase for phase in phases if phase.steps]

    @property
    def rounds(self) -> int:
        """Rounds in all."""
        return len(self._rounds)

    def is_epoch(self, number: int) -> bool:
        """Rounds of stage 3 are epochs."""
        return self._rounds[number][0].stage == 3

    def may_stop(self, epoch: int, best_epoch: int) -> bool:
        """It trains to its end."""
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
            self._adam = self._optimiser(phase)
        if phase.stage > 1:
            self._recall_targets = RecallTargets.empty()  # the largest thing that is held, and no longer needed
        if phase.stage < 3:
            self._forget()  # stage 3 asks recognitions that no longer move
        if begin == 0:
            self._let_rest(phase)
            release()  # what the phase before needed
        if phase.stage == 3 or begin == 0 or self._resumed:
            progress.start(phase.title, phase.per_round if phase.stage == 3 else phase.steps - begin)
        self._resumed = False
        name, total, count = ("L_n", "L_r", "L_p")[phase.stage - 1], 0.0, 0
        for step, loss in enumerate(self._losses(phase, begin, rng, tick), start=begin):
            total, count = total + self._step(name, loss, phase.factor(step)), count + 1
            progress.advance(1)
        if phase.stage < 3 and begin + phase.per_round >= phase.steps:
            progress.done(f"{name} {total / count:.4f}")
        return {name: total / max(count, 1)}

    def _let_rest(self, phase: Phase) -> None:
        """Bring to memory what the phase trains or reads in every step, and leave the rest of the weights to files."""
        recall = self.network.recall
        awake = [recall.term, recall.context] if phase.stage == 1 else [recall.term]
        if phase.stage == 2:
            awake.append(self._recognition(phase.fold).offset)
        later = range(phase.fold, len(self.network.folds)) if phase.stage < 3 else ()  # δ is 0 and takes no memory
        held = {id(parameter) for parameter in (*awake, *(self._recognition(fold).offset for fold in later))}
        rest(*(parameter for parameter in self.network.parameters() if id(parameter) not in held))
        wake(*awake)

    def _recognition(self, fold: int) -> Recognition:
        recognition = self.network.recognition if fold < 0 else self.network.folds[fold]
        assert isinstance(recognition, Recognition)
        return recognition

    def _losses(self, phase: Phase, begin: int, rng: np.random.Generator, tick: Callable[[], None]) -> Iterator[Tensor]:
        """The losses of a round, each computed after the step before it."""
        nodes = self._recall_targets.nodes
        if phase.stage == 3:
            for batch in self.sampler.pair_batches(rng, self._least):
                tick()
                yield self._pair_loss(batch)
            return
        recognition = self._recognition(phase.fold)
        for _ in range(begin, min(begin + phase.per_round, phase.steps)):
            tick()
            if phase.stage == 1:
                yield self._recall_loss(rng.choice(nodes, size=min(BATCH, len(nodes)), replace=False))
            else:
                yield self._triple_loss(recognition, self.sampler.triple_batch(rng, phase.fold))

    def _step(self, name: str, loss: Tensor, factor: float) -> float:
        loss.backward()  # type: ignore[no-untyped-call]
        value = self._processes.total(float(loss.detach()))
        if not np.isfinite(value):
            raise NotANumber(f"the loss {name} is no longer a number")
        if not np.isfinite(self._adam.step(factor)):
            raise NotANumber(f"the gradient of {name} is no longer a number")
        self.network.decision.keep_signs()
        return value

    def _optimiser(self, phase: Phase) -> Adam:
        """Adam with the rate and decay of the phase; each decision learns as if alone."""
        config = self.network.config
        decay = {}
        for name, _ in self.network.named_parameters():
            decay[name] = config.recognition_decay if name.startswith(("recognition.", "folds.")) else 0.0
            if name.endswith(".offset"):
                decay[name] = config.offset_decay
        rate = (config.recall_rate, config.recognition_rate, config.decision_rate)[phase.stage - 1]
        by_row = [name for name in decay if name.startswith("decision.")]
        return Adam(self.network.named_parameters(), rate, config.clip, decay, self._processes, by_row)

    def state(self) -> dict[str, Tensor]:
        """The optimiser's moments."""
        return self._adam.state()

    def restore(self, state: Mapping[str, Tensor], next_round: int) -> None:
        """Go on with the optimiser of the phase that the last round belonged to."""
        self._adam = self._optimiser(self._rounds[max(next_round - 1, 0)][0])
        self._adam.restore(state)
        self._let_rest(self._rounds[max(next_round - 1, 0)][0])
        self._forget()
        self._resumed = True

    def _recall_loss(self, nodes: np.ndarray) -> Tensor:
        own = nodes[self._processes.share(len(nodes))]
        recall = self.network.recall
        terms = F.embedding(torch.from_numpy(own), recall.term, sparse=True)
        return recall.loss(terms, self._recall_targets.rows(own)) / len(nodes)

    def _triple_loss(self, recognition: Recognition, batch: TripleBatch) -> Tensor:
        mine = self._processes.share(len(batch.triples))
        head, relation, tail = batch.triples[mine].T
        (heads, left), (tails, right) = (np.unique(end, return_inverse=True) for end in (head, tail))
        ends = torch.from_numpy(heads), torch.from_numpy(tails)
        towers = recognition.towers(self.network.recall.term, *ends)
        rows = np.stack([left, relation, right], 1)
        ppmi, order = features(self.knowledge, head, tail)
        triples, label, weight = (torch.from_numpy(x) for x in (rows, batch.label[mine], batch.weight[mine]))
        return recognition.loss(towers, triples, ppmi, label, weight, order) / float(batch.weight.sum())

    def _pair_loss(self, batch: PairBatch) -> Tensor:
        mine = batch[self._processes.share(len(batch))]
        if not len(mine):
            return self.network.decision.bias.sum() * 0.0
        logit = self._logits("train", mine.row, int(batch.target[0]))
        return F.binary_cross_entropy_with_logits(logit, torch.from_numpy(mine.label), reduction="sum") / len(batch)

    def _logits(self, split: str, rows: np.ndarray, target: int) -> Tensor:
        if split not in self._seen:
            self._seen[split] = self.look_at(self.sampler.train if split == "train" else self.sampler.dev)
        return self.logits_of(self._seen[split], rows, target)

    def logits_of(self, seen: PairInputs, rows: np.ndarray, target: int) -> Tensor:
        """Logits of some of the pairs that were looked at."""
        given = (torch.from_numpy(part[rows]) for part in (seen.likeness, seen.lifted, seen.known, seen.pair))
        weighed: WeighedReasons = self.network.decision(*given, self.targets.index(target))
        return weighed.logit

    @torch.no_grad()
    def look_at(self, pairs: PairBatch) -> PairInputs:
        """Ask the recognitions about all pairs, fold by fold, so that the views of one alone are held."""
        shape = (len(pairs), 2, min(self.network.config.associations, max(len(self._candidates) - 1, 0)))
        many = (*shape, 2 * self.network.relations)
        seen = PairInputs(
            FileRows(shape, np.float32),
            FileRows(many, np.float32),
            FileRows(many, np.bool_),
            FileRows((len(pairs), 2), np.float32),
        )
        for fold in np.unique(pairs.fold).tolist():
            own = np.flatnonzero(pairs.fold == fold)
            self._prepare(fold, pairs)
            for begin in range(0, len(own), EVALUATE_AT_ONCE):
                some = own[begin : begin + EVALUATE_AT_ONCE]
                answer = self._answer(pairs.head[some], pairs.tail[some], self.targets[0], fold)
                seen.likeness[some], seen.lifted[some] = answer.likeness.numpy(), answer.lifted.numpy()
                seen.known[some], seen.pair[some] = answer.known.numpy(), answer.pair.numpy()
        self._ready = None
        release()
        return seen

    def _forget(self) -> None:
        self._ready = None
        self._seen.clear()

    def _prepare(self, fold: int, pairs: PairBatch) -> None:
        """Make the recognition that has not seen the fold ready for the fold's pairs."""
        self._ready = None  # before the next is made
        release()
        drop(*self.knowledge.counts.kernel)  # read again when pairs are asked
        asked = [split[split.fold == fold] for split in (self.sampler.train, self.sampler.dev, pairs)]
        ends = (np.unique(np.concatenate([getattr(one, end) for one in asked])) for end in ("head", "tail"))
        heads, tails = map(torch.from_numpy, ends)  # all at once, whoever asks first
        facts = self.knowledge.facts
        self._ready = self.network.ready(self._candidates, facts, None if fold < 0 else fold, (heads, tails))
        trim()  # one tower was for the views alone

    def _answer(self, head: np.ndarray, tail: np.ndarray, target: int, fold: int) -> Answer:
        assert self._ready is not None
        ends, hidden = (torch.from_numpy(head), torch.from_numpy(tail)), None if fold < 0 else fold
        answer: Answer = self.network(*ends, target, self._ready, self.knowledge, hidden)
        return answer

    @torch.no_grad()
    def dev_logits(self, target: int) -> tuple[np.ndarray, np.ndarray]:
        """Logits and labels of a target's dev pairs."""
        dev = self.sampler.dev[self.sampler.dev.target == target]
        parts = (dev.row[at : at + EVALUATE_AT_ONCE] for at in range(0, len(dev), EVALUATE_AT_ONCE))
        return np.concatenate([self._logits("dev", rows, target).numpy() for rows in parts]), dev.label

    def finish(self) -> None:
        """Drop the recognitions of the folds, and what they saw."""
        self.network.folds = torch.nn.ModuleList()
        self._adam = self._optimiser(self._rounds[-1][0])  # the one so far holds the folds
        self._ready = None
        self._seen.pop("train", None)
        release()

    def moving(self) -> dict[str, Tensor]:
        """Stage 3 moves the decisions alone."""
        return {name: value for name, value in weights(self.network).items() if name.startswith("decision.")}

    def identity(self) -> dict[str, Any]:
        """Configuration, targets and a hash of graph and training pairs."""
        config = self.network.config.to_dict()
        return {"config": config, "targets": list(self.targets), "data": self._data_hash}

    def _hash(self, view: FittingView) -> str:
        digest = hashlib.sha256(view.vocabulary_hash.encode())
        train = self.sampler.train
        order = () if self.knowledge.order is None else self.knowledge.order.kernel
        values = self._recall_targets.values
        for at in range(0, len(values), HASHED_AT_ONCE):
            digest.update(np.ascontiguousarray(values[at : at + HASHED_AT_ONCE]).data)
        for array in (train.head, train.tail, train.label, *order):
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()
