"""Finding and counting on Spark: the same kernels in its tasks, so the graph is the same byte for byte.

The input files must be readable under the same path by the driver and by every worker, and the workers need cogstage
in their Python. Each file (or OMOP folder) is read by one task; its documents are then spread over all of them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.corpus.readers import Reader, open_reader, recognise
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.blocks import Census, count_rows
from cogstage.graph.counting import Rows
from cogstage.graph.edges import Edges
from cogstage.graph.local_engine import tasks
from cogstage.graph.options import BuildOptions
from cogstage.graph.runs import EDGE, add_up
from cogstage.graph.units import Finder, Found, Keys, usable
from cogstage.progress import Progress
from cogstage.tables import BadRows

ROWS_A_BLOCK = 4_000_000


def open_session(master: str) -> tuple[Any, bool]:
    """The Spark session of this process, or a new one on ``master``; and whether it is new.

    What is missing for it is said in one line.
    """
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError("--engine spark needs pyspark: pip install 'cogstage[spark]'") from None
    if (there := SparkSession.getActiveSession()) is not None:
        return there, False
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    try:
        builder = SparkSession.builder.master(master).appName("cogstage").config("spark.ui.enabled", "false")
        builder = builder.config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
        return builder.getOrCreate(), True
    except Exception as error:
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise CogstageError(f"no Spark on {master}: {first} (is Java installed, and the master running?)") from error


class SparkCounter:
    """Reads, finds and counts on Spark; the driver chooses nodes and writes the graph."""

    def __init__(
        self, master: str, reader: Reader, finder: Finder, keys: Keys, seed: int, bad: BadRows, progress: Progress
    ) -> None:
        self.options, self.keys, self.seed, self.progress = finder.options, keys, seed, progress
        self.session, self._own = open_session(master)
        self.context = self.session.sparkContext
        self._shared: list[Any] = []
        self._names: dict[str, tuple[str, str]] = {}
        self.n_documents = 0
        progress.start(f"Finding terms on Spark ({master})")
        self._found = self._find(reader, finder, bad)
        rows = self._gather(bad)
        progress.done(f"{self.n_documents:,} documents")
        self._blocks = self._by_group(max(self.context.defaultParallelism, -(-rows // ROWS_A_BLOCK)))

    def _share(self, value: Any) -> Any:
        shared = self.context.broadcast(value)
        self._shared.append(shared)
        return shared

    def _find(self, reader: Reader, finder: Finder, bad: BadRows) -> Any:
        """An RDD of ("found", documents, Found), and of ("end" | "error", ...) for each part that was read."""
        options, files = finder.options, [str(path) for path in reader.files]
        together = options.format == "omop" or (options.format == "auto" and recognise(Path(files[0])) == "omop")
        parts = [files] if together else [[file] for file in files]
        skip, shared = bad.skip, self._share(finder)

        def read(numbered: tuple[int, list[str]]) -> Iterator[tuple[Any, ...]]:
            return read_part(*numbered, options, skip)

        def find(item: tuple[Any, ...]) -> tuple[Any, ...]:
            return ("found", len(item[1]), shared.value.find(item[1])) if item[0] == "piece" else item

        pieces = self.context.parallelize(list(enumerate(parts)), len(parts)).flatMap(read)
        if len(parts) < 4 * self.context.defaultParallelism:
            pieces = pieces.repartition(4 * self.context.defaultParallelism)
        from pyspark import StorageLevel

        return pieces.map(find).persist(StorageLevel.MEMORY_AND_DISK)

    def _gather(self, bad: BadRows) -> int:
        """Learn documents, codes, names, bad rows and errors from all parts; gives the number of rows."""

        def about(item: tuple[Any, ...]) -> tuple[Any, ...]:
            return ("found", item[1], item[2].codes, len(item[2].rows)) if item[0] == "found" else item

        items = self.context_run(lambda: self._found.map(about).collect())
        ends = sorted((item for item in items if item[0] != "found"), key=lambda item: item[1])
        for item in ends:
            if item[0] == "error":
                self.stop()
                raise (UsageError if item[3] == 2 else CogstageError)(item[2])
            bad.count += item[2]
            bad.first = (bad.first + item[3])[:5]
            self._names.update({code: name for code, name in item[4].items() if code not in self._names})
        rows = 0
        for item in items:
            if item[0] == "found":
                self.n_documents += item[1]
                self.keys.add(item[2])
                rows += item[3]
        return rows

    def _by_group(self, n_blocks: int) -> Any:
        """An RDD with the distinct rows of one range of groups in each partition."""
        known = self.keys.n_known
        numbers = self._share({code: self.keys.number[code] for code in self.keys.keys[known:]})

        def split(item: tuple[Any, ...]) -> Iterator[tuple[int, Rows]]:
            if item[0] != "found":
                return
            rows = numbered(item[2], known, numbers.value)
            place = (rows.group >> np.uint64(32)).astype(np.int64) * n_blocks >> 32
            for block in np.unique(place).tolist():
                here = place == block
                yield block, Rows(rows.group[here], rows.unit[here], rows.term[here])

        def join(parts: Iterable[tuple[int, Rows]]) -> Iterator[Rows]:
            found = [rows for _, rows in parts]
            if found:
                yield Rows.join(found).distinct()

        from pyspark import StorageLevel

        spread = self._found.flatMap(split).partitionBy(n_blocks, int)
        return spread.mapPartitions(join).persist(StorageLevel.MEMORY_AND_DISK)

    def census(self) -> Census:
        """Count units and groups of every key."""
        n_keys = len(self.keys.keys)

        def count(rows: Rows) -> Census:
            census = Census(n_keys)
            census.add(rows)
            return census

        self.progress.start("Counting terms on Spark")
        total = Census(n_keys)
        for part in self.context_run(lambda: self._blocks.map(count).collect()):
            total.units += part.units
            total.groups += part.groups
            total.n_units += part.n_units
            total.n_groups += part.n_groups
        self.progress.done(f"{int((total.units > 0).sum()):,} different ones in {total.n_units:,} units")
        return total

    def edges(self, node: np.ndarray, n_nodes: int) -> Iterator[Edges]:
        """All edges, sorted, in pieces: counted by ranges of groups, added up by ranges of source terms."""
        options, seed, shared = self.options, self.seed, self._share(node)
        n_ranges = max(1, min(n_nodes, 4 * self.context.defaultParallelism))
        width = -(-n_nodes // n_ranges) if n_nodes else 1

        def count(rows: Rows) -> Iterator[tuple[int, np.ndarray]]:
            for edges in count_rows(rows.renumbered(shared.value), n_nodes, options, seed, threads=1):
                stored = as_stored(edges)
                place = stored["source"] // width
                for at in np.unique(place).tolist():
                    yield at, stored[place == at]

        def merge(parts: Iterable[tuple[int, np.ndarray]]) -> Iterator[np.ndarray]:
            found = [stored for _, stored in parts]
            if found:
                yield as_stored(add_up(np.concatenate(found)))

        merged = self._blocks.flatMap(count).partitionBy(n_ranges, int).mapPartitions(merge)
        for stored in self.context_run(lambda: merged.toLocalIterator()):
            yield add_up(stored)

    def names_of(self, codes: Iterable[str]) -> Mapping[str, tuple[str, str]]:
        """Names and types of these codes, as far as the source tells them."""
        return {code: self._names[code] for code in codes if code in self._names}

    def stop(self) -> None:
        """Let go of Spark: end the session if it was opened here, else free what it held for this graph."""
        if self._own:
            self.session.stop()
            return
        for held in (self._found, getattr(self, "_blocks", None)):
            if held is not None:
                held.unpersist()
        for shared in self._shared:
            shared.unpersist()

    def context_run(self, job: Any) -> Any:
        """Run a job; what goes wrong inside Spark is said in one line."""
        try:
            return job()
        except CogstageError:
            raise
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            cause = next((line for line in reversed(lines) if "Error" in line), lines[0] if lines else "")
            raise CogstageError(f"Spark failed: {type(error).__name__}: {cause.strip()[:200]}") from error


def read_part(number: int, files: list[str], options: BuildOptions, skip: bool) -> Iterator[tuple[Any, ...]]:
    """Pieces of documents of some files, then what else the reader learned, or the error that ended it."""
    bad = BadRows(skip=skip)
    codes: set[str] = set()
    try:
        reader = open_reader(files, options.format, bad=bad, **options.reader)
        for piece in tasks(usable(reader, options, bad)):
            for document in piece:
                codes.update(document.codes)
            yield "piece", piece
        yield "end", number, bad.count, bad.first, dict(reader.names_of(codes))
    except CogstageError as error:
        yield "error", number, str(error), error.exit_code


def numbered(found: Found, known: int, numbers: Mapping[str, int]) -> Rows:
    """Rows with their own codes replaced by the numbers of all codes."""
    if not found.codes:
        return found.rows
    new = np.array([numbers[code] for code in found.codes], np.int32)
    table = np.concatenate([np.arange(known, dtype=np.int32), new])
    return Rows(found.rows.group, found.rows.unit, table[found.rows.term])


def as_stored(edges: Edges) -> np.ndarray:
    """Edges as one array of records."""
    stored = np.zeros(len(edges), EDGE)
    stored["source"], stored["target"], stored["count"] = edges.source, edges.target, edges.count
    if edges.groups is not None:
        stored["groups"] = edges.groups
    return stored
