"""Predictions of a trained network for pairs of nodes: one class per model, with the same methods."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol

import numpy as np
import torch

from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.model.fast.memory import trim
from cogstage.model.network import Answer, Network, PreparedRecognition
from cogstage.model.recognition import Knowledge, features
from cogstage.rationale.explain import ReasonArrays
from cogstage.rationale.removal import Removable, RemovableReasons
from cogstage.scratch import drop
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex, Triples, usual_types

NumberedVerdicts = Mapping[tuple[int, int, int], bool]  # (head, relation, tail) as numbers: right or wrong


class Predictor(Protocol):
    """What the estimator needs of a model."""

    def logits(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """Uncalibrated logits of pairs of nodes."""

    def reasons(self, head: np.ndarray, tail: np.ndarray, target: int, calibration: Calibration) -> ReasonArrays:
        """The reasons of pairs of nodes, with calibrated shares that add up to the calibrated logit."""

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
class StagedPredictor:
    """Predictions of the default model."""

    network: Network
    knowledge: Knowledge
    candidates: np.ndarray  # terms that may be associated
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @classmethod
    def create(
        cls,
        network: Network,
        counts: PairCounts,
        facts: Triples,
        types: Iterable[str],
        relations: int,
        order: PairOrder | None = None,
    ) -> StagedPredictor:
        """From a network and what it was trained with."""
        types = list(types)
        usual = usual_types(types, facts, relations)
        knowledge = Knowledge(counts, TripleIndex(facts, relations, len(types)), usual, order=order)
        return cls(network.eval(), knowledge, np.unique(np.concatenate([facts.head, facts.tail])).astype(np.int64))

    @cached_property
    def ready(self) -> PreparedRecognition:
        """Views and associations, computed when first asked for."""
        return self._prepare()

    def _prepare(self, *asked: torch.Tensor) -> PreparedRecognition:
        """Views and associations, as ordinary tensors: whoever asks first, their tables can be added to."""
        drop(*self.knowledge.counts.kernel)  # not needed until pairs are asked
        with torch.inference_mode(False):
            ready = self.network.ready(torch.from_numpy(self.candidates), self.knowledge.facts, None, asked or None)
        trim()  # one tower was for the views alone
        return ready

    def warm(self) -> None:
        """Compute the associations of all candidates in advance; less memory is needed if it is the first question."""
        candidates = torch.from_numpy(self.candidates)
        with self._lock:
            if "ready" not in self.__dict__:
                self.__dict__["ready"] = self._prepare(candidates, candidates)
                return
            for associations in (self.ready.like_head, self.ready.like_tail):
                associations.find(candidates)

    @torch.inference_mode()
    def answer(self, head: np.ndarray, tail: np.ndarray, target: int) -> Answer:
        """Everything behind the decisions on a batch of pairs."""
        ends = (torch.from_numpy(np.ascontiguousarray(nodes, dtype=np.int64)) for nodes in (head, tail))
        with self._lock:  # associations are kept in tables that threads share
            answer: Answer = self.network(*ends, target, self.ready, self.knowledge)
        return answer

    def logits(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """Uncalibrated logits of pairs of nodes, summed in double precision as in a record. float64 (B,)."""
        weighed, n = self.answer(head, tail, target).weighed, self.network.config.reasons
        best, worst = (
            weighed.contribution.gather(1, at[:, :n]).double()
            for at in (weighed.strongest_for, weighed.strongest_against)
        )
        start = weighed.baseline.detach().double() + weighed.pair.detach().double().sum(1)
        logit = start + best.clamp(min=0).sum(1) + worst.clamp(max=0).sum(1)
        result: np.ndarray = logit.numpy()
        return result

    def reasons(self, head: np.ndarray, tail: np.ndarray, target: int, calibration: Calibration) -> ReasonArrays:
        """The reasons of pairs of nodes."""
        answer = self.answer(head, tail, target)
        return ReasonArrays.from_answer(answer, self.network.config.reasons, calibration)

    def removable(self, head: np.ndarray, tail: np.ndarray, target: int) -> Removable:
        """The possible reasons, which can be taken away."""
        return RemovableReasons(self.answer(head, tail, target), self.network.config.reasons)

    def shuffled(self, seed: int) -> StagedPredictor:
        """The same model with the entries of every parameter of stages 2 and 3 shuffled."""
        network, generator = copy.deepcopy(self.network), torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for part in (network.recognition, network.decision):
                for parameter in part.parameters():
                    order = torch.randperm(parameter.numel(), generator=generator)
                    parameter.copy_(parameter.flatten()[order].reshape(parameter.shape))
        return StagedPredictor(network, self.knowledge, self.candidates)

    def uniform(self) -> StagedPredictor:
        """The same model with all associations of an end weighing the same."""
        network = copy.deepcopy(self.network)
        with torch.no_grad():
            network.decision.sharpness.fill_(-torch.inf)  # σ = 0
        return StagedPredictor(network, self.knowledge, self.candidates)

    @torch.inference_mode()
    def recognised(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """s_k of the pairs themselves, which no prediction uses. float64 (B,)."""
        left, right = (torch.from_numpy(np.asarray(nodes, np.int64)) for nodes in (head, tail))
        scores = self.network.recognition.scores(self.ready.views, left, right, *features(self.knowledge, head, tail))
        result: np.ndarray = scores[:, target].double().numpy()
        return result

    def revised(self, verdicts: NumberedVerdicts) -> StagedPredictor:
        """The same network with further known facts (right) and triples that are not recognised (wrong)."""
        facts, nodes = self.knowledge.facts, self.knowledge.facts.nodes
        wrong = [triple for triple, right in verdicts.items() if not right]
        right = [triple for triple, right in verdicts.items() if right]
        known = facts.adding(_triples(right, facts.relations)) if right else facts
        index = TripleIndex(_triples(wrong, facts.relations), facts.relations, nodes) if wrong else None
        revised = replace(self, knowledge=replace(self.knowledge, facts=known, wrong=index))
        revised.__dict__["ready"] = self.ready  # shared, with the lock over it
        return revised


def _triples(numbered: Iterable[tuple[int, int, int]], relations: int) -> Triples:
    """Numbered triples, inverses read forward."""
    forward = {(h, r, t) if r < relations else (t, r - relations, h) for h, r, t in numbered}
    head, relation, tail = np.array(sorted(forward), np.int64).reshape(-1, 3).T
    return Triples(head.astype(np.int32), relation.astype(np.int16), tail.astype(np.int32))
