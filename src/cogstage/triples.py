"""Triples (head, relation, tail) as numbers: which are known, and which types a relation usually joins.

Throughout, relations 0..R-1 are those of the data set and R..2R-1 their inverses: (t, r + R, h) restates (h, r, t).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

USUAL_SHARE = 0.01  # types are usual for a relation if at least this share of its facts has them


@dataclass(frozen=True)
class Triples:
    """Facts (head, relation, tail) as node ids; ``relation`` counts in the data set's ``relations``."""

    head: np.ndarray  # int32 (M,)
    relation: np.ndarray  # int16 (M,)
    tail: np.ndarray  # int32 (M,)

    def __len__(self) -> int:
        return len(self.head)

    @classmethod
    def join(cls, parts: Sequence[Triples]) -> Triples:
        """Several, one after the other."""
        if not parts:
            return cls(np.empty(0, np.int32), np.empty(0, np.int16), np.empty(0, np.int32))
        head, relation, tail = (
            np.concatenate([getattr(part, name) for part in parts]) for name in ("head", "relation", "tail")
        )
        return cls(head, relation, tail)

    def keys(self, nodes: int) -> np.ndarray:
        """One number per triple, (relation·V + head)·V + tail, int64 (M,): distinct, and ordered as the triples."""
        keys: np.ndarray = (self.relation.astype(np.int64) * nodes + self.head) * nodes + self.tail
        return keys


