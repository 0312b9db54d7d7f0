"""Rules shared by all kinds of negatives: which pairs are allowed, and one slot per positive."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cogstage.knowledge.located import Concepts

Ends = tuple[np.ndarray, np.ndarray]  # heads and tails, int32


class Rules:
    """Which pairs may be a negative of a split: unknown, between two concepts, and not used in another split."""

    def __init__(self, concepts: Concepts, known: np.ndarray) -> None:
        self._concepts = concepts
        self._of_node = concepts.of_node.tolist()
        self._known, self._known_set = known, set(known.tolist())
        self._owner: dict[int, list[int]] = {}  # pair of concepts -> the split that uses it, and how often

    def _number(self, head: int, tail: int) -> int:
        """The unordered pair of concepts, as :meth:`Concepts.pair` numbers them."""
        first, second = self._of_node[head], self._of_node[tail]
        low, high = (first, second) if first < second else (second, first)
        number: int = low * len(self._concepts.names) + high
        return number

    def unknown(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Whether no relation holds between each two nodes, and they are two concepts."""
        pair = self._concepts.pair(head, tail)
        unknown: np.ndarray = self._concepts.of_node[head] != self._concepts.of_node[tail]
        if len(self._known):
            rank = np.minimum(np.searchsorted(self._known, pair), len(self._known) - 1)
            unknown &= self._known[rank] != pair
        return unknown

    def take(self, head: int, tail: int, split: int) -> bool:
        """Use the pair as a negative of the split, if it may be one."""
        if self._of_node[head] == self._of_node[tail]:
            return False
        pair = self._number(head, tail)
        owner = self._owner.get(pair)
        if pair in self._known_set or (owner is not None and owner[0] != split):
            return False
        if owner is None:
            self._owner[pair] = [split, 1]
        else:
            owner[1] += 1
        return True

    def release(self, head: int, tail: int) -> None:
        """Free the pair, so that it can be sampled again."""
        pair = self._number(head, tail)
        self._owner[pair][1] -= 1
        if not self._owner[pair][1]:
            del self._owner[pair]


class Slots:
    """The negatives of one relation while they are drawn: one slot for each positive, in random order."""

    def __init__(
        self, head: np.ndarray, tail: np.ndarray, side: np.ndarray, rules: Rules, rng: np.random.Generator
    ) -> None:
        order = rng.permutation(len(head))
        self.head, self.tail, self.side = head[order], tail[order], side[order]  # of the positive, (n,)
        self.pair: list[tuple[int, int] | None] = [None] * len(order)  # the negative, if there is one
        self.filled = np.zeros(len(order), bool)
        self.rules = rules
        self._sides: list[int] = self.side.tolist()
        self._used: set[tuple[int, int, int]] = set()

    def put(self, row: int, head: int, tail: int) -> bool:
        """Let the pair be the negative of an empty slot; whether that could be."""
        key = (self._sides[row], head, tail)
        if key in self._used or not self.rules.take(head, tail, key[0]):
            return False
        self._used.add(key)
        self.pair[row] = (head, tail)
        self.filled[row] = True
        return True

    def clear(self, row: int) -> tuple[int, int]:
        """Empty a slot; the pair that it held."""
        pair = self.pair[row]
        assert pair is not None
        self._used.remove((self._sides[row], *pair))
        self.rules.release(*pair)
        self.pair[row] = None
        self.filled[row] = False
        return pair

    def empty(self, splits: Sequence[int] = (0, 1, 2)) -> np.ndarray:
        """The rows without a negative, of these splits."""
        return np.flatnonzero(~self.filled & np.isin(self.side, splits))

    def ends(self, split: int) -> Ends:
        """Heads and tails of a split's negatives, sorted."""
        pairs = sorted(pair for pair, side in zip(self.pair, self.side, strict=True) if pair and side == split)
        table = np.array(pairs, np.int32).reshape(-1, 2)
        return table[:, 0], table[:, 1]
