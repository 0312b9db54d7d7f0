"""Progress reports of library code, independent of terminals; the command line shows them as bars."""

from __future__ import annotations

import sys
import time
from typing import Protocol, TextIO


class Progress(Protocol):
    """The interface that long-running code calls. There is one step at a time."""

    def start(self, title: str, total: int | None = None) -> None:
        """A step begins; ``total`` units of work if that is known."""

    def advance(self, amount: int = 1, note: str = "") -> None:
        """``amount`` units are done; ``note`` is a short figure worth showing (a loss, a count)."""

    def done(self, note: str = "") -> None:
        """The step is finished; ``note`` says with what result."""

    def say(self, line: str) -> None:
        """A line for the user: a warning, a count of skipped rows."""


class Silent:
    """Reports nothing."""

    def start(self, title: str, total: int | None = None) -> None: ...

    def advance(self, amount: int = 1, note: str = "") -> None: ...

    def done(self, note: str = "") -> None: ...

    def say(self, line: str) -> None: ...


SILENT: Progress = Silent()


class LiveLine:
    """Progress on one line that is written over, for a terminal or a notebook."""

    def __init__(self, stream: TextIO, every: float = 0.2) -> None:
        self._stream, self._every = stream, every
        self._title, self._total, self._count, self._width = "", None, 0, 0  # type: tuple[str, int | None, int, int]
        self._begun = self._shown = 0.0

    def start(self, title: str, total: int | None = None) -> None:
        self._title, self._total, self._count = title, total, 0
        self._begun = self._shown = time.monotonic()
        self._show(f"{title} ...")

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Work was done; the line is written anew a few times a second."""
        self._count += amount
        if time.monotonic() - self._shown >= self._every:
            self._shown = time.monotonic()
            share = f"{self._count:,}" + (f" of {self._total:,}" if self._total else "")
            self._show(f"{self._title}: {share}{' ' + note if note else ''}")

    def done(self, note: str = "") -> None:
        taken = f"{time.monotonic() - self._begun:.1f} s"
        self._show(f"{self._title}: done in {taken}{'; ' + note if note else ''}", "\n")

    def say(self, line: str) -> None:
        """A line for the user."""
        self._show(line, "\n")

    def _show(self, line: str, end: str = "") -> None:
        self._stream.write("\r" + line.ljust(self._width) + end)
        self._stream.flush()
        self._width = 0 if end else len(line)


def default_progress() -> Progress:
    """A line on stderr in a terminal or a notebook, nothing elsewhere."""
    return LiveLine(sys.stderr) if sys.stderr.isatty() or "ipykernel" in sys.modules else SILENT
