"""Finding and counting on Spark: the same kernels in its tasks, so the graph is the same byte for byte.

Input files and the folder of the output must have the same path for the driver and every worker, and the workers need
cogstage in their Python. Each file (or OMOP folder) is read by one task; its documents are then spread over all of
them. What a task found or counted is a file in the work folder: a lost task is repeated, an interrupted build goes on.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.corpus.names import CodeNames
from cogstage.corpus.near_duplicates import Signatures
from cogstage.corpus.readers import open_reader
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.counting import Census
from cogstage.graph.edges import Edges
from cogstage.graph.engines.local import bounds, tasks
from cogstage.graph.job import BuildJob, Nodes, count_rows
from cogstage.graph.options import BuildOptions
from cogstage.graph.runs import PLAN, Run, WorkFolder, is_sound, merge_blocks, read_rows, write_hashed
from cogstage.graph.units import InputSummary, usable
from cogstage.tables import BadRows

ROWS_A_BLOCK = 4_000_000


def open_session(master: str) -> tuple[Any, bool]:
    """The Spark session of this process, or a new one on ``master``; and whether it is new."""
    try:
        from pyspark.sql import SparkSession
    except ImportError:
        raise UsageError("the spark engine needs pyspark: pip install 'cogstage[spark]'") from None
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
        raise CogstageError(
            f"cannot start Spark on {master}: {first} (is Java installed, and the master running?)"
        ) from error


class SparkEngine:
    """Reads, finds and counts on Spark; the driver chooses nodes and writes the graph."""

    def __init__(self, job: BuildJob, master: str) -> None:
        self.job, self.master = job, master
        self.session, self._own = open_session(master)
        self.context = self.session.sparkContext
        self._shared: list[Any] = []
        self._names = CodeNames()
        self.runs: list[Run] = []
        self.n_blocks = 1

    def _share(self, value: Any) -> Any:
        shared = self.context.broadcast(value)
        self._shared.append(shared)
        return shared

    def signatures(self) -> Signatures:
        """What recognises copied notes, of all documents: one task reads one file."""
        options = replace(self.job.options, format=self.job.reader.format)
        parts = [[str(path) for path in part] for part in self.job.reader.parts()]

        def sign(files: list[str]) -> Signatures:
            reader = open_reader(files, options.format, bad=BadRows(skip=True), **options.reader)
            return Signatures.join(
                Signatures.from_documents(piece) for piece in tasks(usable(reader, options, reader.bad))
            )

        return Signatures.join(self._run(lambda: self.context.parallelize(parts, len(parts)).map(sign).collect()))

    def find(self, copies: np.ndarray) -> int:
        """Find the keys of all documents without a finished run, and collect what the readers recorded."""
        job, options = self.job, replace(self.job.options, format=self.job.reader.format)
        parts = [[str(path) for path in part] for part in job.reader.parts()]
        todo = [(number, part) for number, part in enumerate(parts) if not is_sound(_end(job.work, number))]
        skip, work, shared, copied = job.bad.skip, job.work, self._share(job.finder), self._share(copies)

        def read(numbered: tuple[int, list[str]]) -> Iterator[tuple[Any, ...]]:
            return read_part(*numbered, options, skip, work, copied.value)

        def find(item: tuple[Any, ...]) -> tuple[Any, ...]:
            if item[0] != "piece":
                return item
            _, part, number, documents = item
            check_shared(work)
            work.add_run(shared.value.find(documents), number, number + 1, len(documents), _run_name(part))
            return ("found",)

        job.progress.start(f"Finding terms on Spark ({self.master})")
        if todo:
            pieces = self.context.parallelize(todo, len(todo)).flatMap(read)
            if len(todo) < 4 * self.context.defaultParallelism:
                pieces = pieces.repartition(4 * self.context.defaultParallelism)
            ends = [item for item in self._run(lambda: pieces.map(find).collect()) if item[0] != "found"]
            self._finish_parts(sorted(ends, key=lambda item: item[1]))
        self._gather(len(parts))
        n_documents = sum(run.documents for run in self.runs)
        job.progress.done(f"{n_documents:,} documents")
        rows = sum(len(run) for run in self.runs)
        self.n_blocks = max(self.context.defaultParallelism, -(-rows // ROWS_A_BLOCK))
        return n_documents

    def _finish_parts(self, ends: list[tuple[Any, ...]]) -> None:
        """Mark the parts that were read completely; raise the first error of the others."""
        for item in ends:
            if item[0] == "end":
                _, part, pieces, bad, names, summary = item
                about = {"pieces": pieces, "bad": bad.to_dict(), "names": names.to_dict(), "summary": asdict(summary)}
                write_hashed(_end(self.job.work, part), about)
        for item in ends:
            if item[0] == "error":
                raise (UsageError if item[3] == 2 else CogstageError)(item[2])

    def _gather(self, n_parts: int) -> None:
        """Runs, codes, names and bad rows of all parts."""
        job = self.job
        for part in range(n_parts):
            about = json.loads(_end(job.work, part).read_text(encoding="utf-8"))
            runs = job.work.runs(_run_name(part))
            if len(runs) != about["pieces"]:
                raise CogstageError(
                    f"{job.work.path}: results of Spark tasks are missing; build again without `resume`"
                )
            self.runs += runs
            job.bad.add(BadRows(**about["bad"]))
            job.summary.join(InputSummary(**about["summary"]))
            self._names.merge(CodeNames.from_dict(about["names"]))
        for run in self.runs:
            job.keys.add(run.codes)

    def census(self) -> Census:
        """Count units and groups of every key."""
        n_blocks, runs, keys = self.n_blocks, self.runs, self._share(self.job.keys)
        self._sealed = keys

        def count(number: int) -> Census:
            census = Census(len(keys.value.keys))
            census.add(read_rows(runs, keys.value, *bounds(number, n_blocks)))
            return census

        self.job.progress.start("Counting terms on Spark")
        total = Census(len(self.job.keys.keys))
        blocks = self.context.parallelize(range(n_blocks), n_blocks)
        for part in self._run(lambda: blocks.map(count).collect()):
            total.join(part)
        self.job.progress.done(f"{int((total.units > 0).sum()):,} different terms in {total.n_units:,} units")
        return total

    def edges(self, nodes: Nodes) -> Iterator[Edges]:
        """All edges, sorted, in pieces: counted by ranges of groups in the tasks, merged by the driver."""
        job, n_blocks, runs = self.job, self.n_blocks, self.runs
        options, seed, work, keys, shared = job.options, job.seed, job.work, self._sealed, self._share(nodes)

        def count(number: int) -> None:
            rows = read_rows(runs, keys.value, *bounds(number, n_blocks))
            work.add_block(work.block(number, n_blocks), count_rows(rows, shared.value, options, seed, threads=1))

        todo = [number for number in range(n_blocks) if not is_sound(work.block(number, n_blocks))]
        if todo:
            self._run(lambda: self.context.parallelize(todo, len(todo)).foreach(count))
        paths = [work.block(number, n_blocks) for number in range(n_blocks)]
        yield from merge_blocks(paths, len(nodes), ROWS_A_BLOCK, options.order)

    def names_of(self, codes: Iterable[str]) -> CodeNames:
        """Names that the source gives these codes, with how many patients share each."""
        return self._names.only(codes)

    def stop(self) -> None:
        """End the session if it was opened here, else free what it held for this graph."""
        if self._own:
            self.session.stop()
            return
        for shared in self._shared:
            shared.unpersist()

    def _run(self, action: Any) -> Any:
        """Run a Spark action; an error inside Spark becomes one line."""
        try:
            return action()
        except CogstageError:
            raise
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            cause = next((line for line in reversed(lines) if "Error" in line), lines[0] if lines else "")
            raise CogstageError(f"Spark failed: {type(error).__name__}: {cause.strip()[:200]}") from error


def read_part(
    part: int, files: list[str], options: BuildOptions, skip: bool, work: WorkFolder, copies: np.ndarray
) -> Iterator[tuple[Any, ...]]:
    """The pieces of some files that have no run yet, then what the reader learned, or the error that ended it."""
    bad = BadRows(skip=skip)
    codes: set[str] = set()
    done = len(work.runs(_run_name(part)))
    number, summary = 0, InputSummary()
    try:
        reader = open_reader(files, options.format, bad=bad, **options.reader)
        for piece in tasks(usable(reader, options, bad, copies, summary)):
            for document in piece:
                codes.update(document.codes)
            if number >= done:
                yield "piece", part, number, piece
            number += 1
        yield "end", part, number, bad, reader.all_names_of(codes), summary
    except CogstageError as error:
        yield "error", part, str(error), error.exit_code


def check_shared(work: WorkFolder) -> None:
    """Raise if a worker cannot access the work folder of the driver."""
    if not (work.path / PLAN).exists():
        raise CogstageError(
            f"{work.path} does not exist on {socket.gethostname()}; driver and workers need shared storage"
        )


def _run_name(part: int) -> str:
    return f"part{part:05d}"


def _end(work: WorkFolder, part: int) -> Path:
    return work.path / f"end-{part:05d}.json"
