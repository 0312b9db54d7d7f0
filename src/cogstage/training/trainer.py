"""The training loop of both models: rounds, dev measures, early stopping, checkpoints and exact resumption.

A :class:`TrainingMethod` trains one round at a time. Each round draws its randomness
from (seed, round) alone, so a run resumed after any round goes on to the same bits.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from cogstage.errors import CogstageError, UsageError
from cogstage.progress import SILENT, Progress
from cogstage.training.checkpoint import Checkpoint, load_weights, under, weights
from cogstage.training.distributed import Processes
from cogstage.training.measures import dev_measures


class TrainingMethod(Protocol):
    """What a model's own training provides. Rounds are counted from 0; some of them are epochs."""

    @property
    def network(self) -> nn.Module:
        """What is trained."""

    @property
    def relations(self) -> Sequence[str]:
        """The relations of the data set."""

    @property
    def targets(self) -> Sequence[int]:
        """Those that are decided, as numbers."""

    @property
    def rounds(self) -> int:
        """Rounds in all, if training does not stop early."""

    @property
    def keep_best(self) -> bool:
        """Whether the epoch of the best dev AUROC is kept, or the last one."""

    def is_epoch(self, number: int) -> bool:
        """Whether dev is measured after this round."""

    def may_stop(self, epoch: int, best_epoch: int) -> bool:
        """Whether training ends after ``epoch`` (the first is 1)."""

    def run_round(
        self, number: int, rng: np.random.Generator, progress: Progress, tick: Callable[[], None]
    ) -> dict[str, float]:
        """Train one round, calling ``tick`` before each step; gives the mean of each loss."""

    def dev_logits(self, target: int) -> tuple[np.ndarray, np.ndarray]:
        """Logits and labels of a target's dev pairs, with the weights as they are now."""

    def state(self) -> dict[str, Tensor]:
        """What a resumed run needs besides the network's weights."""

    def restore(self, state: Mapping[str, Tensor], next_round: int) -> None:
        """Take up what :meth:`state` gave before ``next_round``."""

    def trainable_weights(self) -> dict[str, Tensor]:
        """The weights that epochs change, by name; all others stay as they are once epochs begin."""

    def finish(self) -> None:
        """Drop what only training needs."""

    def identity(self) -> dict[str, Any]:
        """What a checkpoint must agree with to be resumed: configuration, targets and data."""


@dataclass
class Progression:
    """Where training stands: what a checkpoint holds besides the weights."""

    round: int = 0  # the next one
    epoch: int = 0  # finished ones
    kept_epoch: int = 0
    kept_auroc: float = -1.0
    seconds: float = 0.0
    stopped: str = ""  # why training ended
    history: list[dict[str, Any]] = field(default_factory=list)


class _TimeIsUp(Exception):
    pass


class NotANumber(Exception):
    """A loss or gradient is no longer finite; says which."""


