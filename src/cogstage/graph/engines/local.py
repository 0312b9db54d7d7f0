"""The local engine: one process reads, several annotate; runs are written to disk in order and counted in blocks."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from itertools import islice

import numpy as np

from cogstage.corpus.names import CodeNames
from cogstage.corpus.near_duplicates import Signatures
from cogstage.corpus.records import Document
from cogstage.errors import CogstageError
from cogstage.graph.counting import Census, Rows, n_threads
from cogstage.graph.edges import Edges
from cogstage.graph.job import BuildJob, Nodes, count_rows
from cogstage.graph.runs import Run, WorkFolder, is_sound, merge_blocks, read_rows
from cogstage.graph.units import DocumentRows, Finder, usable

TASK_DOCUMENTS, TASK_CHARACTERS = 2_000, 2_000_000  # a task is full at the first of these
RUN_TASKS, RUN_SECONDS = 64, 20.0  # a run is written at the first of these, or when its rows reach their share
BYTES_A_FOUND_ROW = 60
SMALL = 2 << 20  # inputs below this are annotated in the process itself
BYTES_A_ROW = 80  # a row as read, as sorted, as gathered by term, and what the sorting holds in between
SHARE = 0.6  # of the ceiling goes to a block; the rest is the program itself, buffers and what Arrow holds

_finder: Finder | None = None  # set before the processes are forked, so that they share it


class LocalEngine:
    """Finds and counts in this process and its children, within a memory limit."""

    def __init__(self, job: BuildJob) -> None:
        self.job = job
        self.runs: list[Run] = []
        self.n_blocks = 1
        self._held: Rows | None = None

    def signatures(self) -> Signatures:
        """What recognises copied notes, of all documents."""
        job = self.job
        reader = job.open_again()
        parts = (Signatures.from_documents(piece) for piece in tasks(usable(reader, job.options, reader.bad)))
        return Signatures.join(parts)

    def find(self, copies: np.ndarray) -> int:
        """Annotate every document that no finished run covers yet."""
        job = self.job
        runs = job.work.runs()
        finished = runs[-1].last if runs else 0
        total = job.reader.bytes_total
        workers = (n_threads() if total > SMALL else 1) if job.workers is None else job.workers
        job.progress.start("Reading and finding terms", total)
        writer = RunWriter(job.work, job.keys.n_known, job.memory, finished)
        pieces = islice(tasks(usable(job.reader, job.options, job.bad, copies, job.summary)), finished, None)
        seen = done = 0
        for documents, found in find_all(job.finder, pieces, workers):
            writer.add(found, documents)
            done += documents
            position = min(job.reader.position(), total)
            job.progress.advance(position - seen, f"{done:,} documents")
            seen = position
        writer.write()
        self.runs = job.work.runs()
        for run in self.runs:
            job.keys.add(run.codes)
        n_documents = sum(run.documents for run in self.runs)
        skipped = f", {job.bad.count:,} bad rows skipped" if job.bad.count else ""
        job.progress.done(f"{n_documents:,} documents{skipped}")
        self.most_rows = max(1, int(job.memory * SHARE) // BYTES_A_ROW)
        self.n_blocks = max(1, -(-sum(len(run) for run in self.runs) // self.most_rows))
        return n_documents

    def block(self, number: int) -> Rows:
        """The distinct rows of a range of groups; groups are hashes, so the ranges are even."""
        if self._held is not None:
            return self._held
        rows = read_rows(self.runs, self.job.keys, *bounds(number, self.n_blocks))
        if self.n_blocks == 1:
            self._held = rows
        return rows

    def census(self) -> Census:
        """Count units and groups of every key."""
        census, progress = Census(len(self.job.keys.keys)), self.job.progress
        progress.start("Counting terms", self.n_blocks)
        for number in range(self.n_blocks):
            census.add(self.block(number))
            progress.advance()
        progress.done(f"{int((census.units > 0).sum()):,} different terms in {census.n_units:,} units")
        return census

    def edges(self, nodes: Nodes) -> Iterator[Edges]:
        """All edges, sorted, in pieces."""
        job = self.job
        if self.n_blocks == 1:
            rows, self._held = self.block(0), None
            yield from count_rows(rows, nodes, job.options, job.seed)
            return
        paths = []
        job.progress.start("Counting pairs in blocks", self.n_blocks)
        for number in range(self.n_blocks):
            path = job.work.block(number, self.n_blocks)
            paths.append(path)
            if not is_sound(path):
                job.work.add_block(path, count_rows(self.block(number), nodes, job.options, job.seed))
            job.progress.advance()
        job.progress.done()
        yield from merge_blocks(paths, len(nodes), self.most_rows, job.options.order)

    def names_of(self, codes: Iterable[str]) -> CodeNames:
        """Names that the source gives these codes, with how many patients share each."""
        return self.job.reader.all_names_of(codes)

    def stop(self) -> None:
        """Release the rows that are held."""
        self._held = None


def bounds(number: int, n_blocks: int) -> tuple[int, int]:
    """First and last (not included) group of a block."""
    return number * 2**64 // n_blocks, (number + 1) * 2**64 // n_blocks


def tasks(documents: Iterable[Document]) -> Iterator[list[Document]]:
    """The documents in pieces whose borders depend on nothing but the documents."""
    piece: list[Document] = []
    characters = 0
    for document in documents:
        piece.append(document)
        characters += len(document.text)
        if len(piece) >= TASK_DOCUMENTS or characters >= TASK_CHARACTERS:
            yield piece
            piece, characters = [], 0
    if piece:
        yield piece


def join_found(parts: Sequence[DocumentRows], n_known: int) -> DocumentRows:
    """Several findings as one, with one numbering of the codes."""
    numbers: dict[str, int] = {}
    rows = []
    for part in parts:
        if part.codes:
            new = [numbers.setdefault(code, n_known + len(numbers)) for code in part.codes]
            table = np.concatenate([np.arange(n_known, dtype=np.int32), np.array(new, np.int32)])
            rows.append(replace(part.rows, term=table[part.rows.term]))
        else:
            rows.append(part.rows)
    left_out = tuple(map(sum, zip(*(part.left_out for part in parts), strict=True)))
    return DocumentRows(Rows.join(rows), tuple(numbers), left_out)


class RunWriter:
    """Gathers the findings of tasks, in order, and writes them to the work folder as runs."""

    def __init__(self, work: WorkFolder, n_known: int, memory: int, first: int) -> None:
        self.work, self.n_known, self.most_rows = work, n_known, max(1, memory // 8 // BYTES_A_FOUND_ROW)
        self.first = self.last = first
        self._held: list[DocumentRows] = []
        self._rows = self._documents = 0
        self._begun = time.monotonic()

    def add(self, found: DocumentRows, documents: int) -> None:
        """The findings of the next task."""
        self._held.append(found)
        self._rows += len(found.rows)
        self._documents += documents
        self.last += 1
        late = time.monotonic() - self._begun > RUN_SECONDS
        if self._rows >= self.most_rows or self.last - self.first >= RUN_TASKS or late:
            self.write()

    def write(self) -> None:
        """Write the buffered rows to disk as one sorted run."""
        if self.last > self.first:
            self.work.add_run(join_found(self._held, self.n_known), self.first, self.last, self._documents)
        self.first, self._held, self._rows, self._documents = self.last, [], 0, 0
        self._begun = time.monotonic()


def find_all(finder: Finder, pieces: Iterable[list[Document]], workers: int) -> Iterator[tuple[int, DocumentRows]]:
    """Number of documents and findings of each piece, in order, with ``workers`` processes."""
    global _finder
    if workers < 2 or "fork" not in multiprocessing.get_all_start_methods():
        for piece in pieces:
            yield len(piece), finder.find(piece)
        return
    _finder = finder
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context, initializer=_end_with_parent, initargs=(os.getpid(),))
    waiting: deque[tuple[int, Future[DocumentRows]]] = deque()
    try:
        for piece in pieces:
            waiting.append((len(piece), pool.submit(_find, piece)))
            if len(waiting) > 2 * workers:
                size, future = waiting.popleft()
                yield size, future.result()
        while waiting:
            size, future = waiting.popleft()
            yield size, future.result()
    except BrokenProcessPool:
        raise CogstageError(
            "an annotation process was killed (out of memory?); run again with `resume` and fewer `workers`"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _finder = None


def _find(piece: list[Document]) -> DocumentRows:
    assert _finder is not None
    return _finder.find(piece)


def _end_with_parent(parent: int) -> None:
    """Make a worker end when its parent process ends for any reason."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
