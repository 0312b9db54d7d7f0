"""Batches for the default model's losses. Only training facts and pairs are drawn from.

Negatives avoid training facts, in either direction, and nothing else: dev and test are not known to a fitter. A few
are training facts of another relation: without them a model learns which terms are related, but not how.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from cogstage.errors import UsageError
from cogstage.knowledge.dataset import FittingView
from cogstage.model.config import Config
from cogstage.triples import TripleIndex, UsualTypes

RANDOM_WEIGHT = 0.25  # weight in L_r of a pair of random candidates


@dataclass(frozen=True)
class TripleBatch:
    """One batch of L_r, in node ids."""

    triples: np.ndarray  # (b, 3) head, relation, tail; no inverses, they are the same score read backwards
    label: np.ndarray  # (b,) float32, 1 for a fact
    weight: np.ndarray  # (b,) float32


@dataclass(frozen=True)
class PairBatch:
    """Labelled pairs, each with its target relation and the cross-fitting fold it belongs to (-1 without folds)."""

    head: np.ndarray  # (b,)
    tail: np.ndarray  # (b,)
    target: np.ndarray  # (b,) number in the data set's relations
    label: np.ndarray  # (b,) float32
    fold: np.ndarray  # (b,)
    row: np.ndarray  # (b,) number of the pair among those of its split

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, chosen: np.ndarray) -> PairBatch:
        return PairBatch(*(getattr(self, entry.name)[chosen] for entry in fields(self)))


@dataclass(frozen=True)
class _Part:
    """The facts and training negatives that one recognition may learn from."""

    facts: np.ndarray  # (F, 3)
    tails: np.ndarray  # (2F,) tails by relation, as often as they occur; heads are tails of the inverse
    begin: np.ndarray  # (2R+1,) where each relation's tails begin
    negatives: np.ndarray  # (N, 3) head, relation, tail of training negatives
    others: np.ndarray  # (O, 3) pairs that hold other relations only, sorted by the relation that they do not hold
    others_begin: np.ndarray  # (R+1,) where each relation's rows of ``others`` begin


class TripleSampler:
    """Draws facts and negatives for L_r from a :class:`FittingView`, always with the generator it is given.

    With ``folds`` the training pairs are divided by pair of terms; a batch of fold f contains nothing of that part.
    """

    def __init__(
        self, view: FittingView, config: Config, terms: int, types: UsualTypes | None = None, seed: int = 0
    ) -> None:
        self._view, self._config, self._relations, self._terms = view, config, len(view.relations), terms
        self._types = types
        given = view.train_facts()
        if not len(given):
            raise UsageError("the data set has no training facts; build it on facts that the graph's terms hold")
        self._known = TripleIndex(given, self._relations, terms)
        facts = np.stack([given.head, given.relation, given.tail], 1).astype(np.int64)
        self.candidates = np.unique(facts[:, [0, 2]])  # terms of the training facts
        pairs = [view.pairs(relation, "train") for relation in view.relations]
        drawn = [
            np.stack([p.head[p.label == 0], np.full((p.label == 0).sum(), number), p.tail[p.label == 0]], 1)
            for number, p in enumerate(pairs)
        ]
        every = np.concatenate(drawn).astype(np.int64)
        self._keys, self._key_fold = self._divide(facts, every, np.random.default_rng([seed, 77]))
        negatives = every[~self._known.joined(every[:, 0], every[:, 2])]
        negatives = negatives[np.isin(negatives[:, [0, 2]], self.candidates).all(axis=1)]
        self._parts = {-1: self._part(facts, negatives, -1)}
        for fold in range(config.folds):
            self._parts[fold] = self._part(facts, negatives, fold)

    @property
    def fact_folds(self) -> np.ndarray | None:
        """The fold of each training fact (F,); None without folds."""
        facts = self._parts[-1].facts
        return self._fold_of(facts[:, 0], facts[:, 2]) if self._config.folds else None

    def facts(self, fold: int = -1) -> np.ndarray:
        """The training facts that a recognition learns from: (F, 3) head, relation, tail."""
        return self._parts[fold].facts

    def _key(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        result: np.ndarray = np.minimum(head, tail) * np.int64(self._terms) + np.maximum(head, tail)
        return result

    def _divide(
        self, facts: np.ndarray, negatives: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Sorted keys of the training pairs and the fold of each.

        Facts go anywhere. Where a positive's fold is hidden, its two terms lack at least one fact each; a negative goes
        to a fold in which its terms have facts, drawn by how many, so that it lacks as much. Otherwise stage 3 would
        learn that terms with few visible facts belong together.
        """
        count = max(1, self._config.folds)
        keys = np.unique(self._key(facts[:, 0], facts[:, 2]))
        fold = rng.integers(count, size=len(keys))
        of_fact = fold[np.searchsorted(keys, self._key(facts[:, 0], facts[:, 2]))]
        seen = np.zeros((2, self._relations, self._terms, count), np.int32)  # facts of a head, of a tail, in each fold
        np.add.at(seen[0], (facts[:, 1], facts[:, 0], of_fact), 1)
        np.add.at(seen[1], (facts[:, 1], facts[:, 2], of_fact), 1)
        others, first = np.unique(self._key(negatives[:, 0], negatives[:, 2]), return_index=True)
        head, relation, tail = negatives[first].T
        ends = seen[0][relation, head].astype(np.float64), seen[1][relation, tail].astype(np.float64)
        weight = ends[0] * ends[1] + 1e-6 * (ends[0] + ends[1]) + 1e-12
        upto = weight.cumsum(axis=1)
        drawn = (rng.random(len(others))[:, None] * upto[:, -1:] > upto).sum(axis=1)
        every, folds = np.concatenate([keys, others]), np.concatenate([fold, drawn])
        order = np.argsort(every)
        return every[order], folds[order]

    def _fold_of(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """The fold of each pair, in either direction; -1 for a pair that is in none."""
        key = self._key(head, tail)
        at = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        result: np.ndarray = np.where(self._keys[at] == key, self._key_fold[at], -1)
        return result

    def _part(self, facts: np.ndarray, negatives: np.ndarray, fold: int) -> _Part:
        if fold >= 0:
            facts = facts[self._fold_of(facts[:, 0], facts[:, 2]) != fold]
            negatives = negatives[self._fold_of(negatives[:, 0], negatives[:, 2]) != fold]
            if not len(facts):
                raise UsageError(f"too few training facts for folds={self._config.folds}; set folds=0")
        both = np.concatenate([facts, facts[:, [2, 1, 0]] + np.array([0, self._relations, 0])])
        order = np.argsort(both[:, 1], kind="stable")
        begin = np.searchsorted(both[order, 1], np.arange(2 * self._relations + 1))
        others = self._others(facts)
        return _Part(
            facts,
            both[order, 2],
            begin,
            negatives,
            others,
            np.searchsorted(others[:, 1], np.arange(self._relations + 1)),
        )

    def _others(self, facts: np.ndarray) -> np.ndarray:
        """Triples that are no training facts, of a pair that holds another relation and has fitting types (O, 3)."""
        head, tail = np.unique(np.concatenate([facts[:, [0, 2]], facts[:, [2, 0]]]), axis=0).T
        free = ~self._known.relations_of(head, tail)[:, : self._relations]
        if self._types is not None:
            free &= self._types.allowed(head, tail)[:, : self._relations]
        relation, pair = np.nonzero(free.T)
        return np.stack([head[pair], relation, tail[pair]], 1)

    def triple_batch(self, rng: np.random.Generator, fold: int = -1) -> TripleBatch:
        """Facts drawn at random, with negatives."""
        facts = self._parts[fold].facts
        return self.with_negatives(facts[rng.integers(len(facts), size=self._config.recognition_batch)], rng, fold)

    def with_negatives(self, facts: np.ndarray, rng: np.random.Generator, fold: int = -1) -> TripleBatch:
        """Facts (weight 1), training negatives and typed ones (sharing a weight of 1 per fact), pairs that hold other
        relations (weight 1) and random pairs.
        """
        part, count, fresh = self._parts[fold], len(facts), self._config.fresh_negatives
        relation = np.repeat(facts[:, 1], fresh)
        heads, tails = self._own(part, relation + self._relations, rng), self._own(part, relation, rng)
        typed = np.stack([heads, relation, tails], 1)
        anything = self.candidates[rng.integers(len(self.candidates), size=(count, 2))]
        loose = np.stack([anything[:, 0], facts[:, 1], anything[:, 1]], 1)
        negatives = part.negatives[rng.integers(len(part.negatives), size=count if len(part.negatives) else 0)]
        others = self._draw_others(part, facts[: round(self._config.other_facts * count), 1], rng)
        groups = [facts, negatives, self._unknown(typed, fold), others, self._unknown(loose, fold)]
        share = 1.0 / (1 + fresh)
        weight = np.repeat([1.0, share, share, 1.0, RANDOM_WEIGHT], [len(rows) for rows in groups])
        triples = np.concatenate(groups)
        label = np.arange(len(triples)) < count
        return TripleBatch(triples, label.astype(np.float32), weight.astype(np.float32))

    def _draw_others(self, part: _Part, relation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """For each of these relations a pair that holds only others, where there is one."""
        begin, size = part.others_begin[relation], np.diff(part.others_begin)[relation]
        at = begin + (rng.random(len(relation)) * size).astype(np.int64)
        drawn: np.ndarray = part.others[at[size > 0]]
        return drawn

    def _own(self, part: _Part, relation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A tail of each relation, as often as it occurs."""
        begin, size = part.begin[relation], np.diff(part.begin)[relation]
        at = np.minimum(begin + (rng.random(len(relation)) * size).astype(np.int64), len(part.tails) - 1)
        drawn: np.ndarray = part.tails[at]
        return drawn

    def _unknown(self, triples: np.ndarray, fold: int) -> np.ndarray:
        """Those triples that join two different terms, are no training fact and not of the fold."""
        head, tail = triples[:, 0], triples[:, 2]
        free = (head != tail) & ~self._known.joined(head, tail)
        if fold >= 0:
            free &= self._fold_of(head, tail) != fold
        kept: np.ndarray = triples[free]
        return kept


class Sampler(TripleSampler):
    """Draws labelled pairs of some relations for L_p, too."""

    def __init__(
        self,
        view: FittingView,
        config: Config,
        terms: int,
        targets: Sequence[int],
        types: UsualTypes | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(view, config, terms, types, seed)
        self.train, self.dev = (self._labelled(split, targets) for split in ("train", "dev"))
        self.train = self._with_others(self.train, targets, np.random.default_rng([seed, 78]))

    def _labelled(self, split: str, targets: Sequence[int]) -> PairBatch:
        parts = [(target, self._view.pairs(self._view.relations[target], split)) for target in targets]
        for target, pairs in parts:
            if not len(pairs) or pairs.label.min() == pairs.label.max():
                name = self._view.relations[target]
                raise UsageError(f"the {split} pairs of {name} lack positives or negatives; choose another relation")
        head = np.concatenate([pairs.head for _, pairs in parts]).astype(np.int64)
        tail = np.concatenate([pairs.tail for _, pairs in parts]).astype(np.int64)
        number = np.concatenate([np.full(len(pairs), target) for target, pairs in parts])
        label = np.concatenate([pairs.label for _, pairs in parts]).astype(np.float32)
        fold = np.full(len(head), -1)
        if self._config.folds and split == "train":
            fold = self._fold_of(head, tail)
        return PairBatch(head, tail, number, label, fold, np.arange(len(head)))

    def _with_others(self, train: PairBatch, targets: Sequence[int], rng: np.random.Generator) -> PairBatch:
        """The training pairs, and beside each target's positives a share of pairs that hold other relations."""
        part, parts = self._parts[-1], [train]
        for target in targets:
            begin, end = part.others_begin[target : target + 2]
            positives = ((train.target == target) & (train.label == 1)).sum()
            count = min(end - begin, round(self._config.other_facts * int(positives)))
            head, number, tail = part.others[begin + rng.choice(end - begin, count, replace=False)].T
            fold = self._fold_of(head, tail) if self._config.folds else np.full(count, -1)
            parts.append(PairBatch(head, tail, number, np.zeros(count, np.float32), fold, number))
        joined = PairBatch(
            *(np.concatenate([getattr(one, entry.name) for one in parts]) for entry in fields(PairBatch))
        )
        return replace(joined, row=np.arange(len(joined)))

    def pair_batches(self, rng: np.random.Generator, least: float = 0.0) -> list[PairBatch]:
        """The training pairs of an epoch, shuffled; each batch is of one relation and one fold.

        Several passes are made over the pairs of a relation that would give fewer than ``least`` batches.
        """
        size, train = self._config.pair_batch, self.train
        targets, count = np.unique(train.target, return_counts=True)
        passes = np.ceil(np.maximum(1.0, least * size / count))
        batches = []
        for number in range(int(passes.max())):
            order = rng.permutation(len(train))
            order = order[np.isin(train.target[order], targets[passes > number])]
            group = train.target[order] * (self._config.folds + 1) + train.fold[order]
            for value in np.unique(group):
                chosen = order[group == value]
                batches += [train[chosen[begin : begin + size]] for begin in range(0, len(chosen), size)]
        return [batches[at] for at in rng.permutation(len(batches))]
