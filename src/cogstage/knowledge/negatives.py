"""Negatives: pairs of a relation's own heads and tails that no knowledge base holds, one for each positive.

``uniform`` draws heads and tails alike (the paper's way). ``degree`` gives every head and every tail as many negatives
as it has positives in the same split, so that popularity says nothing. ``hard`` draws pairs that co-occur in the graph.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from cogstage.knowledge.dataset import SPLITS
from cogstage.knowledge.located import Concepts, Located

MODES = ("uniform", "degree", "hard")
TRIES = 200  # draws for one negative before all candidates are looked through
SCAN = 20_000_000  # candidate pairs that are looked through at most
Ends = tuple[np.ndarray, np.ndarray]  # heads and tails, int32


@dataclass
class Drawn:
    """The negatives of one mode by relation and split, and what could not be had."""

    ends: dict[tuple[str, str], Ends] = field(default_factory=dict)
    short: dict[tuple[str, str], int] = field(default_factory=dict)  # negatives that do not exist
    not_hard: dict[tuple[str, str], int] = field(default_factory=dict)  # drawn by degree for want of hard ones


class Rules:
    """Which pairs may be a negative of a split: unknown, between two concepts, and not used in another split."""

    def __init__(self, concepts: Concepts, known: np.ndarray) -> None:
        self._of_node = concepts.of_node.tolist()
        self._many = len(concepts.names)
        self._known = set(known.tolist())
        self._owner: dict[int, int] = {}  # unordered pair of concepts -> the split that has it as a negative

    def allows(self, head: int, tail: int, split: int) -> bool:
        """Whether the pair may be a negative of this split."""
        first, second = self._of_node[head], self._of_node[tail]
        if first == second:
            return False
        pair = first * self._many + second if first < second else second * self._many + first
        return pair not in self._known and self._owner.get(pair, split) == split

    def take(self, head: np.ndarray, tail: np.ndarray, split: int) -> None:
        """Keep these pairs for the split."""
        for h, t in zip(head.tolist(), tail.tolist(), strict=True):
            first, second = sorted((self._of_node[h], self._of_node[t]))
            self._owner[first * self._many + second] = split


def draw_negatives(
    mode: str,
    facts: Located,
    side: np.ndarray,
    known: np.ndarray,
    concepts: Concepts,
    counts: sp.csr_matrix,
    seed: int,
    split_kind: str = "random",
) -> Drawn:
    """One negative for each positive of every relation and split, as far as there are any.

    ``known`` are the numbers of all unordered pairs of concepts that any relation holds. A pair of concepts is a
    negative in one split only. Test and dev are served first, since they are the smaller.
    """
    rules = Rules(concepts, known)
    drawn = Drawn()
    for split in (2, 1, 0):
        for index, relation in enumerate(facts.relations):
            of_relation = facts.relation == index
            here = of_relation & (side == split)
            head, tail = facts.head[here], facts.tail[here]
            rng = np.random.default_rng([seed, zlib.crc32(f"{mode}/{relation}/{SPLITS[split]}".encode())])
            pool = _pools(facts, of_relation & (side >= 0), here, split_kind)
            task = _Task(head, tail, pool, lambda h, t, split=split: rules.allows(h, t, split), rng)  # type: ignore[misc]
            key = (relation, SPLITS[split])
            if mode == "degree":
                task.shuffle()
            elif mode == "hard":
                drawn.not_hard[key] = task.co_occurring(counts)
            else:
                task.fill(*pool)
            drawn.ends[key], drawn.short[key] = task.result()
            rules.take(*drawn.ends[key], split)
    return drawn


def _pools(facts: Located, of_relation: np.ndarray, here: np.ndarray, split_kind: str) -> Ends:
    """The relation's heads and tails; a cold split takes the unseen end from its own facts."""
    heads = facts.head[here if split_kind == "cold-head" else of_relation]
    tails = facts.tail[here if split_kind == "cold-tail" else of_relation]
    return np.unique(heads), np.unique(tails)


