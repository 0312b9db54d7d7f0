"""What the commands share: progress on a terminal or as plain lines, and JSON for machines."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import typer

from cogstage.progress import Progress


class PlainLines:
    """Progress where there is no terminal: a line when a step begins and ends, one every ten seconds between."""

    def __init__(self, every: float = 10.0) -> None:
        self._every = every
        self._title, self._total, self._count, self._begun, self._said = "", None, 0, 0.0, 0.0  # type: tuple[str, int | None, int, float, float]

    def start(self, title: str, total: int | None = None) -> None:
        """A step begins."""
        self._title, self._total, self._count = title, total, 0
        self._begun = self._said = time.monotonic()
        typer.echo(f"{title} ...", err=True)

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Work was done; says so every ten seconds."""
        self._count += amount
        if time.monotonic() - self._said >= self._every:
            self._said = time.monotonic()
            share = f"{self._count:,}" + (f" of {self._total:,}" if self._total else "")
            typer.echo(f"  {self._title}: {share}{' ' + note if note else ''}", err=True)

    def done(self, note: str = "") -> None:
        """The step is finished."""
        typer.echo(
            f"  {self._title}: done in {time.monotonic() - self._begun:.1f} s{'; ' + note if note else ''}", err=True
        )

    def say(self, line: str) -> None:
        """A line for the user."""
        typer.echo(line, err=True)


class Bar:
    """Progress on a terminal: one bar a step, what is finished stays as a line."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._title = ""
        self._begun = 0.0

    def start(self, title: str, total: int | None = None) -> None:
        """A step begins."""
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
        from rich.progress import Progress as RichProgress

        self._stop()
        self._title, self._begun = title, time.monotonic()
        columns = [
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[note]}"),
        ]
        self._bar = RichProgress(*columns, console=Console(stderr=True), transient=True)
        self._task = self._bar.add_task(title, total=total, note="")
        self._bar.start()

    def advance(self, amount: int = 1, note: str = "") -> None:
        """Work was done."""
        if self._bar is not None:
            self._bar.update(self._task, advance=amount, **({"note": note} if note else {}))

    def done(self, note: str = "") -> None:
        """The step is finished."""
        self._stop()
        typer.echo(
            f"{self._title}: done in {time.monotonic() - self._begun:.1f} s{'; ' + note if note else ''}", err=True
        )

    def say(self, line: str) -> None:
        """A line for the user."""
        typer.echo(line, err=True)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def progress() -> Progress:
    """A bar on a terminal, plain lines elsewhere."""
    return Bar() if sys.stderr.isatty() else PlainLines()


def print_json(value: Any) -> None:
    """JSON for machines, on stdout."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))
