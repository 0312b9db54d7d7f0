"""Progress in a terminal or notebook by default, and nothing in a pipe."""

from __future__ import annotations

import io

import pytest

from cogstage.progress import SILENT, LiveLine, default_progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(text: str) -> list[str]:
    """The lines as a terminal shows them: a carriage return begins to write over the line."""
    lines = []
    for line in text.split("\n"):
        cells: list[str] = []
        for part in line.split("\r"):
            cells[: len(part)] = part
        lines.append("".join(cells).rstrip())
    return lines


def test_one_line_is_written_over() -> None:
    stream = Terminal()
    progress = LiveLine(stream, every=0)
    progress.start("Training round", 40)
    progress.advance(10, "loss 0.5")
    assert shown(stream.getvalue()) == ["Training round: 10 of 40 loss 0.5"]
    progress.say("stopped early")
    progress.done("F1 0.8")
    lines = shown(stream.getvalue())
    assert lines[0] == "stopped early"
    assert lines[1].startswith("Training round: done in ")
    assert lines[1].endswith("s; F1 0.8")
    assert lines[2:] == [""]


def test_the_default_depends_on_where_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    assert isinstance(default_progress(), LiveLine)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert default_progress() is SILENT
