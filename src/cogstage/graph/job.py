"""A build as the engines see it: what to read, what to look for, how to count, and where to keep the work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cogstage.corpus.readers import Reader
from cogstage.graph.counting import Census, Counter, Rows
from cogstage.graph.edges import Edges
from cogstage.graph.options import BuildOptions
from cogstage.graph.privacy import bounded_edges
from cogstage.graph.runs import WorkFolder
from cogstage.graph.units import Finder, Keys
from cogstage.progress import Progress
from cogstage.tables import BadRows


@dataclass(frozen=True)
class BuildJob:
    """One build: the same for every engine."""

    reader: Reader
    finder: Finder
    keys: Keys
    work: WorkFolder
    memory: int  # bytes that counting may hold
    workers: int | None  # annotating processes; None for all cores
    seed: int
    bad: BadRows
    progress: Progress

    @property
    def options(self) -> BuildOptions:
        """How documents become a graph."""
        return self.finder.options


def choose_nodes(keys: list[str], census: Census, options: BuildOptions) -> tuple[np.ndarray, np.ndarray]:
    """Which of the sorted keys become nodes, and the node of each key (-1: none)."""
    count = census.groups if options.counts_groups else census.units
    kept = count >= options.min_count
    if options.private is None:
        kept &= census.groups >= options.suppress_below
    chosen = np.flatnonzero(kept)
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
