"""Remove assumptions and decide again, for the measures of faithfulness."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cogstage.model.decision import Decision, PairView


class Removable(Protocol):
    """The assumptions of a batch of questions, which can be taken away. Arrays are (B, P)."""

    @property
    def head(self) -> np.ndarray:
        """Heads of the triples, node ids."""

    @property
    def relation(self) -> np.ndarray:
        """Relations of the triples, numbers below 2R."""

    @property
    def tail(self) -> np.ndarray:
        """Tails of the triples, node ids."""

    @property
    def score(self) -> np.ndarray:
        """What reasons *for* are ranked by; 0 or less is no reason for."""

    @property
    def share(self) -> np.ndarray:
        """Signed summands of the logit, 0 for what does not make the decision."""

    @property
    def recognised(self) -> np.ndarray:
        """Whether recognition says that the triple holds. bool."""

    def decide(self, keep: np.ndarray) -> np.ndarray:
        """The logits (B,) when only the assumptions in ``keep`` (B, P) are recognised."""

    def associations(self) -> tuple[np.ndarray, int]:
        """The associations that each assumption goes through (B, P, m), numbered from 0, and how many there are."""

    def decide_without_association(self, number: np.ndarray) -> np.ndarray:
        """The logits (B,) had one association per question not been recalled: weights are taken again."""


@dataclass(frozen=True)
class RemovableReasons:
    """The possible reasons of the default model."""

    view: PairView
    decision: Decision
    reasons: int  # n of the decision

    @property
    def _shape(self) -> tuple[int, int, int, int]:
        b, kinds, n_associations, relations = self.view.score.shape
        return b, kinds, n_associations, relations

    def _spread(self, values: np.ndarray) -> np.ndarray:
        """(B, 2, N) or (B, 2, N, K) -> (B, P)."""
        b = self._shape[0]
        wide = values if values.ndim == 4 else np.broadcast_to(values[..., None], self._shape)
        return np.ascontiguousarray(wide).reshape(b, -1)

    @property
    def head(self) -> np.ndarray:
        """Node ids (B, P): the question's head, or its association."""
        association, head = self.view.association, self.view.head
        return self._spread(np.stack([np.broadcast_to(head[:, None], association[:, 1].shape), association[:, 1]], 1))

    @property
    def tail(self) -> np.ndarray:
        """Node ids (B, P): the question's tail, or its association."""
        association, tail = self.view.association, self.view.tail
        return self._spread(np.stack([association[:, 0], np.broadcast_to(tail[:, None], association[:, 0].shape)], 1))

    @property
    def relation(self) -> np.ndarray:
        """Numbers below 2R (B, P); inverses are the second half."""
        return self._spread(np.broadcast_to(np.arange(self._shape[3]), self._shape))

    @property
    def score(self) -> np.ndarray:
        """c of the decision stage (B, P), above 0 for reasons for."""
        return self.decision.contribution

    @property
    def share(self) -> np.ndarray:
        """c of the strongest, 0 elsewhere."""
        score, decision, n = self.score, self.decision, self.reasons
        share = np.zeros_like(score)
        for positions, sign in ((decision.strongest_for, 1.0), (decision.strongest_against, -1.0)):
            chosen = positions[:, :n]
            kept = np.take_along_axis(score, chosen, 1)
            np.put_along_axis(share, chosen, np.where(sign * kept > 0, kept, 0.0), axis=1)
        return share

    @property
    def recognised(self) -> np.ndarray:
        """Where the score of recognition is above that of NA. bool (B, P)."""
        return self._spread(self.view.score > 0)

    def decide(self, keep: np.ndarray) -> np.ndarray:
        """The sum of the strongest that are left."""
        return self._logit(np.where(keep, self.score, 0.0))

    def _logit(self, contribution: np.ndarray) -> np.ndarray:
        n = min(self.reasons, contribution.shape[1])
        ordered = np.sort(contribution, axis=1)
        strongest = ordered[:, -n:].clip(min=0).sum(1) + ordered[:, :n].clip(max=0).sum(1)
        logit: np.ndarray = self.decision.baseline + self.decision.pair.sum(1) + strongest
        return logit

    def associations(self) -> tuple[np.ndarray, int]:
        """Associations of the tail first, then those of the head."""
        _, kinds, n_associations, _ = self._shape
        numbers = np.arange(kinds * n_associations).reshape(kinds, n_associations)
        return self._spread(np.broadcast_to(numbers, self._shape[:3]))[..., None], kinds * n_associations

    def decide_without_association(self, number: np.ndarray) -> np.ndarray:
        """The weights of the other associations of that end grow to sum to 1 again."""
        b, kinds, n_associations, _ = self._shape
        weight = self.decision.weight.astype(np.float64).reshape(b, kinds * n_associations)
        rows = np.arange(b)
        end = number // n_associations
        grown = np.where(
            np.arange(kinds * n_associations) // n_associations == end[:, None],
            1.0 / np.maximum(1.0 - weight[rows, number][:, None], 1e-12),
            1.0,
        )
        grown[rows, number] = 0.0
        return self._logit(self.score * self._spread(grown.reshape(b, kinds, n_associations)))