class _Task:
    """The negatives of one relation and split while they are being drawn."""

    def __init__(
        self,
        head: np.ndarray,
        tail: np.ndarray,
        pool: Ends,
        allows: Callable[[int, int], bool],
        rng: np.random.Generator,
    ) -> None:
        self._head, self._tail, self._pool, self._allows, self._rng = head, tail, pool, allows, rng
        self._pairs: dict[tuple[int, int], None] = {}

    def _add(self, head: int, tail: int) -> bool:
        """Take the pair if it may be taken and is not yet."""
        if (head, tail) in self._pairs or not self._allows(head, tail):
            return False
        self._pairs[head, tail] = None
        return True

    def result(self) -> tuple[Ends, int]:
        """Heads and tails, sorted, and how many are wanting."""
        pairs = np.array(sorted(self._pairs), np.int32).reshape(-1, 2)
        return (pairs[:, 0], pairs[:, 1]), len(self._head) - len(pairs)

    def fill(self, heads: np.ndarray, tails: np.ndarray) -> None:
        """Draw from two pools until there are enough; where that hardly ever hits, look through all pairs."""
        tries = TRIES
        while len(self._pairs) < len(self._head) and tries and len(heads) and len(tails):
            tries -= 1
            wanted = len(self._head) - len(self._pairs)
            for h, t in zip(
                self._rng.choice(heads, wanted).tolist(), self._rng.choice(tails, wanted).tolist(), strict=True
            ):
                self._add(h, t)
        self._look_through()

    def _look_through(self) -> None:
        heads, tails = self._pool
        if len(self._pairs) >= len(self._head) or len(heads) * len(tails) > SCAN:
            return
        for cell in self._rng.permutation(len(heads) * len(tails)).tolist():
            if len(self._pairs) >= len(self._head):
                return
            self._add(int(heads[cell // len(tails)]), int(tails[cell % len(tails)]))

    def shuffle(self) -> None:
        """Pair the positives' own heads with their own tails anew: every head and tail keeps its count.

        Pairs that may not stand are swapped with others at random; what cannot be placed so (a head that holds
        nearly every tail) is drawn by degree.
        """
        heads = self._head.tolist()
        tails = self._tail[self._rng.permutation(len(heads))].tolist()
        seen: set[tuple[int, int]] = set()
        bad: list[int] = []
        good = np.zeros(len(heads), bool)
        for row, pair in enumerate(zip(heads, tails, strict=True)):
            if pair in seen or not self._allows(*pair):
                bad.append(row)
            else:
                seen.add(pair)
                good[row] = True
        for row in bad:
            for other in self._rng.integers(len(heads), size=TRIES).tolist():
                if not good[other]:
                    continue
                mine, theirs = (heads[row], tails[other]), (heads[other], tails[row])
                if mine in seen or theirs in seen or mine == theirs:
                    continue
                if self._allows(*mine) and self._allows(*theirs):
                    seen.remove((heads[other], tails[other]))
                    seen.update((mine, theirs))
                    tails[row], tails[other] = tails[other], tails[row]
                    good[row] = True
                    break
        self._pairs = dict.fromkeys(pair for row, pair in enumerate(zip(heads, tails, strict=True)) if good[row])
        self.fill(self._head, self._tail)

    def co_occurring(self, counts: sp.csr_matrix) -> int:
        """For each positive a pair with its head, or else its tail, that co-occurs; returns how many had to be others.

        The free end is drawn by how often it stands in the relation's facts here, so that rare ends stay rare.
        """
        by_head, by_tail = _partners(counts, *self._pool, self._tail), _partners(counts, *self._pool[::-1], self._head)
        for h, t in zip(self._head.tolist(), self._tail.tolist(), strict=True):
            if not any(self._add(h, other) for other in by_head.draw(h, self._rng)):
                any(self._add(other, t) for other in by_tail.draw(t, self._rng))
        if len(self._pairs) < len(self._head):  # any other co-occurring pair of the relation's ends
            for cell in self._rng.permutation(len(by_head.other)).tolist():
                if len(self._pairs) >= len(self._head):
                    break
                self._add(int(by_head.end[cell]), int(by_head.other[cell]))
        hard = len(self._pairs)
        self.fill(self._head, self._tail)
        return len(self._pairs) - hard


@dataclass(frozen=True)
class _Partners:
    """The co-occurring partners of each node of one pool in the other, with the weight each is drawn by."""

    start: Mapping[int, tuple[int, int]]
    end: np.ndarray
    other: np.ndarray
    weight: np.ndarray

    def draw(self, node: int, rng: np.random.Generator) -> list[int]:
        """All partners of a node in a random order that favours the heavy ones (Efraimidis and Spirakis)."""
        first, last = self.start.get(node, (0, 0))
        key = np.log(rng.random(last - first)) / self.weight[first:last]
        drawn: list[int] = self.other[first:last][np.argsort(-key, kind="stable")].tolist()
        return drawn


def _partners(counts: sp.csr_matrix, ends: np.ndarray, others: np.ndarray, drawn: np.ndarray) -> _Partners:
    block = counts[ends][:, others].tocsr()
    block.sort_indices()
    weight = np.bincount(drawn, minlength=counts.shape[0])[others] + 0.5  # ends of other splits stay possible
    start = {
        int(node): (int(first), int(last))
        for node, first, last in zip(ends, block.indptr[:-1], block.indptr[1:], strict=True)
    }
    rows = np.repeat(ends, np.diff(block.indptr))
    return _Partners(start, rows, others[block.indices], weight[block.indices])
