"""Finding terms on one machine: one process reads, several annotate, and the runs go to disk in order."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np

from cogstage.corpus.records import Document
from cogstage.errors import CogstageError
from cogstage.graph.counting import Rows
from cogstage.graph.runs import WorkFolder
from cogstage.graph.units import Finder, Found

TASK_DOCUMENTS, TASK_CHARACTERS = 2_000, 2_000_000  # a task is full at the first of these
RUN_TASKS, RUN_SECONDS = 64, 20.0  # a run is written at the first of these, or when its rows reach their share
BYTES_A_FOUND_ROW = 60

_finder: Finder | None = None  # set before the processes are forked, so that they share it


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


def join_found(parts: Sequence[Found], n_known: int) -> Found:
    """Several findings as one, with one numbering of the codes."""
    numbers: dict[str, int] = {}
    rows = []
    for part in parts:
        if part.codes:
            new = [numbers.setdefault(code, n_known + len(numbers)) for code in part.codes]
            table = np.concatenate([np.arange(n_known, dtype=np.int32), np.array(new, np.int32)])
            rows.append(Rows(part.rows.group, part.rows.unit, table[part.rows.term]))
        else:
            rows.append(part.rows)
    return Found(Rows.join(rows), tuple(numbers))


class RunWriter:
    """Gathers the findings of tasks, in order, and writes them to the work folder as runs."""

    def __init__(self, work: WorkFolder, n_known: int, memory: int, first: int) -> None:
        self.work, self.n_known, self.most_rows = work, n_known, max(1, memory // 8 // BYTES_A_FOUND_ROW)
        self.first = self.last = first
        self._held: list[Found] = []
        self._rows = self._documents = 0
        self._begun = time.monotonic()

    def add(self, found: Found, documents: int) -> None:
        """The findings of the next task."""
        self._held.append(found)
        self._rows += len(found.rows)
        self._documents += documents
        self.last += 1
        late = time.monotonic() - self._begun > RUN_SECONDS
        if self._rows >= self.most_rows or self.last - self.first >= RUN_TASKS or late:
            self.write()

    def write(self) -> None:
        """Write what is held."""
        if self.last > self.first:
            self.work.add_run(join_found(self._held, self.n_known), self.first, self.last, self._documents)
        self.first, self._held, self._rows, self._documents = self.last, [], 0, 0
        self._begun = time.monotonic()


def find_all(finder: Finder, pieces: Iterable[list[Document]], workers: int) -> Iterator[tuple[int, Found]]:
    """Number of documents and findings of each piece, in order, with ``workers`` processes."""
    global _finder
    if workers < 2 or "fork" not in multiprocessing.get_all_start_methods():
        for piece in pieces:
            yield len(piece), finder.find(piece)
        return
    _finder = finder
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(workers, context, initializer=_end_with_parent, initargs=(os.getpid(),))
    waiting: deque[tuple[int, Future[Found]]] = deque()
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
            "an annotating process was ended from outside (out of memory?); run again with --resume and fewer --workers"
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _finder = None


def _find(piece: list[Document]) -> Found:
    assert _finder is not None
    return _finder.find(piece)


def _end_with_parent(parent: int) -> None:
    """Let a worker end when the process that made it is gone, however it went."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