class TripleIndex:
    """An index of the known relations between pairs of nodes, including inverses.

    One row for each ordered pair that holds something, sorted by (first, second): the rows of node ``i`` are
    ``start[i]:start[i + 1]``, the second node of a row is ``other[row]``, the relations are ``table[row]`` and the
    cross-fitting fold is ``folds[row]``. The last row of ``table`` and ``folds`` stands for every pair that holds
    nothing. Kernels read these arrays directly.
    """

    def __init__(self, triples: Triples, relations: int, nodes: int, fold: np.ndarray | None = None) -> None:
        """``fold`` (M,) is the cross-fitting fold of each triple; all triples of two nodes must share it."""
        head, tail = triples.head.astype(np.int64), triples.tail.astype(np.int64)
        relation = triples.relation.astype(np.int64)
        keys, row = np.unique(np.concatenate([head * nodes + tail, tail * nodes + head]), return_inverse=True)
        row = row.ravel()
        self.relations, self.nodes = relations, nodes
        self.table = np.zeros((len(keys) + 1, 2 * relations), bool)  # (P + 1, 2R)
        self.table[row, np.concatenate([relation, relation + relations])] = True
        self.folds = np.full(len(keys) + 1, -1, np.int64)  # (P + 1,)
        if fold is not None:
            both = np.concatenate([fold, fold]).astype(np.int64)
            self.folds[row] = both
            if not np.array_equal(self.folds[row], both):
                raise ValueError("fold: facts between the same two nodes must be in the same fold")
        self.other = keys % nodes if nodes else keys  # (P,)
        self.start = np.searchsorted(keys, np.arange(nodes + 1, dtype=np.int64) * nodes)  # (V + 1,)
        self._keys = keys  # int64 (P,)

    def __len__(self) -> int:
        """Number of distinct triples, without the inverses that restate them."""
        return int(self.table[:, : self.relations].sum())

    def _rows(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """The row of each pair, the last one for pairs that hold nothing."""
        key = np.asarray(head, np.int64) * self.nodes + np.asarray(tail, np.int64)
        if not len(self._keys):
            return np.zeros(key.shape, np.int64)
        row = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        return np.where(self._keys[row] == key, row, len(self._keys))

    def relations_of(self, head: np.ndarray, tail: np.ndarray, hidden: int | None = None) -> np.ndarray:
        """Which relations each pair holds, but for triples of the fold ``hidden``: (...), (...) -> (..., 2R) bool."""
        row = self._rows(head, tail)
        known: np.ndarray = self.table[row]
        if hidden is not None:
            known &= (self.folds[row] != hidden)[..., None]
        return known

    def contains(
        self, head: np.ndarray, relation: np.ndarray, tail: np.ndarray, hidden: int | None = None
    ) -> np.ndarray:
        """Whether each triple is known, but for those of the fold ``hidden``; relations from R on are inverses."""
        row = self._rows(head, tail)
        known: np.ndarray = self.table[row, relation]
        return known if hidden is None else known & (self.folds[row] != hidden)

    def tails(self, relation: int, hidden: int | None = None) -> np.ndarray:
        """Tails of a relation's triples, as often as they occur, but for triples of the fold ``hidden``. (n,)."""
        tails: np.ndarray = self.other[self.table[:-1, relation] & (self.folds[:-1] != _fold(hidden))]
        return tails

    def heads_of(self, relation: int, tails: np.ndarray, hidden: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The heads of a relation's known triples with these tails: heads (n,), positions within ``tails`` (n,)."""
        inverse = (relation + self.relations) % (2 * self.relations)
        begin, length = self.start[tails], np.diff(self.start)[tails]
        position = np.repeat(np.arange(len(tails)), length)
        row = np.arange(len(position)) + np.repeat(begin - (np.cumsum(length) - length), length)
        known = self.table[row, inverse] & (self.folds[row] != _fold(hidden))
        return self.other[row[known]], position[known]

    def triples(self) -> Triples:
        """All triples, inverses read forward."""
        row, relation = np.nonzero(self.table[:-1, : self.relations])
        head = self._keys[row] // max(self.nodes, 1)
        return Triples(head.astype(np.int32), relation.astype(np.int16), self.other[row].astype(np.int32))

    def adding(self, triples: Triples) -> TripleIndex:
        """An index of these triples and further ones, without folds."""
        return TripleIndex(Triples.join([self.triples(), triples]), self.relations, self.nodes)

    def has_relation(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Whether each pair holds any relation in either direction."""
        return self._rows(head, tail) < len(self._keys)


def _fold(hidden: int | None) -> int:
    """The fold that is left out; no triple is of fold -2."""
    return -2 if hidden is None else hidden


class UsualTypes:
    """Which relations the types of two nodes allow, by the facts; a node without a type allows all."""

    def __init__(self, types: Sequence[str], facts: Triples, relations: int) -> None:
        names = sorted(set(types) - {""})
        number = {name: index for index, name in enumerate(names)} | {"": len(names)}
        kind = np.array([number[name] for name in types], np.int64)
        count = np.zeros((2 * relations, len(names) + 1, len(names) + 1))
        np.add.at(count, (facts.relation.astype(np.int64), kind[facts.head], kind[facts.tail]), 1)
        count[relations:] = count[:relations].transpose(0, 2, 1)
        total = count.sum(axis=(1, 2), keepdims=True)
        usual = (count >= USUAL_SHARE * total) & (count > 0)
        usual[:, -1, :] = True
        usual[:, :, -1] = True
        self._names = names
        self._head_share = count.sum(axis=2) / np.maximum(total[:, :, 0], 1)  # (2R, types + 1)
        self.kind = kind  # (V,)
        self.usual = np.ascontiguousarray(usual.transpose(1, 2, 0))  # (types + 1, types + 1, 2R)

    def allowed(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Whether each relation is usual between the types of each pair: (...), (...) -> (..., 2R) bool."""
        result: np.ndarray = self.usual[self.kind[head], self.kind[tail]]
        return result

    def of_heads(self, relation: int) -> dict[str, float]:
        """The types that usually stand at the head of a relation, each with its share of the facts, commonest first.

        Those of the tails are the types at the head of the inverse.
        """
        share = self._head_share[relation, : len(self._names)]
        order = np.argsort(-share, kind="stable")
        return {self._names[n]: float(share[n]) for n in order if share[n] and share[n] >= USUAL_SHARE}

    def kinds(self, names: Iterable[str]) -> np.ndarray:
        """The numbers of types in :attr:`kind`, and that of terms without a type."""
        return np.array([*(self._names.index(name) for name in names), len(self._names)], np.int64)

    def fit(self, head: int, relation: int, tail: int) -> bool | None:
        """Whether the types of a triple's ends are usual for its relation; None if one has no type."""
        untyped = len(self.usual) - 1
        if untyped in (self.kind[head], self.kind[tail]):
            return None
        return bool(self.usual[self.kind[head], self.kind[tail], relation])


def usual_types(types: Sequence[str], facts: Triples, relations: int) -> UsualTypes | None:
    """What the facts say of types, or None for a graph without types."""
    return UsualTypes(types, facts, relations) if any(types) else None
