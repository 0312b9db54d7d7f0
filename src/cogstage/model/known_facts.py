"""Training facts as evidence within assumptions: a pair that is known to hold a relation is recognised as such,
and a relation is looked for only between types that it usually joins.

In training a target's own fold of the facts is hidden, so that stage 3 sees as much of them as it will in prediction;
the target itself is masked always.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from cogstage.knowledge.dataset import Triples


class KnownFacts:
    """The relations that each pair of terms is known to hold, inverses included."""

    def __init__(self, facts: Triples, relations: int, terms: int, fold: np.ndarray | None = None) -> None:
        """``fold`` (F,) is the part that each fact belongs to."""
        head, tail = facts.head.astype(np.int64), facts.tail.astype(np.int64)
        key = np.concatenate([head * terms + tail, tail * terms + head])
        relation = facts.relation.astype(np.int64)
        name = np.concatenate([relation, relation + relations])
        part = np.zeros(len(head), np.int64) if fold is None else fold
        keys, row = np.unique(key, return_inverse=True)
        table = np.zeros((len(keys) + 1, 2 * relations), bool)  # the last row is that of a pair without facts
        table[row, name] = True
        folds = np.full(len(keys) + 1, -1)
        folds[row] = np.concatenate([part, part])
        self._terms = terms
        self._keys, self._table, self._folds = (torch.from_numpy(x) for x in (keys, table, folds))

    def of(self, head: Tensor, tail: Tensor, hidden: int | None = None) -> Tensor:
        """Whether pairs of nodes hold each relation, but for facts of the fold ``hidden``: (M,), (M,) -> (M, K)."""
        key = (head * self._terms + tail).cpu()
        place = torch.searchsorted(self._keys, key).clamp(max=max(len(self._keys) - 1, 0))
        found = self._keys[place] == key if len(self._keys) else torch.zeros(len(key), dtype=torch.bool)
        row = torch.where(found, place, len(self._keys))
        known = self._table[row]
        if hidden is not None:
            known = known & (self._folds[row] != hidden)[:, None]
        return known.to(head.device)


USUAL_SHARE = 0.01  # two types are usual for a relation if at least this share of its training facts has them


class UsualTypes:
    """Which relations the types of two terms allow, by the training facts; an unknown type allows all."""

    def __init__(self, types: Sequence[str], facts: Triples, relations: int) -> None:
        names = sorted(set(types) - {""})
        number = {name: place for place, name in enumerate(names)} | {"": len(names)}
        kind = np.array([number[name] for name in types], np.int64)
        count = np.zeros((2 * relations, len(names) + 1, len(names) + 1))
        relation = facts.relation.astype(np.int64)
        np.add.at(count, (relation, kind[facts.head], kind[facts.tail]), 1)
        count[relations:] = count[:relations].transpose(0, 2, 1)
        total = count.sum(axis=(1, 2), keepdims=True)
        usual = count >= USUAL_SHARE * np.maximum(total, 1)
        usual &= count > 0
        usual[:, -1, :] = True
        usual[:, :, -1] = True
        self._kind, self._usual = torch.from_numpy(kind), torch.from_numpy(usual.transpose(1, 2, 0).copy())

    def of(self, head: Tensor, tail: Tensor) -> Tensor:
        """Whether each relation is usual between pairs of nodes: (M,), (M,) -> (M, K)."""
        return self._usual[self._kind[head.cpu()], self._kind[tail.cpu()]].to(head.device)