class Trainer:
    """Runs a method's phases."""

    def __init__(
        self,
        method: TrainingMethod,
        seed: int,
        *,
        processes: Processes | None = None,
        progress: Progress = SILENT,
        checkpoint: Checkpoint | None = None,
        record: Callable[[dict[str, Any]], None] = lambda line: None,
        time_limit: float | None = None,
    ) -> None:
        self._method, self._seed, self._record = method, seed, record
        self._processes = processes or Processes()
        self._progress = progress if self._processes.first else SILENT
        self._checkpoint, self._time_limit = checkpoint, time_limit
        self.state = Progression()
        self._kept: dict[str, Tensor] = {}
        self._begun = time.monotonic()

    def run(self, resume: bool = False) -> Progression:
        """Train to the end, or until dev AUROC stops rising or time is up; leaves the kept weights in place."""
        if resume and self._checkpoint is not None:
            self._restore()
        self._begun = time.monotonic() - self.state.seconds
        try:
            while not self.state.stopped:
                self._round()
        except _TimeIsUp:
            self.state.stopped = "time limit"
            self._progress.done("stopped by the time limit")
        self.state.seconds = time.monotonic() - self._begun
        self._method.finish()
        if self._kept:
            load_weights(self._method.network, {**weights(self._method.network), **self._kept}, "kept epoch")
        return self.state

    def measure(self) -> dict[str, dict[str, float]]:
        """Dev figures of each target relation."""
        method = self._method
        return {method.relations[target]: dev_measures(*method.dev_logits(target)) for target in method.targets}

    def _round(self) -> None:
        number, state = self.state.round, self.state
        rng = np.random.default_rng([self._seed, number])
        self._method.network.train()
        with torch.random.fork_rng():
            torch.manual_seed(int(rng.integers(2**62)) + self._processes.rank)
            means = self._run(number, rng)
        note: dict[str, Any] = {"round": number, **means}
        if self._method.is_epoch(number):
            state.epoch += 1
            note |= {"stage": "epoch", "epoch": state.epoch, **self._finish_epoch()}
            losses = ", ".join(f"{name} {value:.4f}" for name, value in means.items())
            kept = " (kept)" if state.kept_epoch == state.epoch else ""
            self._progress.done(f"{losses}, dev AUROC {note['dev_auroc']:.4f}{kept}")
        else:
            note["stage"] = "pre-training"
        self._note(note)
        state.round += 1
        if state.round == self._method.rounds and not state.stopped:
            state.stopped = "all epochs done"
        state.seconds = time.monotonic() - self._begun
        if self._checkpoint is not None and self._processes.first and (self._checkpoint.due or state.stopped):
            self._save()

    def _run(self, number: int, rng: np.random.Generator) -> dict[str, float]:
        try:
            return self._method.run_round(number, rng, self._progress, self._check_time)
        except NotANumber as error:
            kept = (
                f"the last good checkpoint is in {self._checkpoint.path}" if self._checkpoint else "nothing was saved"
            )
            raise CogstageError(
                f"{error} in round {number + 1} (epoch {self.state.epoch}); {kept}; try a smaller learning rate or clip"
            ) from None

    def _finish_epoch(self) -> dict[str, Any]:
        dev, state = self.measure(), self.state
        auroc = self._processes.agree(float(np.mean([figures["auroc"] for figures in dev.values()])))
        if auroc > state.kept_auroc or not self._method.keep_best:
            state.kept_auroc, state.kept_epoch = auroc, state.epoch
            self._kept = {name: value.clone() for name, value in self._method.trainable_weights().items()}
        if self._method.may_stop(state.epoch, state.kept_epoch):
            state.stopped = "dev AUROC no longer rises"
        return {"dev_auroc": auroc, "dev": dev}

    def _check_time(self) -> None:
        if self._time_limit is None:
            return
        if self._processes.agree(time.monotonic() - self._begun) > self._time_limit:
            raise _TimeIsUp

    def _note(self, line: dict[str, Any]) -> None:
        line["seconds"] = round(time.monotonic() - self._begun, 3)
        self.state.history.append(line)
        if self._processes.first:
            self._record(line)

    def _save(self) -> None:
        assert self._checkpoint is not None
        tensors = {f"network.{name}": value for name, value in weights(self._method.network).items()}
        tensors |= {f"kept.{name}": value for name, value in self._kept.items()}
        tensors |= {f"method.{name}": value for name, value in self._method.state().items()}
        identity = {**self._method.identity(), "seed": self._seed}
        self._checkpoint.save(tensors, {"identity": identity, "state": vars(self.state)})

    def _restore(self) -> None:
        assert self._checkpoint is not None
        stored = self._checkpoint.load()
        if stored is None:
            self._progress.say(f"no checkpoint in {self._checkpoint.path}: training starts from the beginning")
            return
        tensors, info = stored
        theirs, ours = info.get("identity", {}), {**self._method.identity(), "seed": self._seed}
        if theirs != ours:
            options = ours["config"].items() - theirs.get("config", {}).items()
            named = ", ".join(sorted(f"{name}={value}" for name, value in options)) or "the seed, relations or data"
            raise UsageError(
                f"{self._checkpoint.path} was made with other settings ({named});"
                " resume with the same ones, or train from the beginning"
            )
        load_weights(self._method.network, under(tensors, "network."), str(self._checkpoint.path))
        self._kept = under(tensors, "kept.")
        self.state = Progression(**info["state"])
        self._method.restore(under(tensors, "method."), self.state.round)
        if self.state.stopped == "time limit":
            self.state.stopped = ""
        self._progress.say(f"resumed after round {self.state.round} (epoch {self.state.epoch})")
