"""An encoder and a scorer trained like CogStage's recognition: on facts of all relations, with fresh negatives.

The paper trains a baseline for one relation on the negatives that the data set holds, one per fact. Recognition gets
four more per fact, sampled again for every batch. A comparison of the two says as much about negatives as about
models, so this form gives a baseline the same batches, from the same sampler: typed negatives, co-occurring pairs and
facts of other relations.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from cogstage.baselines.classifier import SCORE_BATCH, PairClassifier, scaled, tensors
from cogstage.baselines.contract import ALL, Encoder, Scorer
from cogstage.baselines.early_stopping import EarlyStopping
from cogstage.baselines.vectors import VectorStore
from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.model.config import Config
from cogstage.progress import SILENT, Progress
from cogstage.statistics import auroc, sigmoid
from cogstage.training.calibration import Calibration
from cogstage.training.sampling import TripleBatch, TripleSampler


@dataclass(frozen=True)
class FreshTraining:
    """How the fresh form is trained. Every setting of the grid is tried and the best mean dev AUROC is kept."""

    batch: int = 256
    """Facts in a step."""
    epochs: int = 60
    """Most passes over the training facts for each setting."""
    patience: int = 5
    """Passes without a better mean dev AUROC before it stops."""
    weight_decays: tuple[float, ...] = (0.003, 0.03, 0.3)
    """Decoupled weight decays to choose from, on top of the scorer's step size (AdamW)."""
    dropouts: tuple[float, ...] = (0.0, 0.3)
    """Shares of the vectors' coordinates dropped in training to choose from."""


class FreshMethod:
    """``encoder+scorer+fresh``: one fit for all relations, each with a module of the scorer's own."""

    joint = True

    def __init__(
        self,
        encoder: Encoder,
        scorer: Scorer,
        store: VectorStore | None = None,
        training: FreshTraining | None = None,
    ) -> None:
        if not isinstance(scorer, PairClassifier):
            raise UsageError(f"{scorer.name} has no module to train with fresh negatives")
        self.encoder, self.scorer, self.store = encoder, scorer, store
        self.training = training or FreshTraining()
        self.chosen: tuple[float, float] | None = None  # weight decay and dropout, after fitting

    @property
    def name(self) -> str:
        """Names of encoder and scorer with the suffix of fresh negatives, such as ``svd+rescal+fresh``."""
        return f"{self.encoder.name}+{self.scorer.name}+fresh"

    @property
    def settings(self) -> str:
        """The options of both parts and of the training."""
        return f"{self.encoder!r} {self.scorer!r} {self.training!r}"

    def fit(
        self, graph: Graph, view: FittingView, relation: str = ALL, seed: int = 0, progress: Progress = SILENT
    ) -> FreshMethod:
        """Train with every setting of the grid on all relations; keep the one with the best mean dev AUROC."""
        encode = self.store.get if self.store is not None else _encode
        self._vectors = torch.from_numpy(scaled(encode(self.encoder, graph, view, seed, progress)))
        self._relations = view.relations
        source = TripleSampler(view, Config(folds=0), graph, seed)
        grid = list(itertools.product(self.training.weight_decays, self.training.dropouts))
        best = -1.0
        progress.start(self.name, len(grid))
        for decay, dropout in grid:
            torch.manual_seed(seed)
            modules = nn.ModuleList(self.scorer.module(self._vectors.shape[1]) for _ in view.relations)
            reached = self._train(modules, decay, dropout, source, view, seed)
            if reached > best:
                best, self._modules, self.chosen = reached, modules, (decay, dropout)
            progress.advance(1, f"dev AUROC {best:.3f}")
        progress.done(f"dev AUROC {best:.3f}")
        dev = {name: view.pairs(name, "dev") for name in view.relations}
        self._calibration = {
            name: Calibration.fit(self._logits(pairs.head, pairs.tail, name), pairs.label)
            for name, pairs in dev.items()
        }
        return self

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        """Probabilities (M,) of a relation, calibrated on dev as CogStage's are."""
        if relation is None or relation not in self._relations:
            raise UsageError(f"{self.name} was fitted on {', '.join(self._relations)}; relation must be one of them")
        return sigmoid(self._calibration[relation].logits(self._logits(head, tail, relation)))

    def _logits(self, head: np.ndarray, tail: np.ndarray, relation: str) -> np.ndarray:
        module = self._modules[self._relations.index(relation)]
        heads, tails = (torch.from_numpy(np.asarray(ids, np.int64)) for ids in (head, tail))
        with torch.inference_mode():
            parts = [
                module(self._vectors[h], self._vectors[t]).double()
                for h, t in zip(torch.split(heads, SCORE_BATCH), torch.split(tails, SCORE_BATCH), strict=True)
            ]
        return torch.cat(parts).numpy() if len(heads) else np.empty(0)

    def _train(
        self, modules: nn.ModuleList, decay: float, dropout: float, source: TripleSampler, view: FittingView, seed: int
    ) -> float:
        """Train ``modules`` in place to their best mean dev AUROC, which is returned."""
        options, rng = self.training, np.random.default_rng((seed, 5))
        adam = torch.optim.AdamW(modules.parameters(), self.scorer.training.rate, weight_decay=decay)
        stopping = EarlyStopping(modules, options.patience, least=1e-4)
        for _ in range(options.epochs):
            facts = rng.permutation(source.facts())
            for some in np.split(facts, range(options.batch, len(facts), options.batch)):
                loss = self._loss(modules, source.with_negatives(some, rng), dropout)
                adam.zero_grad()
                torch.autograd.backward(loss)
                adam.step()
            if stopping.should_stop(self._dev_auroc(modules, view)):
                break
        stopping.restore()
        return stopping.best

    def _loss(self, modules: nn.ModuleList, batch: TripleBatch, dropout: float) -> torch.Tensor:
        """Weighted cross entropy of a batch, each relation's rows by its own module."""
        total, triples = torch.zeros(()), batch.triples
        for number, module in enumerate(modules):
            rows = np.flatnonzero(triples[:, 1] == number)
            if len(rows):
                heads, tails = (self._vectors[torch.from_numpy(triples[rows, side])] for side in (0, 2))
                if dropout:
                    heads, tails = (nn.functional.dropout(vectors, dropout) for vectors in (heads, tails))
                total = total + nn.functional.binary_cross_entropy_with_logits(
                    module(heads, tails),
                    torch.from_numpy(batch.label[rows]),
                    weight=torch.from_numpy(batch.weight[rows]),
                    reduction="sum",
                )
        return total / float(batch.weight.sum())

    def _dev_auroc(self, modules: nn.ModuleList, view: FittingView) -> float:
        """Mean over the relations whose dev pairs (training pairs if there are none) have both labels."""
        found = []
        for module, relation in zip(modules, view.relations, strict=True):
            pairs = view.pairs(relation, "dev")
            pairs = pairs if len(pairs) else view.pairs(relation, "train")
            heads, tails, _ = tensors(pairs)
            with torch.inference_mode():
                found.append(auroc(pairs.label, module(self._vectors[heads], self._vectors[tails]).numpy()))
        defined = [value for value in found if value is not None]
        return float(np.mean(defined)) if defined else 0.0


def _encode(encoder: Encoder, graph: Graph, view: FittingView, seed: int, progress: Progress) -> np.ndarray:
    return encoder.encode(graph, view, seed, progress)
