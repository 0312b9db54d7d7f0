"""A queue for expensive requests: they take turns, slice by slice, so that a single pair never waits behind a batch."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar, cast

from cogstage.errors import CogstageError

T = TypeVar("T")
R = TypeVar("R")
YIELD = 0.05  # seconds that a slice waits at most for small requests that are under way


class Busy(CogstageError):
    """Too many expensive requests are waiting."""


class Turns:
    """At most one expensive slice runs in a process at a time, and at most ``waiting`` requests queue for theirs.

    Small requests never queue. A slice starts when none of them is under way, or after ``YIELD`` seconds: the thread
    of a slice would otherwise take the interpreter from them for several milliseconds at every hand-over.
    """

    def __init__(self, waiting: int = 8) -> None:
        self.waiting = waiting
        self._inside = 0
        self._small = 0
        self._slice = threading.Lock()
        self._changed = threading.Condition()

    @contextmanager
    def small(self) -> Iterator[None]:
        """Around a request that asks for little."""
        with self._changed:
            self._small += 1
        try:
            yield
        finally:
            with self._changed:
                self._small -= 1
                self._changed.notify_all()

    def enter(self) -> None:
        """Join the queue, or raise :class:`Busy`."""
        with self._changed:
            if self._inside >= self.waiting:
                raise Busy(f"{self.waiting} large requests are already being processed; try again in a few seconds")
            self._inside += 1

    def leave(self) -> None:
        """The request is answered, or given up."""
        with self._changed:
            self._inside -= 1

    @contextmanager
    def slice(self) -> Iterator[None]:
        """Around one slice of the work."""
        with self._slice:
            until = time.monotonic() + YIELD
            with self._changed:
                while self._small and (left := until - time.monotonic()) > 0:
                    self._changed.wait(left)
            yield

    def sliced(self, items: Sequence[T], size: int, work: Callable[[Sequence[T]], Sequence[R]]) -> Iterator[R]:
        """``work`` over ``items``, ``size`` at a time. Queues at once; leaves at the end, or when it is given up."""
        results = self._run(items, size, work)
        next(results)  # a generator that has begun leaves the queue even if nobody asks it for an item
        return results

    def _run(self, items: Sequence[T], size: int, work: Callable[[Sequence[T]], Sequence[R]]) -> Iterator[R]:
        self.enter()
        try:
            yield cast(R, None)  # taken by sliced()
            for start in range(0, len(items), size):
                with self.slice():
                    done = work(items[start : start + size])
                yield from done
        finally:
            self.leave()
