"""Batches for the default model's losses. Only training facts and pairs are drawn from.

Negatives avoid training facts, in either direction, and nothing else: dev and test are not known to a fitter. Facts of
other relations teach how two terms are related, and co-occurring pairs that two related terms are more than that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.knowledge.dataset import FittingView
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.model.config import Config
from cogstage.triples import TripleIndex, usual_types

RANDOM_WEIGHT = 0.25  # weight in L_r of a pair of random candidates


@dataclass(frozen=True)
class TripleBatch:
    """One batch of L_r, in node ids."""

    triples: np.ndarray  # (b, 3) head, relation, tail; no inverses, they are the same score read backwards
    label: np.ndarray  # (b,) float32, 1 for a fact
    related_weight: np.ndarray  # (b,) float32, in the loss of s_k: 0 for facts of other relations
    contrast_weight: np.ndarray  # (b,) float32, in the loss of d_k: 1 for facts of this relation and of others

    @property
    def weight(self) -> np.ndarray:
        """(b,) for a model with one score per relation."""
        weight: np.ndarray = np.maximum(self.related_weight, self.contrast_weight)
        return weight

    def __len__(self) -> int:
        return len(self.triples)

    def __getitem__(self, chosen: np.ndarray) -> TripleBatch:
        return TripleBatch(*(getattr(self, entry.name)[chosen] for entry in fields(self)))


@dataclass(frozen=True)
class PairBatch:
    """Labelled pairs of one relation, each with the cross-fitting fold it belongs to (-1 without folds)."""

    head: np.ndarray  # (b,)
    tail: np.ndarray  # (b,)
    label: np.ndarray  # (b,) float32
    fold: np.ndarray  # (b,)

    def __len__(self) -> int:
        return len(self.head)

    def __getitem__(self, chosen: np.ndarray) -> PairBatch:
        return PairBatch(*(getattr(self, entry.name)[chosen] for entry in fields(self)))

    @classmethod
    def unlabelled(cls, pairs: np.ndarray) -> PairBatch:
        """Pairs (n, 2) without labels and folds."""
        head, tail = pairs.T
        return cls(head, tail, np.zeros(len(pairs), np.float32), np.full(len(pairs), -1))


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

    def __init__(self, view: FittingView, config: Config, graph: Graph, seed: int = 0) -> None:
        self._view, self._config, self._relations = view, config, len(view.relations)
        self._graph, self._terms, self.counts = graph, graph.n_nodes, PairCounts.from_graph(graph)
        self.types = usual_types(graph.vocabulary.type, view.train_facts(), self._relations)
        given = view.train_facts()
        if not len(given):
            raise UsageError("the data set has no training facts; build it on facts that the graph's terms hold")
        self._known = TripleIndex(given, self._relations, self._terms)
        facts = np.stack([given.head, given.relation, given.tail], 1).astype(np.int64)
        self.candidates = np.unique(facts[:, [0, 2]])  # terms of the training facts
        pairs = [view.pairs(relation, "train") for relation in view.relations]
        drawn = [
            np.stack([p.head[p.label == 0], np.full((p.label == 0).sum(), number), p.tail[p.label == 0]], 1)
            for number, p in enumerate(pairs)
        ]
        every = np.concatenate(drawn).astype(np.int64)
        self._co_occurring = self._draw_co_occurring(facts, np.random.default_rng([seed, 79]))
        unrelated = np.concatenate([every, self._co_occurring])
        self._keys, self._key_fold = self._divide(facts, unrelated, np.random.default_rng([seed, 77]))
        negatives = every[~self._known.has_relation(every[:, 0], every[:, 2])]
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
        if self.types is not None:
            free &= self.types.allowed(head, tail)[:, : self._relations]
        relation, pair = np.nonzero(free.T)
        return np.stack([head[pair], relation, tail[pair]], 1)

    def _draw_co_occurring(self, facts: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Co-occurring pairs of a relation's heads and tails that hold no training fact: (n, 3)."""
        edges, drawn = EdgeLookup(self._graph), [np.empty((0, 3), np.int64)]
        for relation in range(self._relations):
            own = facts[facts[:, 1] == relation]
            head, tail = (ends.astype(np.int64) for ends in edges.between(np.unique(own[:, 0]), np.unique(own[:, 2])))
            free = np.flatnonzero(~self._known.has_relation(head, tail))
            chosen = rng.choice(free, min(len(free), round(self._config.co_occurring * len(own))), replace=False)
            drawn.append(np.stack([head[chosen], np.full(len(chosen), relation), tail[chosen]], 1))
        return np.concatenate(drawn)

    def triple_batch(self, rng: np.random.Generator, fold: int = -1) -> TripleBatch:
        """Facts drawn at random, with negatives."""
        facts = self._parts[fold].facts
        return self.with_negatives(facts[rng.integers(len(facts), size=self._config.recognition_batch)], rng, fold)

    def with_negatives(self, facts: np.ndarray, rng: np.random.Generator, fold: int = -1) -> TripleBatch:
        """Facts (weight 1), training negatives and typed ones (sharing a weight of 1 per fact), random pairs,
        co-occurring typed pairs, and for the contrast as many pairs that hold other relations.
        """
        part, count, fresh = self._parts[fold], len(facts), self._config.fresh_negatives
        typed = self._typed(part, facts, fresh, rng)
        anything = self.candidates[rng.integers(len(self.candidates), size=(count, 2))]
        loose = np.stack([anything[:, 0], facts[:, 1], anything[:, 1]], 1)
        negatives = part.negatives[rng.integers(len(part.negatives), size=count if len(part.negatives) else 0)]
        others = self._draw_others(part, facts[:, 1], rng)
        together = self._unknown(self._co_occurring_only(self._typed(part, facts, fresh, rng)), fold)
        together = together[: round(self._config.co_occurring * count)]
        groups = [facts, negatives, self._unknown(typed, fold), self._unknown(loose, fold), together, others]
        sizes, share = [len(rows) for rows in groups], 1.0 / (1 + fresh)
        related = np.repeat(np.array([1.0, share, share, RANDOM_WEIGHT, 1.0, 0.0], np.float32), sizes)
        contrast = np.repeat(np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0], np.float32), sizes)
        triples = np.concatenate(groups)
        label = np.arange(len(triples)) < count
        return TripleBatch(triples, label.astype(np.float32), related, contrast)

    def _draw_others(self, part: _Part, relation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """For each of these relations a pair that holds only others, where there is one."""
        begin, size = part.others_begin[relation], np.diff(part.others_begin)[relation]
        at = begin + (rng.random(len(relation)) * size).astype(np.int64)
        drawn: np.ndarray = part.others[at[size > 0]]
        return drawn

    def _typed(self, part: _Part, facts: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
        """``count`` triples per fact from the heads and tails of its relation, as often as they occur."""
        relation = np.repeat(facts[:, 1], count)
        heads, tails = self._own(part, relation + self._relations, rng), self._own(part, relation, rng)
        return np.stack([heads, relation, tails], 1)

    def _co_occurring_only(self, triples: np.ndarray) -> np.ndarray:
        kept: np.ndarray = triples[self.counts.counts(triples[:, 0], triples[:, 2]) > 0]
        return kept

    def _own(self, part: _Part, relation: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A tail of each relation, as often as it occurs."""
        begin, size = part.begin[relation], np.diff(part.begin)[relation]
        at = np.minimum(begin + (rng.random(len(relation)) * size).astype(np.int64), len(part.tails) - 1)
        drawn: np.ndarray = part.tails[at]
        return drawn

    def _unknown(self, triples: np.ndarray, fold: int) -> np.ndarray:
        """Those triples that join two different terms, are no training fact and not of the fold."""
        head, tail = triples[:, 0], triples[:, 2]
        free = (head != tail) & ~self._known.has_relation(head, tail)
        if fold >= 0:
            free &= self._fold_of(head, tail) != fold
        kept: np.ndarray = triples[free]
        return kept


class Sampler(TripleSampler):
    """Draws labelled pairs of some relations for L_p, too."""

    def __init__(self, view: FittingView, config: Config, graph: Graph, targets: Sequence[int], seed: int = 0) -> None:
        super().__init__(view, config, graph, seed)
        rng = np.random.default_rng([seed, 78])
        self.train = {target: self._with_negatives(self._labelled("train", target), target, rng) for target in targets}
        self.dev = {target: self._labelled("dev", target) for target in targets}

    def _labelled(self, split: str, target: int) -> PairBatch:
        name = self._view.relations[target]
        pairs = self._view.pairs(name, split)
        if not len(pairs) or pairs.label.min() == pairs.label.max():
            raise UsageError(f"the {split} pairs of {name} lack positives or negatives; choose another relation")
        return self._pair_batch(pairs.head, pairs.tail, pairs.label, folds=split == "train")

    def _pair_batch(self, head: np.ndarray, tail: np.ndarray, label: np.ndarray | float, folds: bool) -> PairBatch:
        head, tail = head.astype(np.int64), tail.astype(np.int64)
        fold = self._fold_of(head, tail) if folds and self._config.folds else np.full(len(head), -1)
        return PairBatch(head, tail, np.broadcast_to(label, head.shape).astype(np.float32), fold)

    def _with_negatives(self, train: PairBatch, target: int, rng: np.random.Generator) -> PairBatch:
        """The training pairs of a target, with a share of co-occurring pairs and of facts of other relations."""
        part = self._parts[-1]
        others = part.others[slice(*part.others_begin[target : target + 2])]
        count = min(len(others), round(self._config.other_facts * int(train.label.sum())))
        others = others[rng.choice(len(others), count, replace=False)]
        co_occurring = self._co_occurring[self._co_occurring[:, 1] == target]
        parts = [train, *(self._pair_batch(rows[:, 0], rows[:, 2], 0.0, True) for rows in (others, co_occurring))]
        return PairBatch(*(np.concatenate([getattr(one, entry.name) for one in parts]) for entry in fields(PairBatch)))

    def contrasts(self, target: int) -> dict[str, np.ndarray]:
        """Dev negatives of two further kinds (n, 2): co-occurring pairs, and dev facts of other relations that fit."""
        dev = [self._view.pairs(name, "dev") for name in self._view.relations]
        facts = np.concatenate([np.stack([p.head, p.tail], 1)[p.label == 1] for p in dev]).astype(np.int64)
        pairs = np.unique(np.concatenate([facts, facts[:, ::-1]]), axis=0)
        own = np.stack([dev[target].head, dev[target].tail], 1)[dev[target].label == 1].astype(np.int64)
        held = np.isin(self._pair_key(pairs), self._pair_key(own))
        held |= self._known.contains(pairs[:, 0], np.full(len(pairs), target), pairs[:, 1])
        if self.types is not None:
            held |= ~self.types.allowed(pairs[:, 0], pairs[:, 1])[:, target]
        hard = self._view.negatives(self._view.relations[target], "dev", "hard")
        return {"co-occurring": np.stack([hard.head, hard.tail], 1).astype(np.int64), "other relations": pairs[~held]}

    def _pair_key(self, pairs: np.ndarray) -> np.ndarray:
        key: np.ndarray = pairs[:, 0] * np.int64(self._terms) + pairs[:, 1]
        return key

    def pair_batches(self, target: int, rng: np.random.Generator) -> list[np.ndarray]:
        """Row numbers of a target's training pairs for one epoch, shuffled, by batch.

        Several passes are made over few pairs, so that an epoch has its share of ``decision_steps``.
        """
        size, count = self._config.pair_batch, len(self.train[target])
        least = self._config.decision_steps / self._config.decision_epochs
        passes = int(np.ceil(max(1.0, least * size / count)))
        orders = (rng.permutation(count) for _ in range(passes))
        return [order[at : at + size] for order in orders for at in range(0, count, size)]
