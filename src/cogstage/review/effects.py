"""How a verdict on an assumption changes a decision, for all assumptions of a batch of pairs at once.

A decision adds the n strongest reasons for and the n strongest against. A triple that is marked wrong leaves this sum,
and the next reason takes its place. A triple that is marked right is a known fact from then on: its score is the
largest one, its value has the weight u of a known fact, and it may displace a weaker reason. Both changes are exact;
no prediction is repeated.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogstage.model.decision import Decision, DecisionWeights, PairView, decide
from cogstage.model.recognition import CUT, Recognition, phi
from cogstage.training.calibration import Calibration, sigmoid


@dataclass(frozen=True)
class Effects:
    """Changes of calibrated probabilities (B, M), by position as in :attr:`Decision.contribution`."""

    right: np.ndarray  # the assumption is marked right
    wrong: np.ndarray  # the assumption is marked wrong


def lift_of_facts(recognition: Recognition, view: PairView) -> np.ndarray:
    """r̂ that each triple of a view has once it is a known fact. (B, 2, N, 2R)"""
    kinds = []
    for kind, node in enumerate((view.head, view.tail)):
        other = view.association[:, kind]
        score = np.full(view.score[:, kind].shape, CUT, view.score.dtype)
        lifted = recognition.lift(node, other, score)
        kinds.append(np.roll(lifted, recognition.relations, 2) if kind else lifted)  # (i, k, t) is (t, k⁻¹, i)
    return np.stack(kinds, 1)


def effects(
    weights: DecisionWeights, view: PairView, lifted: np.ndarray, reasons: int, calibration: Calibration
) -> Effects:
    """The effects of both verdicts on one target relation; ``lifted`` is that of :func:`lift_of_facts`."""
    decision = decide(weights, view, reasons)
    value = phi(lifted) * weights.fact
    as_fact = (np.exp(weights.scale)[:, None] * decision.weight)[..., None] * value
    right, wrong = _sum_changes(decision, as_fact.reshape(decision.contribution.shape).astype(np.float64), reasons)
    now = sigmoid(calibration.logits(decision.logit))[:, None]
    logit = decision.logit[:, None]
    return Effects(*(sigmoid(calibration.logits(logit + change)) - now for change in (right, wrong)))


def _sum_changes(decision: Decision, as_fact: np.ndarray, reasons: int) -> tuple[np.ndarray, np.ndarray]:
    """Changes of the logit if each triple is marked right, and if it is marked wrong. (B, M)"""
    right, wrong = np.zeros_like(as_fact), np.zeros_like(as_fact)
    for positions, sign in ((decision.strongest_for, 1.0), (decision.strongest_against, -1.0)):
        own = (sign * decision.contribution).clip(min=0)
        strongest = np.take_along_axis(own, positions, 1)
        strongest = np.pad(strongest, ((0, 0), (0, reasons + 1 - strongest.shape[1])))
        counts = np.zeros(own.shape, bool)
        np.put_along_axis(counts, positions[:, :reasons], True, 1)
        following, last = strongest[:, reasons:], strongest[:, reasons - 1 : reasons]
        removal = np.where(counts, following - own, 0.0)
        entry = (sign * as_fact - np.where(counts, following, last)).clip(min=0)
        wrong += sign * removal
        right += sign * (removal + entry)
    return right, wrong
