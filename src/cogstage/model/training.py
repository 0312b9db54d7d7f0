"""Training: Algorithm 1 of the paper, with pre-training of stages 1 and 2, early stopping and exact resumption.

The course is a list of rounds: blocks of pre-training, then epochs. Each round draws its randomness from (seed, round)
alone and begins with fresh associations, so that a run resumed at any round's end goes on to the same bits.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cogstage.errors import CogstageError, UsageError
from cogstage.knowledge.dataset import FittingView
from cogstage.model.bilinear import Bilinear
from cogstage.model.checkpoint import Checkpoint, copy_weights, put_weights
from cogstage.model.closed_world import ClosedWorld
from cogstage.model.cogstage import Network, OpenWorld, World, assume
from cogstage.model.distributed import Processes
from cogstage.model.known_facts import KnownFacts, UsualTypes
from cogstage.model.measures import dev_measures
from cogstage.model.optimiser import Adam
from cogstage.model.recall import RecallTargets
from cogstage.model.recognition import Recognition
from cogstage.model.sampling import LogisticBatch, PairBatch, RecognitionBatch, Sampler
from cogstage.progress import SILENT, Progress
from cogstage.triples import Triples

BLOCK = 250  # steps of pre-training in a round
EVALUATE_AT_ONCE = 256


@dataclass(frozen=True)
class Phase:
    """A stretch of pre-training: one loss, one optimiser."""

    stage: str  # "recall" or "recognition"
    steps: int
    fold: int = -1  # which of the recognitions; -1 is the one that is kept

    @property
    def title(self) -> str:
        """How it is reported."""
        return f"Pre-training {self.stage}" + (f", fold {self.fold + 1}" if self.fold >= 0 else "")


@dataclass
class Course:
    """Where training stands: what a checkpoint holds besides the weights."""

    round: int = 0  # the next one
    epoch: int = 0  # finished ones
    kept_epoch: int = 0
    kept_f1: float = -1.0
    seconds: float = 0.0
    stopped: str = ""  # why training ended
    history: list[dict[str, Any]] = field(default_factory=list)


class _TimeIsUp(Exception):
    pass


class Trainer:
    """Fits a network to what a :class:`FittingView` shows."""

    def __init__(
        self,
        network: Network,
        recall_targets: RecallTargets,
        view: FittingView,
        seed: int,
        *,
        types: Sequence[str] | None = None,
        processes: Processes | None = None,
        progress: Progress = SILENT,
        checkpoint: Checkpoint | None = None,
        record: Callable[[dict[str, Any]], None] = lambda line: None,
        time_limit: float | None = None,
    ) -> None:
        self.network, self.config, self.view = network, network.config, view
        self._targets, self._seed, self._record = recall_targets, seed, record
        self._processes = processes or Processes()
        self._progress = progress if self._processes.first else SILENT
        self._checkpoint, self._time_limit = checkpoint, time_limit
        self.device = network.recall.term.device
        terms = len(network.recall.term)
        self.sampler = Sampler(view, self.config, terms, network.targets, seed)
        self.candidates = torch.from_numpy(self.sampler.candidates).to(self.device)
        self.world: World = make_world(network, view.train_facts(), len(view.relations), self.candidates)
        asked = [part for pairs in (self.sampler.train, self.sampler.dev) for part in (pairs.head, pairs.tail)]
        self._asked = torch.from_numpy(np.unique(np.concatenate(asked))).to(self.device)
        if self.config.known_facts:
            folds = self.sampler.fact_folds if self.config.folds else None
            network.known = KnownFacts(view.train_facts(), len(view.relations), terms, folds)
        if self.config.typed_relations and types is not None and any(types):
            network.types = UsualTypes(types, view.train_facts(), len(view.relations))
        steps = -(-len(self.sampler.train) // self.config.pair_batch)
        self._epochs = max(self.config.epochs, -(-self.config.least_steps // steps))
        self._phases = self._plan()
        blocks = [(phase, begin) for phase in self._phases for begin in range(0, phase.steps, BLOCK)]
        self._blocks: list[tuple[Phase, int]] = blocks
        self._adam = self._new_adam()
        self.course = Course()
        self._kept: dict[str, Tensor] = {}
        self._begun = time.monotonic()

    def _plan(self) -> list[Phase]:
        """Pre-training: stage 1, then stage 2, then stage 2 again for each fold."""
        config = self.config
        nodes = -(-len(self._targets.nodes) // config.recall_batch)
        facts = -(-self.sampler.n_facts // config.recognition_batch)
        phases = [
            Phase("recall", config.pretrain_recall * nodes),
            Phase("recognition", config.pretrain_recognition * facts),
        ]
        share = (config.folds - 1) / config.folds if config.folds else 0.0
        phases += [
            Phase("recognition", max(1, round(share * config.pretrain_recognition * facts)), fold)
            for fold in range(len(self.network.folds))
        ]
        if config.world == "closed" and not config.term_vectors:  # nothing of stage 2 is used there
            phases = phases[:1]
        return [phase for phase in phases if phase.steps]

    def _new_adam(self, phase: Phase | None = None) -> Adam:
        """An optimiser for a phase of pre-training, or for the epochs."""
        config, rate = self.config, self.config.learning_rate
        if phase is not None:
            rate = (config.recall_rate if phase.stage == "recall" else config.recognition_rate) or rate
        decay = {}
        for name, _ in self.network.named_parameters():
            stage2 = name.startswith(("recognition.", "folds."))
            decay[name] = (
                config.recognition_decay if stage2 else 0.0 if name.startswith("recall.") else config.weight_decay
            )
            if name.endswith(".offset"):
                decay[name] = config.offset_decay
        several = len(self.network.targets) > 1
        heads = [name for name in decay if several and name.startswith(("pair_vectors.", "decision."))]
        return Adam(self.network.named_parameters(), rate, config.clip, decay, self._processes, heads)

    def _factor(self, share: float) -> float:
        """What the learning rate is multiplied by after this share of a phase."""
        if self.config.schedule == "constant":
            return 1.0
        if share < 0.1:
            return 0.04 + 0.96 * share / 0.1
        return 0.5 * (1.0 + math.cos(math.pi * (share - 0.1) / 0.9)) + 1e-4

    # The course

    def run(self, resume: bool = False) -> Course:
        """Train until dev F1 stops rising, the epochs or the time are used up; puts the kept weights in place."""
        if resume and self._checkpoint is not None:
            self._restore()
        self._begun = time.monotonic() - self.course.seconds
        try:
            while not self.course.stopped:
                self._round()
        except _TimeIsUp:
            self.course.stopped = "time limit"
            self._progress.done("stopped by the time limit")
            if not self._kept:  # not one epoch: what there is must do
                self._kept = self._kept_weights()
        self.course.seconds = time.monotonic() - self._begun
        self.network.folds = torch.nn.ModuleList()  # they have done their work
        put_weights(self.network, self._kept, "kept epoch")
        self.world.refresh()
        return self.course

    def _round(self) -> None:
        rng = np.random.default_rng([self._seed, self.course.round])
        self.network.train()
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**62)) + self._processes.rank)
            if self.course.round < len(self._blocks):
                self._pretrain(*self._blocks[self.course.round], rng)
            else:
                self._epoch(rng)
        self.course.round += 1
        self.course.seconds = time.monotonic() - self._begun
        if self._checkpoint is not None and self._processes.first and (self._checkpoint.due or self.course.stopped):
            self._save()

    def _pretrain(self, phase: Phase, begin: int, rng: np.random.Generator) -> None:
        if begin == 0:
            self._adam = self._new_adam(phase)
        if begin == 0 or self._resumed:
            self._resumed = False
            self._progress.start(phase.title, phase.steps - begin)
        losses, end = [], min(begin + BLOCK, phase.steps)
        for step in range(begin, end):
            self._check_time()
            factor = self._factor(step / phase.steps)
            if phase.stage == "recall":
                losses.append(self.recall_step(rng, factor))
            else:
                losses.append(self.recognition_step(rng, factor, phase.fold))
            self._progress.advance(1, f"loss {losses[-1]:.4f}")
        loss = float(np.mean(losses))
        self._note({"round": self.course.round, "stage": phase.title.lower(), "steps": len(losses), "loss": loss})
        if end == phase.steps:
            self._progress.done(f"loss {loss:.4f}")

    def _epoch(self, rng: np.random.Generator) -> None:
        if self.course.epoch == 0:
            self._adam = self._new_adam()
            self.refresh()
        elif self.config.recall_moves or self._resumed:
            self.refresh()
        self._resumed = False
        self.course.epoch += 1
        epoch, config = self.course.epoch, self.config
        sums = {"loss_n": 0.0, "loss_r": 0.0, "loss_p": 0.0}
        batches = self.sampler.pair_batches(rng, config.least_steps / self._epochs)
        self._progress.start(f"Epoch {epoch}", len(batches))
        for number, batch in enumerate(batches):
            self._check_time()
            factor = self._factor((epoch - 1 + number / len(batches)) / self._epochs)
            for _ in range(config.recall_steps if config.world == "open" else 0):
                sums["loss_n"] += self.recall_step(rng, factor) / config.recall_steps
            for _ in range(config.recognition_steps):
                sums["loss_r"] += self.recognition_step(rng, factor) / config.recognition_steps
            if config.recall_moves and config.refresh_every and number % config.refresh_every == 0:
                self.world.refresh()
            loss = self.pair_step(batch, factor)
            sums["loss_p"] += loss
            self._progress.advance(1, f"loss {loss:.4f}")
        means = {name: value / len(batches) for name, value in sums.items()}
        if config.recall_moves:
            self.refresh()
        dev = self.measure()
        f1 = self._processes.agree(float(np.mean([figures["f1"] for figures in dev.values()])))
        if f1 > self.course.kept_f1 or config.schedule == "one_cycle":  # there the last epoch is what it all leads to
            self.course.kept_f1, self.course.kept_epoch = f1, epoch
            self._kept = self._kept_weights()
        if epoch - self.course.kept_epoch >= config.patience:
            self.course.stopped = "dev F1 no longer rises"
        elif epoch >= self._epochs:
            self.course.stopped = "epochs used up"
        self._note({"round": self.course.round, "stage": "epoch", "epoch": epoch, **means, "dev_f1": f1, "dev": dev})
        self._progress.done(
            f"L_n {means['loss_n']:.3f}, L_r {means['loss_r']:.3f}, L_p {means['loss_p']:.3f}, dev F1 {f1:.4f}"
            f"{' *' if self.course.kept_epoch == epoch else ''}"
        )

    _resumed = False

    def refresh(self) -> None:
        """Recall anew for every term that training and dev pairs name."""
        self.world.refresh(self._asked)

    def _kept_weights(self) -> dict[str, Tensor]:
        return {name: value for name, value in copy_weights(self.network).items() if not name.startswith("folds.")}

    def _check_time(self) -> None:
        if self._time_limit is None:
            return
        passed = self._processes.agree(time.monotonic() - self._begun)
        if passed > self._time_limit:
            raise _TimeIsUp

    def _note(self, line: dict[str, Any]) -> None:
        line["seconds"] = round(time.monotonic() - self._begun, 3)
        self.course.history.append(line)
        if self._processes.first:
            self._record(line)

    # The three steps of Algorithm 1

    def recall_step(self, rng: np.random.Generator, factor: float = 1.0) -> float:
        """One batch of L_n."""
        nodes = self._targets.nodes
        if not len(nodes):
            return 0.0
        nodes = rng.choice(nodes, size=min(self.config.recall_batch, len(nodes)), replace=False)
        own = nodes[self._processes.share(len(nodes))]
        sparse = self.config.optimizer == "lazy_adam"
        terms = F.embedding(torch.from_numpy(own).to(self.device), self.network.recall.term, sparse=sparse)
        position, column, value = (part.to(self.device) for part in self._targets.rows(own))
        loss = self.network.recall.loss(terms, (position, column, value))
        if self.config.recall_loss == "mean":
            loss = loss / len(nodes)
        return self._step("L_n", [loss], factor)

    def recognition_step(self, rng: np.random.Generator, factor: float = 1.0, fold: int = -1) -> float:
        """One batch of L_r, for the recognition that is kept or for that of a fold."""
        recognition = self.network.recognition if fold < 0 else self.network.folds[fold]
        if isinstance(recognition, Bilinear):
            loss = self._logistic_loss(recognition, self.sampler.logistic_batch(rng, fold))
        else:
            assert isinstance(recognition, Recognition)
            loss = self._triple_loss(recognition, self.sampler.recognition_batch(rng, fold))
        return self._step("L_r", [loss], factor)

    def _logistic_loss(self, recognition: Bilinear, batch: LogisticBatch) -> Tensor:
        mine = self._processes.share(len(batch.triples))
        triples, label, weight = batch.triples[mine], batch.label[mine], batch.weight[mine]
        nodes, (head, tail) = self._placed(triples[:, 0], triples[:, 2])
        terms = recognition.terms(self.network.recall.term, nodes)
        relation, wanted, share = (torch.from_numpy(x).to(self.device) for x in (triples[:, 1], label, weight))
        local = torch.stack([head, relation, tail], 1)
        loss = recognition.logistic_loss(terms, local, wanted.to(terms.dtype), share.to(terms.dtype))
        return loss / float(batch.weight.sum())

    def _triple_loss(self, recognition: Recognition, batch: RecognitionBatch) -> Tensor:
        mine, mine_na = (self._processes.share(len(rows)) for rows in (batch.triples, batch.na))
        triples, na = batch.triples[mine], batch.na[mine_na]
        ids = (triples[:, 0], triples[:, 2], batch.heads[mine], batch.tails[mine], na)
        nodes, (head, tail, heads, tails, pairs) = self._placed(*ids)
        terms = recognition.terms(self.network.recall.term, nodes)
        relation = torch.from_numpy(triples[:, 1]).to(self.device)
        allowed = torch.from_numpy(batch.allowed[:, mine]).to(self.device)
        loss = recognition.triple_loss(terms, torch.stack([head, relation, tail], 1), heads, tails, allowed)
        left, right = torch.cat([head, pairs[:, 0]]), torch.cat([tail, pairs[:, 1]])
        names = torch.cat([relation, torch.full((len(pairs),), recognition.na, device=self.device)])
        total = len(batch.triples) + len(batch.na)
        return loss / len(batch.triples) + recognition.relation_loss(terms, left, right, names) / total

    def _placed(self, *ids: np.ndarray) -> tuple[Tensor, list[Tensor]]:
        """The distinct nodes among arrays of ids, and the arrays as positions among them."""
        nodes, place = np.unique(np.concatenate([part.ravel() for part in ids]), return_inverse=True)
        ends = np.cumsum([part.size for part in ids])[:-1]
        parts = [x.reshape(part.shape) for x, part in zip(np.split(place.ravel(), ends), ids, strict=True)]
        return torch.from_numpy(nodes).to(self.device), [torch.from_numpy(x).to(self.device) for x in parts]

    def pair_step(self, batch: PairBatch, factor: float = 1.0) -> float:
        """One batch of L_p; each target relation decides with its own head."""
        losses = []
        mine = batch[self._processes.share(len(batch))]
        for target in np.unique(mine.target).tolist():
            part = mine[mine.target == target]
            head, tail, label = (torch.from_numpy(x).to(self.device) for x in (part.head, part.tail, part.label))
            fold = int(part.fold[0]) if len(self.network.folds) else None
            assumptions = self.network(self.world.recalled(head, tail, target), target, fold)
            label = label.to(assumptions.logit.dtype)
            loss = F.binary_cross_entropy_with_logits(assumptions.logit, label, reduction="sum")
            if self.config.comprehensiveness:
                loss = loss + self.network.erasure_loss(assumptions, label)
            losses.append(loss / len(batch))
        return self._step("L_p", losses, factor)

    def _step(self, name: str, losses: list[Tensor], factor: float) -> float:
        value = 0.0
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
            value += float(loss.detach())
        value = self._processes.total(value)
        if not np.isfinite(value):
            self._explode(name, "loss")
        norm = self._adam.step(factor)
        if not np.isfinite(norm):
            self._explode(name, "gradient")
        return value

    def _explode(self, name: str, what: str) -> None:
        kept = (
            f"the last good checkpoint is kept in {self._checkpoint.path}" if self._checkpoint else "nothing was saved"
        )
        raise CogstageError(
            f"the {what} of {name} is no longer a number in round {self.course.round + 1} (epoch {self.course.epoch}); "
            f"{kept}; try a smaller learning_rate or clip"
        )

    # Dev figures, checkpoints

    def dev_logits(self, target: int) -> tuple[np.ndarray, np.ndarray]:
        """Logits and labels of a target relation's dev pairs."""
        dev = self.sampler.dev[self.sampler.dev.target == target]
        head, tail = (torch.from_numpy(x).to(self.device) for x in (dev.head, dev.tail))
        found = [a.logit.cpu().numpy() for a in assume(self.network, self.world, head, tail, target, EVALUATE_AT_ONCE)]
        self.network.train()
        return np.concatenate(found), dev.label

    def measure(self) -> dict[str, dict[str, float]]:
        """Dev figures of each target relation."""
        return {self.view.relations[target]: dev_measures(*self.dev_logits(target)) for target in self.network.targets}

    def _identity(self) -> dict[str, Any]:
        digest = hashlib.sha256(self.view.vocabulary_hash.encode())
        for array in (self._targets.values, self.sampler.train.head, self.sampler.train.tail, self.sampler.train.label):
            digest.update(np.ascontiguousarray(array).tobytes())
        return {
            "config": self.config.to_dict(),
            "targets": list(self.network.targets),
            "seed": self._seed,
            "data": digest.hexdigest(),
        }

    def _save(self) -> None:
        assert self._checkpoint is not None
        tensors = {f"network.{name}": value for name, value in copy_weights(self.network).items()}
        tensors |= {f"kept.{name}": value for name, value in self._kept.items()}
        tensors |= {f"adam.{name}": value.clone() for name, value in self._adam.state().items()}
        self._checkpoint.save(tensors, {"identity": self._identity(), "course": vars(self.course)})

    def _restore(self) -> None:
        assert self._checkpoint is not None
        found = self._checkpoint.load()
        if found is None:
            self._progress.say(f"no checkpoint in {self._checkpoint.path}: training begins anew")
            return
        tensors, info = found
        theirs, ours = info["identity"], self._identity()
        if theirs != ours:
            options = ours["config"].items() - theirs["config"].items()
            named = ", ".join(sorted(f"{name}={value}" for name, value in options)) or "the seed, relations or data"
            raise UsageError(
                f"{self._checkpoint.path} was made with other settings ({named}); resume with the same, or train anew"
            )
        put_weights(self.network, _under("network.", tensors), str(self._checkpoint.path))
        self._kept = {name: value.to(self.device) for name, value in _under("kept.", tensors).items()}
        self.course = Course(**info["course"])
        done = self.course.round  # the optimiser goes on unless the next round begins a phase, and so makes a new one
        self._adam = self._new_adam(self._blocks[done - 1][0] if done <= len(self._blocks) else None)
        self._adam.restore({name: value.to(self.device) for name, value in _under("adam.", tensors).items()})
        self._resumed = True
        if self.course.stopped == "time limit":
            self.course.stopped = ""
        self._progress.say(f"resumed after round {self.course.round} (epoch {self.course.epoch})")


def make_world(network: Network, facts: Triples, relations: int, candidates: Tensor) -> World:
    """Where the network's assumptions come from: recalled pairs, or training facts."""
    config = network.config
    if config.world == "closed":
        return ClosedWorld(network.recall, facts, relations, config.assumptions)
    return OpenWorld(network.recall, candidates, config.associations)


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
