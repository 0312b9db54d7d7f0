"""What the commands share: progress on a terminal or as plain lines, and JSON for machines."""

from __future__ import annotations

import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from cogstage.progress import SILENT, Progress

if TYPE_CHECKING:
    from cogstage.graph.cooccurrence import Graph
    from cogstage.tables import BadRows


LOG = logging.getLogger("cogstage")


def say(line: str) -> None:
    """A line for the user, on stderr; parameters that the library names become flags."""
    from cogstage.cli.flags import with_flags

    typer.echo(with_flags(line), err=True)


class PlainLines:
    """Progress if there is no terminal: a line when a step begins and ends, one every ten seconds between."""

    def __init__(self, every: float = 10.0) -> None:
        self._every = every
        self._title, self._total, self._count, self._begun, self._said = "", None, 0, 0.0, 0.0  # type: tuple[str, int | None, int, float, float]

    def start(self, title: str, total: int | None = None) -> None:
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
        typer.echo(
            f"  {self._title}: done in {time.monotonic() - self._begun:.1f} s{'; ' + note if note else ''}", err=True
        )

    def say(self, line: str) -> None:
        """A line for the user."""
        say(line)


class ProgressBar:
    """Progress on a terminal: one bar per step, what is finished stays as a line."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None
        self._title = ""
        self._begun = 0.0

    def start(self, title: str, total: int | None = None) -> None:
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
        if self._bar is not None:
            self._bar.update(self._task, advance=amount, **({"note": note} if note else {}))

    def done(self, note: str = "") -> None:
        self._stop()
        typer.echo(
            f"{self._title}: done in {time.monotonic() - self._begun:.1f} s{'; ' + note if note else ''}", err=True
        )

    def say(self, line: str) -> None:
        """A line for the user."""
        say(line)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def progress() -> Progress:
    """A bar on a terminal, plain lines elsewhere, nothing with --quiet."""
    if LOG.level >= logging.ERROR:
        return SILENT
    return ProgressBar() if sys.stderr.isatty() else PlainLines()


def set_level(verbose: bool, quiet: bool) -> None:
    """--verbose logs to stderr what the library does; --quiet shows errors alone."""
    LOG.setLevel(logging.DEBUG if verbose else logging.ERROR if quiet else logging.NOTSET)
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s: %(message)s"))
    LOG.handlers[:] = [handler] if verbose else []


def is_verbose() -> bool:
    """Whether --verbose was given."""
    return LOG.level == logging.DEBUG


def environment_lines() -> list[str]:
    """What a bug report needs: Python, system, processors, and the version of each requirement that is installed."""
    import platform
    from importlib.metadata import PackageNotFoundError, requires, version
    from re import match

    lines = [f"Python {platform.python_version()} ({sys.executable})", platform.platform()]
    lines.append(f"{os.cpu_count()} processors, OMP_NUM_THREADS {os.environ.get('OMP_NUM_THREADS', 'not set')}")
    try:
        needed = requires("cogstage") or []
    except PackageNotFoundError:  # run from its source
        return lines
    names = dict.fromkeys(found[0] for each in needed if (found := match(r"[\w.-]+", each)))
    for name in names:
        with suppress(PackageNotFoundError):
            lines.append(f"{name} {version(name)}")
    return lines


def print_json(value: Any) -> None:
    """JSON for machines, on stdout."""
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def say_skipped(bad: BadRows) -> None:
    """What was skipped and what should be known, on stderr."""
    for line in bad.summary():
        say(line)


def save_graph(graph: Graph, out: Path, as_json: bool, licences: Sequence[str] = ()) -> None:
    """Write a graph, with the licences of its input, and say how large it is."""
    graph.save(out, {**graph.made_with, "licences": list(licences)} if licences else None)
    report_graph(graph, out, as_json)


def report_graph(graph: Graph, out: Path, as_json: bool) -> None:
    """Say how large a written graph is."""
    if as_json:
        print_json({"nodes": graph.n_nodes, "edges": graph.n_edges, "out": str(out)})
    else:
        typer.echo(f"{out}: {graph.n_nodes:,} nodes, {graph.n_edges:,} edges")
