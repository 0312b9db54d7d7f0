"""A build job for the engines: what to read, what to find, how to count, and where to keep the work."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np

from cogstage.corpus.formats.omop import OmopReader
from cogstage.corpus.readers import Reader, open_reader
from cogstage.graph.counting import Census, Counter, Rows
from cogstage.graph.edges import Edges
from cogstage.graph.options import BuildOptions
from cogstage.graph.privacy import bounded_edges, is_large
from cogstage.graph.runs import WorkFolder
from cogstage.graph.units import Finder, InputSummary, Keys, number_of
from cogstage.numbering import new_numbers
from cogstage.progress import Progress
from cogstage.tables import BadRows


@dataclass(frozen=True)
class BuildJob:
    """One build: the same for every engine."""

    reader: Reader
    finder: Finder
    keys: Keys
    work: WorkFolder
    memory: int  # memory limit for counting, in bytes
    workers: int | None  # annotating processes; None for all cores
    seed: int  # of the hashes of this build
    given_seed: int | None  # given by a test; None otherwise
    bad: BadRows
    progress: Progress
    summary: InputSummary = field(default_factory=InputSummary)  # complete once the documents are read

    def open_again(self) -> Reader:
        """A reader of the same files that skips bad rows, for a pass before or after the one that counts."""
        options, files = self.options, list(self.reader.files_on_disk)
        if isinstance(self.reader, OmopReader):
            files = [self.reader.folder]
        return open_reader(files, self.reader.format, bad=BadRows(skip=True), **options.reader)

    @property
    def options(self) -> BuildOptions:
        """How documents become a graph."""
        return self.finder.options


@dataclass(frozen=True)
class Nodes:
    """The keys that become nodes, in the order of keys."""

    keys: np.ndarray  # int64 (V,): number of the key of each node
    of_key: np.ndarray  # int32 (K,): node of each key, -1 for none
    hashes: np.ndarray | None  # uint64 (V,): stable hash of each node's key, where pairs are drawn by it

    def __len__(self) -> int:
        return len(self.keys)


def choose_nodes(keys: list[str], census: Census, options: BuildOptions) -> Nodes:
    """The keys that are counted and shared often enough."""
    count, total = census.groups, census.n_groups
    if not options.counts_groups:
        count, total = census.units, census.n_units
    kept = count >= options.min_count
    if options.private is None:  # those without the term can be too few, too: the total is published
        kept &= (census.groups >= options.suppress_below) & is_large(total - count, options.suppress_below)
    chosen = np.flatnonzero(kept)
    node = new_numbers(chosen, len(keys))
    hashes = None
    if options.bound is not None:
        hashes = np.fromiter((number_of("key", keys[number]) for number in chosen.tolist()), np.uint64, len(chosen))
    return Nodes(chosen, node, hashes)


def count_rows(
    rows: Rows, nodes: Nodes, options: BuildOptions, seed: int, threads: int | None = None
) -> Iterator[Edges]:
    """The sorted edges of rows that hold whole groups; rows sorted and distinct, terms still keys."""
    rows = rows.renumbered(nodes.of_key)
    if options.bound is not None and nodes.hashes is not None:
        yield bounded_edges(rows, nodes.hashes, options.bound, seed, options.lag_days)
        return
    with_groups = options.counts_groups or options.suppress_below > 0
    for edges in Counter(rows, len(nodes), with_groups, threads, options.lag_days).edges():
        if options.counts_groups and edges.groups is not None:
            edges = replace(edges, count=edges.groups)
        yield edges
