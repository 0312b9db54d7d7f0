"""A queue for expensive requests, computed chunk by chunk, so that a single pair never waits behind a batch."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

from cogstage.errors import CogstageError
from cogstage.web.security import CLIENT

T = TypeVar("T")
R = TypeVar("R")
YIELD_SECONDS = 0.05  # that a chunk waits at most for interactive requests that are under way


class Busy(CogstageError):
    """Too many expensive requests are waiting."""


class WorkQueue:
    """At most one chunk runs in a process at a time, and at most ``length`` requests queue for theirs.

    One client has at most a quarter of the queue: a client with many batches would otherwise turn all others away.
    Interactive requests never queue. A chunk starts when none of them is under way, or after ``YIELD_SECONDS``: its
    thread would otherwise take the interpreter from them for several milliseconds at every hand-over.
    """

    def __init__(self, length: int = 8) -> None:
        self.length = length
        self.share = max(1, length // 4)
        self._queued: Counter[str] = Counter()  # requests by client
        self._interactive = 0
        self._chunk = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def interactive(self) -> Iterator[None]:
        """Around a request that asks for little."""
        with self._changed:
            self._interactive += 1
        try:
            yield
        finally:
            with self._changed:
                self._interactive -= 1
                self._changed.notify_all()

    def enter(self, client: str) -> None:
        """Join the queue, or raise :class:`Busy`."""
        with self._changed:
            if self._queued.total() >= self.length:
                raise Busy(f"{self.length} large requests are already being processed; try again in a few seconds")
            if client and self._queued[client] >= self.share:
                raise Busy(f"{self.share} large requests of yours are already being processed; try again when one ends")
            self._queued[client] += 1

    def leave(self, client: str) -> None:
        """The request is answered, or given up."""
        with self._changed:
            self._queued[client] -= 1
            if not self._queued[client]:
                del self._queued[client]

    @contextmanager
    def chunk(self) -> Iterator[None]:
        """Around one chunk of the work."""
        with self._chunk:
            until = time.monotonic() + YIELD_SECONDS
            with self._changed:
                while self._interactive and (left := until - time.monotonic()) > 0:
                    self._changed.wait(left)
            yield

    def in_chunks(self, items: Sequence[T], size: int, work: Callable[[Sequence[T]], Sequence[R]]) -> Iterator[R]:
        """``work`` over ``items``, ``size`` at a time. Queues at once; leaves at the end, or when it is given up."""
        results = self._run(CLIENT.get(), items, size, work)
        next(results)  # a generator that has begun leaves the queue even if nobody asks it for an item
        return results

    def _run(
        self, client: str, items: Sequence[T], size: int, work: Callable[[Sequence[T]], Sequence[R]]
    ) -> Iterator[R]:
        self.enter(client)
        try:
            yield cast(R, None)  # taken by in_chunks()
            for start in range(0, len(items), size):
                with self.chunk():
                    done = work(items[start : start + size])
                yield from done
        finally:
            self.leave(client)
