"""Trivial baselines that every result is compared with: always positive, degree, popularity, the pair's own PPMI."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress
from cogstage.statistics import logistic_weights, sigmoid
from cogstage.triples import Triples


class AlwaysPositive:
    """Predicts every pair positive: F1 is 2/3 with one negative per positive."""

    name = "always-positive"
    title = "Always positive"
    joint = False
    settings = ""

    def fit(
        self, graph: Graph, view: FittingView, relation: str, seed: int = 0, progress: Progress = SILENT
    ) -> AlwaysPositive:
        """Do nothing: the method has no parameters."""
        return self

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        """Probability 1 for every pair. float64 (n,)."""
        return np.ones(len(head))


class _Logistic:
    """Logistic regression on standardised features."""

    def fit(self, features: np.ndarray, label: np.ndarray) -> None:
        self._mean, spread = features.mean(axis=0), features.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)
        self._weights = logistic_weights(self._standardised(features), label.astype(np.float64))

    def scores(self, features: np.ndarray) -> np.ndarray:
        return sigmoid(self._weights[0] + self._standardised(features) @ self._weights[1:])

    def _standardised(self, features: np.ndarray) -> np.ndarray:
        result: np.ndarray = (features - self._mean) / self._spread
        return result


class _PairFeatures(ABC):
    """Logistic regression on a few features of a pair."""

    name: str
    title: str
    joint = False
    settings = ""

    def fit(
        self, graph: Graph, view: FittingView, relation: str, seed: int = 0, progress: Progress = SILENT
    ) -> _PairFeatures:
        """Fit on the training pairs; a training fact does not count for itself."""
        self._prepare(graph, view, relation)
        train = view.pairs(relation, "train")
        self._model = _Logistic()
        self._model.fit(self._features(train.head, train.tail, own=train.label.astype(np.int64)), train.label)
        return self

    def scores(self, head: np.ndarray, tail: np.ndarray, relation: str | None = None) -> np.ndarray:
        """Return a probability for each pair, float64 (M,)."""
        return self._model.scores(self._features(head, tail, own=np.zeros(len(head), np.int64)))

    @abstractmethod
    def _prepare(self, graph: Graph, view: FittingView, relation: str) -> None:
        """Keep what the features are read from."""

    @abstractmethod
    def _features(self, head: np.ndarray, tail: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Features (M, F); ``own`` (M,) is how many training facts each pair is itself."""


class Degree(_PairFeatures):
    """How often the head and the tail stand in training facts of the relation: log(1 + d_r(h)) and log(1 + d_r(t))."""

    name = "degree"
    title = "Degree"

    def _prepare(self, graph: Graph, view: FittingView, relation: str) -> None:
        facts = view.train_facts()
        chosen = facts.relation == view.relations.index(relation)
        self._heads = np.bincount(facts.head[chosen], minlength=graph.n_nodes)
        self._tails = np.bincount(facts.tail[chosen], minlength=graph.n_nodes)

    def _features(self, head: np.ndarray, tail: np.ndarray, own: np.ndarray) -> np.ndarray:
        counts = np.stack([self._heads[head] - own, self._tails[tail] - own], axis=1)
        result: np.ndarray = np.log1p(np.maximum(counts, 0))
        return result


class _Popularity(_PairFeatures):
    """One log count of the training facts, of any relation, that a term stands in."""

    def _prepare(self, graph: Graph, view: FittingView, relation: str) -> None:
        self._counts = known_facts(view.train_facts(), graph.n_nodes)

    def _features(self, head: np.ndarray, tail: np.ndarray, own: np.ndarray) -> np.ndarray:
        of_head, of_tail = (np.maximum(self._counts[ids] - own, 0) for ids in (head, tail))
        result: np.ndarray = np.log1p(self.popularity(of_head, of_tail)).reshape(-1, 1)
        return result

    @staticmethod
    @abstractmethod
    def popularity(of_head: np.ndarray, of_tail: np.ndarray) -> np.ndarray:
        """The count that is looked at, (M,)."""


class HeadPopularity(_Popularity):
    """Known facts of the head."""

    name = "popularity-head"
    title = "Popularity of the head"

    @staticmethod
    def popularity(of_head: np.ndarray, of_tail: np.ndarray) -> np.ndarray:
        """Known facts of the head."""
        return of_head


class TailPopularity(_Popularity):
    """Known facts of the tail."""

    name = "popularity-tail"
    title = "Popularity of the tail"

    @staticmethod
    def popularity(of_head: np.ndarray, of_tail: np.ndarray) -> np.ndarray:
        """Known facts of the tail."""
        return of_tail


class ProductPopularity(_Popularity):
    """Known facts of the head times those of the tail."""

    name = "popularity-product"
    title = "Popularity of head × tail"

    @staticmethod
    def popularity(of_head: np.ndarray, of_tail: np.ndarray) -> np.ndarray:
        """Return the product of the two numbers of known facts."""
        product: np.ndarray = of_head * of_tail
        return product


def known_facts(facts: Triples, n_nodes: int) -> np.ndarray:
    """How many facts, of any relation and on either side, each node stands in, int64 (V,)."""
    result: np.ndarray = np.bincount(np.concatenate([facts.head, facts.tail]), minlength=n_nodes).astype(np.int64)
    return result


class PairPpmi(_PairFeatures):
    """The pair's own PPMI: do the two co-occur more than chance?"""

    name = "ppmi"
    title = "PPMI"

    def _prepare(self, graph: Graph, view: FittingView, relation: str) -> None:
        self._ppmi = graph.ppmi()

    def _features(self, head: np.ndarray, tail: np.ndarray, own: np.ndarray) -> np.ndarray:
        return np.asarray(self._ppmi[head, tail], np.float64).reshape(-1, 1) if len(head) else np.empty((0, 1))


FLOOR_METHODS = (AlwaysPositive, Degree, HeadPopularity, TailPopularity, ProductPopularity, PairPpmi)
"""The floor's rows, in the order of a table."""
