"""Predictions of a trained network for pairs of nodes: one class per model, with the same methods."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.model.decision import Decision, PairView, decide
from cogstage.model.network import Network, PreparedNetwork
from cogstage.model.recognition import Knowledge
from cogstage.rationale.explain import ReasonArrays
from cogstage.rationale.removal import Removable, RemovableReasons
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex, Triples, usual_types

NumberedVerdicts = Mapping[tuple[int, int, int], bool]  # (head, relation, tail) as numbers: right or wrong


class Predictor(Protocol):
    """What the estimator needs of a model."""

    def logits(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """Uncalibrated logits of pairs of nodes."""

    def view(self, head: np.ndarray, tail: np.ndarray) -> Any:
        """What is seen of pairs of nodes, once for all relations."""

    def profile_logits(self, view: Any) -> np.ndarray:
        """Uncalibrated logits of all target relations (B, Q)."""

    def reasons(self, view: Any, target: int, calibration: Calibration) -> ReasonArrays:
        """The reasons of pairs, with calibrated shares that add up to the calibrated logit."""

    def recognised(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """What stage 2 makes of the pairs themselves: the relation's score above NA."""

    def removable(self, head: np.ndarray, tail: np.ndarray, target: int) -> Removable:
        """The assumptions of pairs of nodes, which can be taken away."""

    def shuffled(self, seed: int) -> Predictor:
        """A control: the same model with the entries of every parameter of stages 2 and 3 shuffled."""

    def uniform(self) -> Predictor:
        """A control: the same model with all associations of an end weighing the same."""

    def warm(self) -> None:
        """Compute in advance what predictions need."""

    def revised(self, verdicts: NumberedVerdicts) -> Predictor:
        """The same model with some triples marked right or wrong."""


@dataclass(frozen=True)
class DefaultPredictor:
    """Predictions of the default model."""

    network: Network
    knowledge: Knowledge
    candidates: np.ndarray  # terms that may be associated
    _lock: Any = field(default_factory=threading.Lock, repr=False, compare=False)

    @classmethod
    def create(
        cls,
        network: Network,
        counts: PairCounts,
        facts: Triples,
        types: Iterable[str],
        relations: int,
        order: PairOrder | None = None,
    ) -> DefaultPredictor:
        """From a network and what it was trained with."""
        types = list(types)
        usual = usual_types(types, facts, relations)
        knowledge = Knowledge(counts, TripleIndex(facts, relations, len(types)), usual, order=order)
        return cls(network, knowledge, np.unique(np.concatenate([facts.head, facts.tail])).astype(np.int64))

    @cached_property
    def prepared(self) -> PreparedNetwork:
        """Towers and associations, computed when first asked for."""
        own = self.network
        return PreparedNetwork(own.config, own.term, own.fact, own.recognition, self.candidates, self.knowledge)

    def warm(self) -> None:
        """Compute the associations of all candidates in advance."""
        with self._lock:
            self.prepared.warm(self.candidates)

    def view(self, head: np.ndarray, tail: np.ndarray) -> PairView:
        """What is seen of pairs, whichever relation is asked."""
        with self._lock:  # two threads would prepare twice
            prepared = self.prepared
        return prepared.view(np.asarray(head, np.int64), np.asarray(tail, np.int64), self.knowledge)

    def decision(self, view: PairView, target: int) -> Decision:
        """The decision of a relation on pairs that were viewed."""
        return decide(self.network.decisions[target], view, self.network.config.reasons)

    def logits(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """Uncalibrated logits of pairs of nodes. float64 (B,)."""
        return self.decision(self.view(head, tail), target).logit

    def profile_logits(self, view: PairView) -> np.ndarray:
        """Uncalibrated logits of all target relations. float64 (B, Q)."""
        return np.stack([self.decision(view, target).logit for target in self.network.targets], 1)

    def reasons(self, view: PairView, target: int, calibration: Calibration) -> ReasonArrays:
        """The reasons of pairs."""
        return ReasonArrays.from_decision(view, self.decision(view, target), self.network.config.reasons, calibration)

    def removable(self, head: np.ndarray, tail: np.ndarray, target: int) -> Removable:
        """The possible reasons, which can be taken away."""
        view = self.view(head, tail)
        return RemovableReasons(view, self.decision(view, target), self.network.config.reasons)

    def shuffled(self, seed: int) -> DefaultPredictor:
        """The same model with the entries of every array of stages 2 and 3 shuffled."""
        rng = np.random.default_rng(seed)
        arrays = {
            name: value if name.startswith("recall.") else rng.permutation(value.ravel()).reshape(value.shape)
            for name, value in self.network.arrays().items()
        }
        network = Network.from_arrays(self.network.config, self.network.targets, arrays)
        return DefaultPredictor(network, self.knowledge, self.candidates)

    def uniform(self) -> DefaultPredictor:
        """The same model with all associations of an end weighing the same."""
        equal = {
            target: replace(weights, sharpness=np.full_like(weights.sharpness, -np.inf))  # σ = 0
            for target, weights in self.network.decisions.items()
        }
        return DefaultPredictor(replace(self.network, decisions=equal), self.knowledge, self.candidates)

    def recognised(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """r_k of the pairs themselves, which no prediction uses. float64 (B,)."""
        head, tail = np.asarray(head, np.int64), np.asarray(tail, np.int64)
        scores = self.prepared.recognition.scores(head, tail[:, None], self.knowledge)
        result: np.ndarray = scores[:, 0, target].astype(np.float64)
        return result

    def revised(self, verdicts: NumberedVerdicts) -> DefaultPredictor:
        """The same network with further known facts (right) and triples that are not recognised (wrong).

        Mean scores stay those of the training facts.
        """
        facts, nodes = self.knowledge.facts, self.knowledge.facts.nodes
        wrong = [triple for triple, right in verdicts.items() if not right]
        right = [triple for triple, right in verdicts.items() if right]
        known = facts.adding(_triples(right, facts.relations)) if right else facts
        index = TripleIndex(_triples(wrong, facts.relations), facts.relations, nodes) if wrong else None
        revised = replace(self, knowledge=replace(self.knowledge, facts=known, wrong=index))
        revised.__dict__["prepared"] = self.prepared
        return revised


def _triples(numbered: Iterable[tuple[int, int, int]], relations: int) -> Triples:
    """Numbered triples, inverses read forward."""
    forward = {(h, r, t) if r < relations else (t, r - relations, h) for h, r, t in numbered}
    head, relation, tail = np.array(sorted(forward), np.int64).reshape(-1, 3).T
    return Triples(head.astype(np.int32), relation.astype(np.int16), tail.astype(np.int32))
