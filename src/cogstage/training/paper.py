"""Algorithm 1 of the paper: in each iteration one batch of L_n, one of L_r and one of L_p, each with a step of Adam.

A round is an epoch: one pass over the training pairs, and by the sizes of the batches one over graph and facts. What a
round draws comes from the generator it is handed, and what it leaves behind is in ``state()``, so that training can go
on after any round to the same bits. In the closed world recall is pre-trained in rounds of its own and then stays.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor
from torch.nn import functional as F

from cogstage.knowledge.dataset import FittingView
from cogstage.model.fast.paper_network import FastPaperNetwork
from cogstage.model.paper import PaperConfig, PaperNetwork
from cogstage.progress import SILENT, Progress
from cogstage.training.checkpoint import moments, restore_moments, weights
from cogstage.training.distributed import Processes
from cogstage.training.paper_batches import PaperBatches, PaperPairBatch, RecognitionBatch
from cogstage.training.trainer import NotANumber

RECALL_PASSES = 60  # closed world: passes over the graph before the first pair
EVALUATE_AT_ONCE = 256


class PaperTraining:
    """Trains the network of one target relation."""

    def __init__(
        self,
        config: PaperConfig,
        ppmi: sp.csr_matrix,
        view: FittingView,
        relation: str,
        network: PaperNetwork | None = None,
        processes: Processes | None = None,
    ) -> None:
        """A ``network`` that is handed over goes on from what it has learned."""
        target = view.relations.index(relation)
        self.relations, self.targets = view.relations, (target,)
        self._processes, self._vocabulary_hash = processes or Processes(), view.vocabulary_hash
        self.config, self.batches = config, PaperBatches(view, config, target, ppmi)
        facts = torch.from_numpy(self.batches.facts)
        self.network = network or FastPaperNetwork(config, ppmi.shape[0], len(view.relations), target, facts)
        self._adam = torch.optim.Adam(self.network.parameters(), lr=config.learning_rate, fused=True)

    keep_best = True

    def is_epoch(self, number: int) -> bool:
        """Whether dev is measured after this round."""
        return number >= self.pretraining

    @property
    def pretraining(self) -> int:
        """Rounds before the first epoch."""
        return RECALL_PASSES if self.config.world == "closed" else 0

    @property
    def rounds(self) -> int:
        """Rounds in all, if training does not stop early."""
        return self.pretraining + self.config.epochs

    def may_stop(self, epoch: int, best_epoch: int) -> bool:
        """Whether training ends after ``epoch`` (the first is 1) when ``best_epoch`` had the highest dev AUROC."""
        return epoch >= self.config.minimum_epochs and epoch - best_epoch >= self.config.patience

    def run_round(
        self,
        number: int,
        rng: np.random.Generator,
        progress: Progress = SILENT,
        tick: Callable[[], None] = lambda: None,
    ) -> dict[str, float]:
        """Round ``number``, counted from 0; gives the mean of each loss."""
        processes = self._processes
        self.network.train()
        nodes = self.batches.recall(rng) if self.config.world == "open" or number < self.pretraining else []
        sums: dict[str, list[float]] = {"loss_n": [], "loss_r": [], "loss_p": []}
        if number < self.pretraining:
            progress.start(f"Pre-training recall, pass {number + 1}", len(nodes))
            for part in nodes:
                tick()
                sums["loss_n"].append(self.recall_step(part, processes))
                progress.advance(1, f"L_n {sums['loss_n'][-1]:.3f}")
            return {"loss_n": float(np.mean(sums["loss_n"]))}
        pairs = self.batches.pairs(rng)
        progress.start(f"Epoch {number - self.pretraining + 1}", len(pairs))
        for step, (facts, batch) in enumerate(zip(self.batches.recognition(rng), pairs, strict=True)):
            tick()
            if nodes:
                sums["loss_n"].append(self.recall_step(nodes[step], processes))
            sums["loss_r"].append(self.recognition_step(facts, processes))
            sums["loss_p"].append(self.pair_step(batch, processes))
            progress.advance(1, f"L_p {sums['loss_p'][-1]:.4f}")
        return {name: float(np.mean(values)) for name, values in sums.items() if values}

    def recall_step(self, nodes: np.ndarray, processes: Processes) -> float:
        """One step of L_n."""
        own = nodes[processes.share(len(nodes))]
        loss = self.network.recall_loss(self._ids(own), self.batches.recall_targets(own).to(self._device))
        return self._step("L_n", loss / len(nodes) if self.config.recall_loss == "mean" else loss, processes)

    def recognition_step(self, batch: RecognitionBatch, processes: Processes) -> float:
        """One step of L_r, averaged over triples; facts and NA pairs teach NA its level."""
        own, own_na = (processes.share(len(rows)) for rows in (batch.triples, batch.na))
        triples, heads, tails, na = (
            self._ids(x) for x in (batch.triples[own], batch.heads[own], batch.tails[own], batch.na[own_na])
        )
        allowed = torch.from_numpy(batch.allowed[:, own]).to(self._device)
        loss = self.network.recognition_loss(triples, heads, tails, allowed) / len(batch.triples)
        left, right = torch.cat([triples[:, 0], na[:, 0]]), torch.cat([triples[:, 2], na[:, 1]])
        names = torch.cat([triples[:, 1], torch.full_like(na[:, 0], self.network.na)])
        loss = loss + self.network.relation_loss(left, right, names) / (len(batch.triples) + len(batch.na))
        return self._step("L_r", loss, processes)

    def pair_step(self, batch: PaperPairBatch, processes: Processes) -> float:
        """One step of L_p."""
        own = processes.share(len(batch.head))
        logit = self.network(self._ids(batch.head[own]), self._ids(batch.tail[own])).logit
        label = torch.from_numpy(batch.label[own]).to(logit)
        loss = F.binary_cross_entropy_with_logits(logit, label, reduction="sum") / len(batch.head)
        return self._step("L_p", loss, processes)

    def _step(self, name: str, loss: Tensor, processes: Processes) -> float:
        self._adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        value = processes.total(float(loss.detach()))
        parameters = list(self.network.parameters())
        processes.sum_gradients(parameters)
        norm = float(torch.nn.utils.clip_grad_norm_(parameters, self.config.clip))
        if not np.isfinite(value) or not np.isfinite(norm):
            raise NotANumber(f"{name} is no longer a number")
        self._adam.step()
        return value

    @property
    def _device(self) -> torch.device:
        return self.network.term.device

    def _ids(self, nodes: np.ndarray) -> Tensor:
        return torch.from_numpy(nodes).to(self._device)

    @torch.no_grad()
    def dev_scores(self) -> tuple[np.ndarray, np.ndarray]:
        """Logits and labels of the dev pairs."""
        self.network.eval()
        dev = self.batches.dev
        parts = zip(*(torch.split(self._ids(ids), EVALUATE_AT_ONCE) for ids in (dev.head, dev.tail)), strict=True)
        return torch.cat([self.network(head, tail).logit for head, tail in parts]).cpu().numpy(), dev.label

    def state(self) -> dict[str, Tensor]:
        """Adam's moments by parameter; with the network's weights all that a resumed run needs."""
        return moments(self._adam, self.network)

    def dev_logits(self, target: int) -> tuple[np.ndarray, np.ndarray]:
        """Logits and labels of the dev pairs."""
        return self.dev_scores()

    def trainable_weights(self) -> dict[str, Tensor]:
        """Every epoch moves all weights."""
        return weights(self.network)

    def finish(self) -> None:
        """Nothing is only for training."""

    def identity(self) -> dict[str, Any]:
        """Configuration, target and a hash of graph and training pairs."""
        digest, train = hashlib.sha256(self._vocabulary_hash.encode()), self.batches.train
        for array in (train.head, train.tail, train.label, self.batches.facts):
            digest.update(np.ascontiguousarray(array).tobytes())
        return {"config": self.config.to_dict(), "targets": list(self.targets), "data": digest.hexdigest()}

    def restore(self, state: Mapping[str, Tensor], next_round: int = 0) -> None:
        """Take up what :meth:`state` gave."""
        restore_moments(self._adam, self.network, state)
