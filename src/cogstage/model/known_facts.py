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

from cogstage.triples import Triples


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
        # a row for each pair that holds a fact, in order of (head, tail), and one for all others
        self.table = np.zeros((len(keys) + 1, 2 * relations), bool)
        self.table[row, name] = True
        self.folds = np.full(len(keys) + 1, -1)
        self.folds[row] = np.concatenate([part, part])
        self.other = keys % terms
        self.start = np.searchsorted(keys, np.arange(terms + 1) * terms)  # where a head's rows begin
        self._terms, self._keys = terms, torch.from_numpy(keys)

    def of(self, head: Tensor, tail: Tensor, hidden: int | None = None) -> Tensor:
        """Whether pairs of nodes hold each relation, but for facts of the fold ``hidden``: (M,), (M,) -> (M, K)."""
        key = (head * self._terms + tail).cpu()
        place = torch.searchsorted(self._keys, key).clamp(max=max(len(self._keys) - 1, 0))
        found = self._keys[place] == key if len(self._keys) else torch.zeros(len(key), dtype=torch.bool)
        row = torch.where(found, place, len(self._keys)).numpy()
        known = self.table[row]
        if hidden is not None:
            known = known & (self.folds[row] != hidden)[:, None]
        return torch.from_numpy(known).to(head.device)


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
        self.kind, self.usual = kind, usual.transpose(1, 2, 0).copy()  # (V,), (types, types, K)

    def of(self, head: Tensor, tail: Tensor) -> Tensor:
        """Whether each relation is usual between pairs of nodes: (M,), (M,) -> (M, K)."""
        allowed = self.usual[self.kind[head.cpu().numpy()], self.kind[tail.cpu().numpy()]]
        return torch.from_numpy(allowed).to(head.device)
