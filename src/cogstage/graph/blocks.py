"""Counting what the runs hold, in blocks of groups that fit the memory ceiling; the same graph whatever the ceiling."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from cogstage.graph import kernels
from cogstage.graph.counting import Counter, Rows
from cogstage.graph.edges import Edges
from cogstage.graph.options import BuildOptions
from cogstage.graph.privacy import bounded_edges
from cogstage.graph.runs import Run, WorkFolder, merge_blocks
from cogstage.graph.units import Keys
from cogstage.progress import SILENT, Progress

BYTES_A_ROW = 80  # a row as read, as sorted, as gathered by term, and what the sorting holds in between
SHARE = 0.6  # of the ceiling goes to a block; the rest is the program itself, buffers and what Arrow holds


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
        units, groups = kernels.count_nodes(rows.group, rows.unit, rows.term, self.n_keys)
        self.units += units
        self.groups += groups
        if len(rows):
            new_group = rows.group[1:] != rows.group[:-1]
            self.n_groups += 1 + int(new_group.sum())
            self.n_units += 1 + int((new_group | (rows.unit[1:] != rows.unit[:-1])).sum())


def choose_nodes(keys: list[str], census: Census, options: BuildOptions) -> tuple[np.ndarray, np.ndarray]:
    """Which keys become nodes, sorted by key, and the node of each key (-1: none)."""
    count = census.groups if options.counts_groups else census.units
    kept = count >= options.min_count
    if options.private is None:
        kept &= census.groups >= options.suppress_below
    chosen = np.array(sorted(np.flatnonzero(kept).tolist(), key=keys.__getitem__), np.int64)
    node = np.full(len(keys), -1, np.int32)
    node[chosen] = np.arange(len(chosen), dtype=np.int32)
    return chosen, node


def count_rows(
    rows: Rows, n_nodes: int, options: BuildOptions, seed: int, threads: int | None = None
) -> Iterator[Edges]:
    """The sorted edges of rows that hold whole groups; terms are nodes already, rows sorted and distinct."""
    if options.private is not None:
        yield bounded_edges(rows, options.private.pairs, seed)
        return
    with_groups = options.counts_groups or options.suppress_below > 0
    for edges in Counter(rows, n_nodes, with_groups, threads).edges():
        if options.counts_groups and edges.groups is not None:
            edges = Edges(edges.source, edges.target, edges.groups, edges.groups)
        yield edges


class BlockCounter:
    """Counts the runs of a work folder under a memory ceiling."""

    def __init__(
        self, work: WorkFolder, keys: Keys, options: BuildOptions, memory: int, seed: int, progress: Progress = SILENT
    ) -> None:
        self.work, self.keys, self.options, self.seed, self.progress = work, keys, options, seed, progress
        self.runs = work.runs()
        for run in self.runs:  # all codes are known before the first block is counted
            keys.add(run.codes)
        self.most_rows = max(1, int(memory * SHARE) // BYTES_A_ROW)
        total = sum(len(run) for run in self.runs)
        self.n_blocks = max(1, -(-total // self.most_rows))
        self._held: Rows | None = None

    def block(self, number: int) -> Rows:
        """The distinct rows of a range of groups; groups are hashes, so the ranges are even."""
        if self._held is not None:
            return self._held
        low, high = number * 2**64 // self.n_blocks, (number + 1) * 2**64 // self.n_blocks
        parts = [self.keys.numbered(found) for found in (run.rows(low, high) for run in self.runs) if len(found.rows)]
        rows = parts[0] if len(parts) == 1 else Rows.join(parts).distinct()
        if self.n_blocks == 1:
            self._held = rows
        return rows

    def census(self) -> Census:
        """Count units and groups of every key."""
        census = Census(len(self.keys.keys))
        self.progress.start("Counting terms", self.n_blocks)
        for number in range(self.n_blocks):
            census.add(self.block(number))
            self.progress.advance()
        self.progress.done(f"{int((census.units > 0).sum()):,} different ones in {census.n_units:,} units")
        return census

    def edges(self, node: np.ndarray, n_nodes: int) -> Iterator[Edges]:
        """All edges, sorted, in pieces."""
        if self.n_blocks == 1:
            rows, self._held = self.block(0), None
            rows = rows.renumbered(node)
            yield from count_rows(rows, n_nodes, self.options, self.seed)
            return
        paths = []
        self.progress.start("Counting pairs in blocks", self.n_blocks)
        for number in range(self.n_blocks):
            path = self.work.block(number, self.n_blocks)
            paths.append(path)
            if not path.exists():
                rows = self.block(number).renumbered(node)
                self.work.add_block(path, count_rows(rows, n_nodes, self.options, self.seed))
            self.progress.advance()
        self.progress.done()
        yield from merge_blocks(paths, n_nodes, self.most_rows)

    def stop(self) -> None:
        """Let go of what is held."""
        self._held = None


def documents_in(runs: list[Run]) -> int:
    """How many documents the runs were made from."""
    return sum(run.documents for run in runs)
