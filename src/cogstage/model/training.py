"""Training: Algorithm 1 of the paper, with pre-training of stages 1 and 2, early stopping and exact resumption.

The course is a list of rounds: blocks of pre-training, then epochs. Each round draws its randomness from (seed, round)
alone and begins with fresh associations, so that a run resumed at any round's end goes on to the same bits.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from cogstage.errors import CogstageError, UsageError
from cogstage.knowledge.dataset import FittingView, Triples
from cogstage.model.checkpoint import Checkpoint, copy_weights, put_weights
from cogstage.model.closed_world import ClosedWorld
from cogstage.model.cogstage import Network, OpenWorld, World, assume
from cogstage.model.distributed import Processes
from cogstage.model.measures import dev_measures
from cogstage.model.optimiser import Adam
from cogstage.model.recall import RecallTargets
from cogstage.model.sampling import PairBatch, Sampler
from cogstage.progress import SILENT, Progress

BLOCK = 250  # steps of pre-training in a round
EVALUATE_AT_ONCE = 256


@dataclass
class Course:
    """Where training stands: what a checkpoint holds besides the weights."""

    round: int = 0  # the next one
    epoch: int = 0  # finished ones
    best_epoch: int = 0
    best_f1: float = -1.0
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
        self.sampler = Sampler(view, self.config, terms, network.targets)
        self.candidates = torch.from_numpy(self.sampler.candidates).to(self.device)
        self.world: World = make_world(network, view.train_facts(), len(view.relations), self.candidates)
        later = {name for name, _ in network.named_parameters() if not name.startswith("recall.")}
        decay = dict.fromkeys(later, self.config.weight_decay)
        self._adam = Adam(
            network.named_parameters(), self.config.learning_rate, self.config.clip, decay, self._processes
        )
        self.course = Course()
        self._best: dict[str, Tensor] = {}
        self._begun = time.monotonic()
        blocks = [("recall", self.config.pretrain_recall), ("recognition", self.config.pretrain_recognition)]
        self._pretraining = [
            (stage, min(BLOCK, steps - begin)) for stage, steps in blocks for begin in range(0, steps, BLOCK)
        ]

    # The course

    def run(self, resume: bool = False) -> Course:
        """Train until dev F1 stops rising, the epochs or the time are used up; the best weights are put in place."""
        if resume and self._checkpoint is not None:
            self._restore()
        self._begun = time.monotonic() - self.course.seconds
        try:
            while not self.course.stopped:
                self._round()
        except _TimeIsUp:
            self.course.stopped = "time limit"
            self._progress.done("stopped by the time limit")
            if not self._best:  # not one epoch: what there is must do
                self._best = copy_weights(self.network)
        self.course.seconds = time.monotonic() - self._begun
        put_weights(self.network, self._best, "best epoch")
        self.world.refresh()
        return self.course

    def _round(self) -> None:
        rng = np.random.default_rng([self._seed, self.course.round])
        self.network.train()
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**62)) + self._processes.rank)
            if self.course.round < len(self._pretraining):
                self._pretrain(*self._pretraining[self.course.round], rng)
            else:
                self._epoch(rng)
        self.course.round += 1
        self.course.seconds = time.monotonic() - self._begun
        if self._checkpoint is not None and self._processes.first and (self._checkpoint.due or self.course.stopped):
            self._save()

    def _pretrain(self, stage: str, steps: int, rng: np.random.Generator) -> None:
        last = self.course.round + 1 == len(self._pretraining)
        first = self.course.round == 0
        changed = first or self._pretraining[self.course.round - 1][0] != stage
        ends = last or self._pretraining[self.course.round + 1][0] != stage
        if changed or not self.course.history:
            total = sum(count for name, count in self._pretraining[self.course.round :] if name == stage)
            self._progress.start(f"Pre-training {stage}", total)
        losses = []
        for _ in range(steps):
            self._check_time()
            losses.append(self.recall_step(rng) if stage == "recall" else self.recognition_step(rng))
            self._progress.advance(1, f"loss {losses[-1]:.4f}")
        line = {
            "round": self.course.round,
            "stage": f"pretrain {stage}",
            "steps": steps,
            "loss": float(np.mean(losses)),
        }
        self._note(line)
        if ends:
            self._progress.done(f"loss {np.mean(losses):.4f}")

    def _epoch(self, rng: np.random.Generator) -> None:
        self.course.epoch += 1
        epoch, sums, since = self.course.epoch, {"loss_n": 0.0, "loss_r": 0.0, "loss_p": 0.0}, 0
        batches = list(self.sampler.pair_batches(rng))
        self._progress.start(f"Epoch {epoch}", len(batches))
        self.world.refresh()
        for batch in batches:
            self._check_time()
            if self.config.world == "open":
                for _ in range(self.config.recall_steps):
                    sums["loss_n"] += self.recall_step(rng) / self.config.recall_steps
            for _ in range(self.config.recognition_steps):
                sums["loss_r"] += self.recognition_step(rng) / self.config.recognition_steps
            if self.config.refresh_every and since == self.config.refresh_every:
                self.world.refresh()
                since = 0
            since += 1
            loss = self.pair_step(batch)
            sums["loss_p"] += loss
            self._progress.advance(1, f"loss {loss:.4f}")
        means = {name: value / len(batches) for name, value in sums.items()}
        self.world.refresh()
        dev = self.measure()
        f1 = self._processes.agree(float(np.mean([figures["f1"] for figures in dev.values()])))
        if f1 > self.course.best_f1:
            self.course.best_f1, self.course.best_epoch = f1, epoch
            self._best = copy_weights(self.network)
        if epoch - self.course.best_epoch >= self.config.patience:
            self.course.stopped = "dev F1 no longer rises"
        elif epoch >= self.config.epochs:
            self.course.stopped = "epochs used up"
        self._note({"round": self.course.round, "stage": "epoch", "epoch": epoch, **means, "dev_f1": f1, "dev": dev})
        self._progress.done(
            f"L_n {means['loss_n']:.3f}, L_r {means['loss_r']:.3f}, L_p {means['loss_p']:.3f}, dev F1 {f1:.4f}"
            f"{' *' if self.course.best_epoch == epoch else ''}"
        )

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

    def recall_step(self, rng: np.random.Generator) -> float:
        """One batch of L_n."""
        nodes = self._targets.nodes
        if not len(nodes):
            return 0.0
        nodes = rng.choice(nodes, size=min(self.config.recall_batch, len(nodes)), replace=False)
        own = nodes[self._processes.share(len(nodes))]
        sparse = self.config.optimizer == "lazy_adam"
        terms = F.embedding(torch.from_numpy(own).to(self.device), self.network.recall.term, sparse=sparse)
        entries = tuple(part.to(self.device) for part in self._targets.rows(own))
        loss = self.network.recall.loss(terms, entries)  # type: ignore[arg-type]
        if self.config.recall_loss == "mean":
            loss = loss / len(nodes)
        return self._step("L_n", [loss])

    def recognition_step(self, rng: np.random.Generator) -> float:
        """One batch of L_r."""
        batch = self.sampler.recognition_batch(rng)
        mine, mine_na = (self._processes.share(len(rows)) for rows in (batch.triples, batch.na))
        triples, heads, tails, na = batch.triples[mine], batch.heads[mine], batch.tails[mine], batch.na[mine_na]
        ids = [triples[:, 0], triples[:, 2], heads, tails, na]
        nodes, place = np.unique(np.concatenate([part.ravel() for part in ids]), return_inverse=True)
        parts = np.split(torch.from_numpy(place).to(self.device), np.cumsum([part.size for part in ids])[:-1].tolist())
        head, tail, heads_at, tails_at, na_at = (
            part.reshape(array.shape) for part, array in zip(parts, ids, strict=True)
        )
        terms = self.network.terms(torch.from_numpy(nodes).to(self.device))
        relation = torch.from_numpy(triples[:, 1]).to(self.device)
        recognition = self.network.recognition
        allowed = torch.from_numpy(batch.allowed[:, mine]).to(self.device)
        loss = recognition.triple_loss(terms, torch.stack([head, relation, tail], 1), heads_at, tails_at, allowed)
        loss = loss / len(batch.triples)
        left, right = torch.cat([head, na_at[:, 0]]), torch.cat([tail, na_at[:, 1]])
        names = torch.cat([relation, torch.full((len(na_at),), recognition.na, device=self.device)])
        total = len(batch.triples) + len(batch.na)
        loss = loss + recognition.relation_loss(terms, left, right, names) / total
        return self._step("L_r", [loss])

    def pair_step(self, batch: PairBatch) -> float:
        """One batch of L_p; each target relation decides with its own head."""
        losses = []
        mine = batch[self._processes.share(len(batch))]
        for target in np.unique(mine.target).tolist():
            part = mine[mine.target == target]
            head, tail, label = (torch.from_numpy(x).to(self.device) for x in (part.head, part.tail, part.label))
            recalled = self.world.recalled(head, tail, target)
            logit = self.network(recalled, target).logit
            losses.append(
                F.binary_cross_entropy_with_logits(logit, label.to(logit.dtype), reduction="sum") / len(batch)
            )
        return self._step("L_p", losses)

    def _step(self, name: str, losses: list[Tensor]) -> float:
        value = 0.0
        for loss in losses:
            loss.backward()  # type: ignore[no-untyped-call]
            value += float(loss.detach())
        value = self._processes.total(value)
        if not np.isfinite(value):
            self._explode(name, "loss")
        norm = self._adam.step()
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
        tensors |= {f"best.{name}": value for name, value in self._best.items()}
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
        self._best = {name: value.to(self.device) for name, value in _under("best.", tensors).items()}
        self._adam.restore({name: value.to(self.device) for name, value in _under("adam.", tensors).items()})
        self.course = Course(**info["course"])
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
