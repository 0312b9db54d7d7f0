"""Pair counts of a block of rows: by source term, upper half only, several threads, bounded buffers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

from cogstage.errors import CogstageError
from cogstage.graph import kernels
from cogstage.graph.edges import Edges

compiled: Any = kernels  # numba's types are too imprecise for the type checker
SLOTS = 2 << 20  # space for the targets of one range of sources before they are moved together
SMALL = 50_000  # number of rows below which threads do not pay off


def n_threads() -> int:
    """Number of threads for counting: the cores that this process may use."""
    return max(1, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)


@dataclass(frozen=True)
class Rows:
    """``term[r]`` occurs in ``unit[r]`` of ``group[r]`` (a patient, or the document if there are none)."""

    group: np.ndarray  # uint64 (R,)
    unit: np.ndarray  # int64 (R,)
    term: np.ndarray  # int32 (R,)
    day: np.ndarray | None = None  # int32 (R,): days since 1970, where the order in time is counted

    def __len__(self) -> int:
        return len(self.term)

    @classmethod
    def from_columns(cls, group: np.ndarray, unit: np.ndarray, term: np.ndarray, day: np.ndarray | None = None) -> Rows:
        """Rows from any integer arrays of one length."""
        return cls(
            np.ascontiguousarray(group).astype(np.uint64, copy=False),
            np.ascontiguousarray(unit).astype(np.int64, copy=False),
            np.ascontiguousarray(term).astype(np.int32, copy=False),
            None if day is None else np.ascontiguousarray(day).astype(np.int32, copy=False),
        )

    @classmethod
    def join(cls, parts: list[Rows]) -> Rows:
        """The rows of all parts."""
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return cls(np.empty(0, np.uint64), np.empty(0, np.int64), np.empty(0, np.int32))
        days = [part.day for part in parts if part.day is not None]
        return cls(
            np.concatenate([part.group for part in parts]),
            np.concatenate([part.unit for part in parts]),
            np.concatenate([part.term for part in parts]),
            np.concatenate(days) if days else None,
        )

    def distinct(self) -> Rows:
        """The rows sorted by group, unit and term, each once; of several days the first."""
        if len(self) == 0:
            return self
        third = self.term
        if self.day is not None:  # sorted along with the term, behind it
            third = (self.term.astype(np.int64) << 32) | (self.day.astype(np.int64) + 2**31)
        group, unit, third, start = compiled.into_buckets(self.group, self.unit, third)
        if len(self) < SMALL:
            compiled.sort_buckets(group, unit, third, start, 0, len(start) - 1)
        else:
            cuts = np.searchsorted(start, np.linspace(0, len(self), n_threads() + 1)).tolist()
            cuts[0], cuts[-1] = 0, len(start) - 1
            with ThreadPoolExecutor(n_threads()) as pool:
                list(pool.map(lambda at: compiled.sort_buckets(group, unit, third, start, *at), pairwise(cuts)))
        if self.day is None:
            kept = compiled.drop_doubles(group, unit, third)
            return Rows(group[:kept], unit[:kept], third[:kept])
        kept = compiled.drop_later_days(group, unit, third)
        packed = third[:kept]
        term, day = (packed >> 32).astype(np.int32), ((packed & 0xFFFFFFFF) - 2**31).astype(np.int32)
        return Rows(group[:kept], unit[:kept], term, day)

    def take(self, kept: np.ndarray) -> Rows:
        """The rows at these places (numbers or a mask)."""
        day = None if self.day is None else self.day[kept]
        return Rows(self.group[kept], self.unit[kept], self.term[kept], day)

    def by_group(self) -> Rows:
        """The rows sorted by group alone."""
        return self.take(np.argsort(self.group))

    def renumbered(self, numbers: np.ndarray) -> Rows:
        """``numbers[term]`` as the term, negative ones left out; ascending numbers keep rows sorted and distinct."""
        rows = replace(self, term=numbers[self.term])
        kept = rows.term >= 0
        return rows if bool(kept.all()) else rows.take(kept)


@dataclass
class Census:
    """In how many units and groups each key was seen, and how many units and groups there are."""

    n_keys: int
    units: np.ndarray = field(init=False)
    groups: np.ndarray = field(init=False)
    n_units: int = 0
    n_groups: int = 0

    def __post_init__(self) -> None:
        self.units, self.groups = np.zeros(self.n_keys, np.int64), np.zeros(self.n_keys, np.int64)

    def add(self, rows: Rows) -> None:
        """Count sorted distinct rows whose groups no other rows have."""
        units, groups = compiled.count_nodes(rows.group, rows.unit, rows.term, self.n_keys)
        self.units += units
        self.groups += groups
        if len(rows):
            new_group = rows.group[1:] != rows.group[:-1]
            self.n_groups += 1 + int(new_group.sum())
            self.n_units += 1 + int((new_group | (rows.unit[1:] != rows.unit[:-1])).sum())

    def join(self, other: Census) -> None:
        """Add what was counted elsewhere, over other groups."""
        self.units += other.units
        self.groups += other.groups
        self.n_units += other.n_units
        self.n_groups += other.n_groups


class Counter:
    """Counts the pairs of sorted distinct rows, for any range of source terms.

    For each source the units that hold it are walked and the terms behind it are added up in a dense array that fits
    the cache, so nothing is sorted and no pair is written twice. ``lag`` asks for the order in time as well, of terms
    that a group first has at most so many days apart; the rows must have days.
    """

    def __init__(
        self,
        rows: Rows,
        n_terms: int,
        with_groups: bool = False,
        threads: int | None = None,
        lag: int | None = None,
    ) -> None:
        if len(rows) >= 2**31:
            raise CogstageError("a block of rows is too large to count at once; lower `memory`")
        self.rows, self.n_terms, self.with_groups, self.lag = rows, n_terms, with_groups or lag is not None, lag
        self.threads = 1 if threads is None and len(rows) < SMALL else threads or n_threads()
        self._places = compiled.by_term(rows.group, rows.unit, rows.term, n_terms)
        most = compiled.most_targets(*self._places[:3], n_terms)
        self.filled = np.concatenate([[0], np.cumsum(most)])  # (V + 1,): upper bound of the pairs before each source
        self._days = np.empty(0, np.int32)
        if lag is not None and rows.day is not None:
            self._days = compiled.first_days(rows.group, rows.term, rows.day, n_terms)

    def count(self, first: int, last: int, buffers: list[np.ndarray]) -> np.ndarray:
        """Write targets, counts (groups, order) of the sources first ... last to the front of the buffers, all int32.

        Returns the number of targets of each source; targets are in order of source, ascending.
        """
        slot = self.filled[first : last + 1] - self.filled[first]
        n_targets = np.zeros(last - first, np.int64)
        pointer, begin, end, owner = self._places

        def work(thread: int) -> None:
            arguments = (first + thread, last, self.threads, first, self.rows.term, pointer, begin, end)
            if self.lag is not None:
                compiled.pairs_in_order(*arguments, owner, self._days, self.lag, slot, *buffers, n_targets)
            elif self.with_groups:
                compiled.pairs_by_group(*arguments, owner, slot, *buffers, n_targets)
            else:
                compiled.pairs_by_unit(*arguments, slot, *buffers, n_targets)

        columns = [*buffers[:3], *buffers[3].T] if self.lag is not None else buffers
        if self.threads == 1:
            work(0)
            for column in columns:
                compiled.close_ranks(slot, n_targets, column)
            return n_targets
        with ThreadPoolExecutor(self.threads) as pool:
            list(pool.map(work, range(self.threads)))
            list(pool.map(lambda column: compiled.close_ranks(slot, n_targets, column), columns))
        return n_targets

    def ranges(self, slots: int = SLOTS) -> Iterator[tuple[int, int]]:
        """Ranges of sources whose pairs fit ``slots``, or single sources."""
        first = 0
        while first < self.n_terms:
            last = int(np.searchsorted(self.filled, self.filled[first] + slots, side="right")) - 1
            last = max(first + 1, min(last, self.n_terms))
            yield first, last
            first = last

    def buffers(self, slots: int) -> list[np.ndarray]:
        """Arrays for that many pairs."""
        columns = [np.empty(slots, np.int32) for _ in range(3 if self.with_groups else 2)]
        return columns if self.lag is None else [*columns, np.empty((slots, 3), np.int32)]

    def edges(self, slots: int = SLOTS) -> Iterator[Edges]:
        """All pairs, sorted, a range of sources at a time."""
        slots = max(slots, int(np.diff(self.filled).max(initial=1)))
        buffers = self.buffers(slots)
        for first, last in self.ranges(slots):
            n_targets = self.count(first, last, buffers)
            source = np.repeat(np.arange(first, last, dtype=np.int32), n_targets)
            target, *counts = (buffer[: len(source)] for buffer in buffers[:3])
            order = None if self.lag is None else buffers[3][: len(source)].copy()
            count, groups = counts[0].astype(np.int64), counts[1].astype(np.int64) if len(counts) > 1 else None
            yield Edges(source, target.copy(), count, groups, order)


def count_pairs(unit: np.ndarray, term: np.ndarray, n_terms: int, threads: int | None = None) -> sp.csr_matrix:
    """Pairs of terms by the number of units that hold both, from arrays in memory: (V, V), upper half, int32."""
    counter = Counter(Rows.from_columns(unit, np.zeros(len(unit), np.int64), term).distinct(), n_terms, threads=threads)
    buffers = counter.buffers(int(counter.filled[-1]))  # pages that stay empty are never touched
    n_targets = counter.count(0, n_terms, buffers)
    pointer = np.concatenate([[0], np.cumsum(n_targets)])
    matrix = sp.csr_matrix((n_terms, n_terms), dtype=np.int32)
    matrix.indices, matrix.data = (buffer[: pointer[-1]] for buffer in buffers)
    matrix.indptr = pointer.astype(np.int32 if pointer[-1] < 2**31 else np.int64)
    matrix.has_sorted_indices = matrix.has_canonical_format = True
    return matrix
