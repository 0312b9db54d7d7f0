"""Batches of L_n, L_r and L_p for the published model, drawn from what a fitting view shows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from cogstage.errors import UsageError
from cogstage.knowledge.dataset import FittingView
from cogstage.model.paper import PaperConfig

REDRAWS = 2  # times that a training fact among the corrupted triples is drawn again before it is left out


@dataclass(frozen=True)
class RecognitionBatch:
    """One batch of L_r, in node ids."""

    triples: np.ndarray  # (b, 3) head, relation, tail; half of them inverse triples
    heads: np.ndarray  # (b, n) corrupted heads
    tails: np.ndarray  # (b, n) corrupted tails
    allowed: np.ndarray  # (2, b, n) whether (h, tails) and (heads, t) are no training facts
    na: np.ndarray  # (m, 2) pairs that hold no relation


@dataclass(frozen=True)
class PaperPairBatch:
    """Labelled pairs of the target relation."""

    head: np.ndarray  # (b,)
    tail: np.ndarray  # (b,)
    label: np.ndarray  # (b,) float


class PaperBatches:
    """Draws with the generator that it is handed. Negatives avoid training facts, and nothing else.

    By default the batches of L_n and L_r are sized so that one pass over the pairs is one over graph and facts.
    """

    def __init__(self, view: FittingView, config: PaperConfig, target: int, ppmi: sp.csr_matrix) -> None:
        self._config, self._relations, self._terms = config, len(view.relations), ppmi.shape[0]
        given = view.train_facts()
        if not len(given):
            raise UsageError("the data set has no training facts; build it on facts that the graph's terms hold")
        self.facts = np.stack([given.head, given.relation, given.tail], 1).astype(np.int64)  # (F, 3)
        self.candidates = np.unique(self.facts[:, [0, 2]])
        head, tail = self.facts[:, 0], self.facts[:, 2]
        self._keys = np.unique(np.concatenate([self._key(head, tail), self._key(tail, head)]))
        self.train, self.dev = (_labelled(view, view.relations[target], split) for split in ("train", "dev"))
        drawn = [view.pairs(relation, "train") for relation in view.relations]
        negatives = np.concatenate([np.stack([p.head, p.tail], 1)[p.label == 0] for p in drawn]).astype(np.int64)
        self._negatives = negatives[~self.is_fact(negatives[:, 0], negatives[:, 1])]
        total = np.asarray(ppmi.sum(axis=1)).ravel()
        self.nodes = np.flatnonzero(total > 0)  # terms with a positive PPMI carry a loss
        self._targets = sp.csr_matrix(sp.diags_array(np.divide(1.0, total, out=total * 0, where=total > 0)) @ ppmi)  # p̂

    @property
    def steps(self) -> int:
        """Iterations of an epoch."""
        return -(-len(self.train.head) // self._config.pair_batch)

    def _key(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        result: np.ndarray = head * np.int64(self._terms) + tail
        return result

    def is_fact(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Whether pairs hold a training fact of any relation, in either direction."""
        key = self._key(head, tail)
        row = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        result: np.ndarray = self._keys[row] == key
        return result

    def recall(self, rng: np.random.Generator) -> list[np.ndarray]:
        """The nodes of an epoch's batches of L_n."""
        return self._passes(self.nodes, self._config.recall_batch, rng)

    def recall_targets(self, nodes: np.ndarray) -> Tensor:
        """p̂ of some nodes, sparse (n, V)."""
        rows = self._targets[nodes].astype(np.float32).tocoo()
        where = torch.from_numpy(np.stack([rows.row, rows.col]).astype(np.int64))
        return torch.sparse_coo_tensor(
            where, torch.from_numpy(rows.data), rows.shape, is_coalesced=True, check_invariants=False
        )

    def recognition(self, rng: np.random.Generator) -> Iterator[RecognitionBatch]:
        """An epoch's batches of L_r: training facts with their inverses, corrupted triples and NA pairs."""
        for facts in self._passes(self.facts, self._config.recognition_batch, rng):
            inverse = facts[:, [2, 1, 0]] + np.array([0, self._relations, 0])
            triples = np.concatenate([facts, inverse])
            tails, proper_tails = self._corrupted(triples[:, 0], rng)
            heads, proper_heads = self._corrupted(triples[:, 2], rng)
            na = self._na(self._config.na_pairs * len(facts), rng)
            yield RecognitionBatch(triples, heads, tails, np.stack([proper_tails, proper_heads]), na)

    def pairs(self, rng: np.random.Generator) -> list[PaperPairBatch]:
        """An epoch's batches of L_p."""
        order, size = rng.permutation(len(self.train.head)), self._config.pair_batch
        chosen = (order[begin : begin + size] for begin in range(0, len(order), size))
        return [PaperPairBatch(self.train.head[x], self.train.tail[x], self.train.label[x]) for x in chosen]

    def _passes(self, rows: np.ndarray, size: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Shuffled rows in as many parts as an epoch has steps: one pass, or ``size`` rows in each."""
        order = rng.permutation(len(rows))
        if size:
            order = np.resize(order, self.steps * min(size, len(rows)))
        return [rows[part] for part in np.array_split(order, self.steps)]

    def _corrupted(self, fixed: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Candidates for the other end of triples: (b, n), and whether each makes no training fact."""
        drawn = self._any((len(fixed), self._config.negatives), rng)
        wide = np.broadcast_to(fixed[:, None], drawn.shape)
        proper = ~self.is_fact(wide, drawn)
        for _ in range(REDRAWS):
            again = np.nonzero(~proper)
            drawn[again] = self._any(len(again[0]), rng)
            proper[again] = ~self.is_fact(wide[again], drawn[again])
        return drawn, proper

    def _any(self, shape: int | tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        drawn: np.ndarray = self.candidates[rng.integers(len(self.candidates), size=shape)]
        return drawn

    def _na(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Training negatives of any relation and random pairs of candidates, in either direction; never a fact."""
        pairs = self._any((count, 2), rng)
        if len(self._negatives):
            pairs[: count // 2] = self._negatives[rng.integers(len(self._negatives), size=count // 2)]
        turned = rng.random(count) < 0.5
        pairs[turned] = pairs[turned][:, ::-1]
        kept: np.ndarray = pairs[~self.is_fact(pairs[:, 0], pairs[:, 1]) & (pairs[:, 0] != pairs[:, 1])]
        return kept


def _labelled(view: FittingView, relation: str, split: str) -> PaperPairBatch:
    pairs = view.pairs(relation, split)
    if not len(pairs) or pairs.label.min() == pairs.label.max():
        raise UsageError(f"the {split} pairs of {relation} lack positives or negatives; choose another relation")
    return PaperPairBatch(pairs.head.astype(np.int64), pairs.tail.astype(np.int64), pairs.label.astype(np.float32))
