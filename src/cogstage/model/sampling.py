"""Batches for L_n, L_r and L_p. Only training facts and pairs are drawn from; no known fact is drawn as a negative."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cogstage.errors import UsageError
from cogstage.knowledge.dataset import FittingView
from cogstage.model.config import Config

REDRAWS = 2  # times a known fact among the negatives is drawn anew before it is left out


@dataclass(frozen=True)
class RecognitionBatch:
    """One batch of L_r, in node ids."""

    triples: np.ndarray  # (b, 3) head, relation, tail; inverse triples included
    heads: np.ndarray  # (b, n) corrupted heads
    tails: np.ndarray  # (b, n) corrupted tails
    allowed: np.ndarray  # (2, b, n) corrupted tails and heads that are no known fact
    na: np.ndarray  # (m, 2) pairs that hold no relation


@dataclass(frozen=True)
class PairBatch:
    """One batch of L_p: labelled pairs, each with its target relation."""

    head: np.ndarray  # (b,)
    tail: np.ndarray  # (b,)
    target: np.ndarray  # (b,) number in the data set's relations
    label: np.ndarray  # (b,) float

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, chosen: np.ndarray) -> PairBatch:
        return PairBatch(self.head[chosen], self.tail[chosen], self.target[chosen], self.label[chosen])


class Sampler:
    """Draws from a :class:`FittingView`, always with the generator it is handed."""

    def __init__(self, view: FittingView, config: Config, terms: int, targets: Sequence[int]) -> None:
        self._view, self._config, self._relations = view, config, len(view.relations)
        facts = view.train_facts()
        if not len(facts):
            raise UsageError("the data set has no training facts; build it on facts that the graph's terms hold")
        forward = np.stack([facts.head, facts.relation, facts.tail], 1).astype(np.int64)
        self._facts = forward
        backward = forward[:, [2, 1, 0]] + np.array([0, self._relations, 0])
        both = np.concatenate([forward, backward])
        self.fact_terms = np.unique(both[:, 0])
        self.candidates = self.fact_terms if config.candidates == "facts" else np.arange(terms)
        order = np.argsort(both[:, 1], kind="stable")
        self._tails = both[order, 2]  # tails by relation, as often as they occur; heads are tails of the inverse
        self._begin = np.searchsorted(both[order, 1], np.arange(2 * self._relations + 1))
        negatives = [view.pairs(relation, "train") for relation in view.relations]
        drawn = [np.stack([p.head[p.label == 0], p.tail[p.label == 0]], 1) for p in negatives]
        pairs = np.concatenate(drawn).astype(np.int64)
        self._negatives = pairs[~view.is_known(pairs[:, 0], pairs[:, 1])]
        self.train, self.dev = (self._labelled(split, targets) for split in ("train", "dev"))

    def _labelled(self, split: str, targets: Sequence[int]) -> PairBatch:
        parts = [(target, self._view.pairs(self._view.relations[target], split)) for target in targets]
        for target, pairs in parts:
            if not len(pairs) or pairs.label.min() == pairs.label.max():
                name = self._view.relations[target]
                raise UsageError(f"the {split} pairs of {name} lack positives or negatives; choose another relation")
        return PairBatch(
            np.concatenate([pairs.head for _, pairs in parts]).astype(np.int64),
            np.concatenate([pairs.tail for _, pairs in parts]).astype(np.int64),
            np.concatenate([np.full(len(pairs), target) for target, pairs in parts]),
            np.concatenate([pairs.label for _, pairs in parts]).astype(np.float32),
        )

    def pair_batches(self, rng: np.random.Generator) -> Iterator[PairBatch]:
        """The training pairs of an epoch, shuffled."""
        order = rng.permutation(len(self.train))
        for begin in range(0, len(order), self._config.pair_batch):
            yield self.train[order[begin : begin + self._config.pair_batch]]

    def recognition_batch(self, rng: np.random.Generator) -> RecognitionBatch:
        """Training facts with their inverses, corrupted heads and tails, and NA pairs."""
        triples = self._facts[rng.integers(len(self._facts), size=self._config.recognition_batch)]
        inverse = triples[:, [2, 1, 0]] + np.array([0, self._relations, 0])
        triples = np.concatenate([triples, inverse])
        opposite = (triples[:, 1] + self._relations) % (2 * self._relations)
        tails, tails_allowed = self._corrupted(triples[:, 0], triples[:, 1], rng)
        heads, heads_allowed = self._corrupted(triples[:, 2], opposite, rng)
        return RecognitionBatch(triples, heads, tails, np.stack([tails_allowed, heads_allowed]), self._na(rng))

    def _corrupted(self, fixed: np.ndarray, relation: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Terms in place of the true tail: (b, n), and whether each makes a pair that is no known fact."""
        batch, count = len(fixed), self._config.negatives
        begin, size = self._begin[relation], np.diff(self._begin)[relation]
        typed = self._tails[begin[:, None] + (rng.random((batch, count)) * size[:, None]).astype(np.int64)]
        drawn = np.where(rng.random((batch, count)) < self._config.typed_negatives, typed, self._any(batch, count, rng))
        wide = np.broadcast_to(fixed[:, None], drawn.shape)
        known = self._view.is_known(wide, drawn)
        for _ in range(REDRAWS):
            again = np.nonzero(known)
            drawn[again] = self.fact_terms[rng.integers(len(self.fact_terms), size=len(again[0]))]
            known[again] = self._view.is_known(wide[again], drawn[again])
        return drawn, ~known

    def _any(self, batch: int, count: int, rng: np.random.Generator) -> np.ndarray:
        drawn: np.ndarray = self.fact_terms[rng.integers(len(self.fact_terms), size=(batch, count))]
        return drawn

    def _na(self, rng: np.random.Generator) -> np.ndarray:
        """NA pairs: half training negatives, half random candidate pairs, in either direction; never a known fact."""
        count = self._config.na_pairs
        pairs = self._any(count, 2, rng)
        if len(self._negatives):
            half = self._negatives[rng.integers(len(self._negatives), size=count // 2)]
            pairs[: count // 2] = half
        turned = rng.random(count) < 0.5
        pairs[turned] = pairs[turned][:, ::-1]
        return pairs[~self._view.is_known(pairs[:, 0], pairs[:, 1]) & (pairs[:, 0] != pairs[:, 1])]
