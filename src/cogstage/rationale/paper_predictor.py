"""Predictions of the published model, with the interface of :class:`cogstage.rationale.predictor.DefaultPredictor`."""

from __future__ import annotations

import copy
import threading
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from torch import Tensor, nn

from cogstage.errors import UsageError
from cogstage.model.paper import Assumptions, PaperNetwork
from cogstage.rationale.explain import EndArrays, ReasonArrays
from cogstage.rationale.predictor import NumberedVerdicts
from cogstage.rationale.removal import Removable
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex, Triples

SHOWN = 10  # triples shown per pair, by the paper's rationale score; the others go into the rest


@dataclass(frozen=True)
class PaperPredictor:
    """One published network per target relation."""

    networks: nn.ModuleDict  # by the number of the target
    facts: TripleIndex
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    @classmethod
    def create(cls, networks: nn.ModuleDict, facts: Triples, terms: int, relations: int) -> PaperPredictor:
        """From networks and the training facts."""
        return cls(networks.eval(), TripleIndex(facts, relations, terms))

    def _network(self, target: int) -> PaperNetwork:
        network = self.networks[str(target)]
        assert isinstance(network, PaperNetwork)
        return network

    @torch.inference_mode()
    def assumptions(self, head: np.ndarray, tail: np.ndarray, target: int) -> Assumptions:
        """Everything behind the decisions on a batch of pairs."""
        with self._lock:
            made: Assumptions = self._network(target)(_ids(head), _ids(tail))
        return made

    def logits(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """Uncalibrated logits of pairs of nodes. float64 (B,)."""
        logit: np.ndarray = self.assumptions(head, tail, target).logit.double().numpy()
        return logit

    def view(self, head: np.ndarray, tail: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The pairs themselves: each relation has a network of its own, which sees them in its own way."""
        return head, tail

    def profile_logits(self, view: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
        """Uncalibrated logits of all target relations, one network each. float64 (B, Q)."""
        return np.stack([self.logits(*view, int(target)) for target in self.networks], 1)

    @torch.inference_mode()
    def reasons(self, view: tuple[np.ndarray, np.ndarray], target: int, calibration: Calibration) -> ReasonArrays:
        """The triples of highest rationale score p_ij·p(k|i,j); share = p_ij·p(k|i,j)·W_r·e_ij.

        ``effect`` is that of removing the triple's pair of associations, with the attention taken again.
        """
        head, tail = view
        made, network = self.assumptions(head, tail, target), self._network(target)
        attention, value = made.attention.double().numpy(), made.value.double().numpy()
        p = made.relation_probability.double().numpy()  # (B, P, K)
        batch, _, relations = p.shape
        score = (attention[:, :, None] * p).reshape(batch, -1)
        top = np.argsort(-score, axis=1, kind="stable")[:, :SHOWN]
        pair, relation = np.divmod(top, relations)
        rows = np.arange(batch)[:, None]
        share = np.where(score[rows, top] > 0, score[rows, top] * value[rows, pair], 0.0)
        logit, baseline = made.logit.double().numpy(), float(network.decision.bias.double())
        weight = attention[rows, pair]
        left = np.maximum(1.0 - weight, 1e-12)
        without = baseline + (logit[:, None] - baseline - weight * value[rows, pair]) / left
        i, j = made.left.numpy()[rows, pair], made.right.numpy()[rows, pair]
        ends = [self._end(network, question, term) for question, term in ((head, i), (tail, j))]
        slope = calibration.slope
        known = self.facts.contains(i, relation, j)
        return ReasonArrays(
            i,
            relation,
            j,
            slope * share,
            slope * (without - logit[:, None]),
            p[rows, pair, relation],
            known,
            ends[0],
            ends[1],
            float(calibration.logits(np.array(baseline))),
            calibration.logits(logit),
        )

    def _end(self, network: PaperNetwork, question: np.ndarray, term: np.ndarray) -> EndArrays:
        """p(association | target) and its rank among the candidates; rank 0 for the term in question itself."""
        recalled = network.recalled(_ids(question)).double().numpy()  # (B, C)
        candidates = network.candidates.numpy()
        at = np.searchsorted(candidates, term)
        probability = np.take_along_axis(recalled, at, 1)
        rank = (recalled[:, None, :] > probability[:, :, None]).sum(2) + 1
        return EndArrays(probability, probability, np.where(term == question[:, None], 0, rank))

    @torch.inference_mode()
    def recognised(self, head: np.ndarray, tail: np.ndarray, target: int) -> np.ndarray:
        """s_r - s_NA of the pairs themselves. float64 (B,)."""
        network = self._network(target)
        scores = network.scores(_ids(head), _ids(tail))
        result: np.ndarray = (scores[:, target] - scores[:, -1]).double().numpy()
        return result

    def removable(self, head: np.ndarray, tail: np.ndarray, target: int) -> Removable:
        """The assumptions, which can be taken away: attention is taken again over those that are left."""
        made = self.assumptions(head, tail, target)
        return RemovableAssumptions(made, float(self._network(target).decision.bias.detach()))

    def shuffled(self, seed: int) -> PaperPredictor:
        """The same model with the entries of every parameter of stages 2 and 3 shuffled."""
        networks, generator = copy.deepcopy(self.networks), torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for name, parameter in networks.named_parameters():
                if not name.endswith((".term", ".context")):
                    order = torch.randperm(parameter.numel(), generator=generator)
                    parameter.copy_(parameter.flatten()[order].reshape(parameter.shape))
        return PaperPredictor(networks, self.facts)

    def uniform(self) -> PaperPredictor:
        """The same model with uniform attention."""
        networks = copy.deepcopy(self.networks)
        with torch.no_grad():
            for network in networks.values():
                assert isinstance(network, PaperNetwork)
                network.v.weight.zero_()
        return PaperPredictor(networks, self.facts)

    def warm(self) -> None:
        """Nothing to do: the tables are built with the network."""

    def revised(self, verdicts: NumberedVerdicts) -> PaperPredictor:
        """Not supported by the published model."""
        raise UsageError("what-if questions and corrections need the default model, not the published one")


@dataclass(frozen=True)
class RemovableAssumptions:
    """The pairs of associations of the published model, each with its most probable relation."""

    made: Assumptions
    bias: float

    @cached_property
    def _best(self) -> tuple[np.ndarray, np.ndarray]:
        value, index = self.made.relation_probability.max(2)
        return value.double().numpy(), index.numpy()

    @property
    def head(self) -> np.ndarray:
        """Term i of each assumption, recalled for the head. int64 (B, P)."""
        return _array(self.made.left)

    @property
    def tail(self) -> np.ndarray:
        """Term j of each assumption, recalled for the tail. int64 (B, P)."""
        return _array(self.made.right)

    @property
    def relation(self) -> np.ndarray:
        """The most probable relation of each pair."""
        return self._best[1]

    @property
    def score(self) -> np.ndarray:
        """p_ij·max_k p(k|i,j)."""
        score: np.ndarray = _array(self.made.attention.double()) * self._best[0]
        return score

    @property
    def share(self) -> np.ndarray:
        """p_ij·W_r·e_ij."""
        return _array((self.made.attention * self.made.value).double())

    @property
    def recognised(self) -> np.ndarray:
        """Whether any relation beats NA."""
        recognised: np.ndarray = self._best[0] > 0
        return recognised

    def decide(self, keep: np.ndarray) -> np.ndarray:
        """The attention of what is left is taken again."""
        weight = _array(self.made.attention.double()) * keep
        total = weight.sum(1)
        mean = (weight * _array(self.made.value.double())).sum(1) / np.maximum(total, 1e-30)
        logit: np.ndarray = self.bias + np.where(total > 0, mean, 0.0)
        return logit

    def associations(self) -> tuple[np.ndarray, int]:
        """That of the head and that of the tail; the tail's have the higher numbers."""
        numbers = [np.stack([np.unique(row, return_inverse=True)[1] for row in end]) for end in (self.head, self.tail)]
        n_heads, n_tails = (int(number.max()) + 1 for number in numbers)
        return np.stack([numbers[0], numbers[1] + n_heads], 2), n_heads + n_tails

    def decide_without_association(self, number: np.ndarray) -> np.ndarray:
        """All pairs through that association are gone."""
        return self.decide((self.associations()[0] != number[:, None, None]).all(2))


def _ids(nodes: np.ndarray) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(nodes, dtype=np.int64))


def _array(tensor: Tensor) -> np.ndarray:
    array: np.ndarray = tensor.numpy()
    return array
