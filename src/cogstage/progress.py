"""Progress reports of library code, independent of terminals; the command line shows them as bars."""

from __future__ import annotations

from typing import Protocol


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
    """Reports nothing: the default of the Python API."""

    def start(self, title: str, total: int | None = None) -> None: ...

    def advance(self, amount: int = 1, note: str = "") -> None: ...

    def done(self, note: str = "") -> None: ...

    def say(self, line: str) -> None: ...


SILENT: Progress = Silent()
