"""Records of CSV and TSV files, parsed so that one invalid row costs only that row."""

from __future__ import annotations

import csv
import io
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from cogstage.errors import CogstageError
from cogstage.input_files import LONGEST_LINE, Reports, bare_suffix, lines_of

SEPARATORS = ",;\t|"
RESCANNED = 20  # limit of re-read lines per line of the file, before the file is refused


def separator_of(header: str) -> str:
    """The most common separator in a header line; a comma if there is none."""
    return max(SEPARATORS, key=lambda mark: (header.count(mark), -SEPARATORS.index(mark)))


class _Lines:
    """Lines for a CSV parser: those of the record under way are kept, so that parsing can begin again behind the first.

    It can be asked again after its end, when lines were handed back.
    """

    def __init__(self, lines: Iterator[tuple[int, str]]) -> None:
        self._lines = lines
        self._again: deque[tuple[int, str]] = deque()
        self.record: list[tuple[int, str]] = []
        self.length = 0
        self.fresh = self.rescanned = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        if self._again:
            numbered = self._again.popleft()
            self.rescanned += 1
        else:
            numbered = next(self._lines)
            self.fresh += 1
        self.record.append(numbered)
        self.length += len(numbered[1])
        if self.length > LONGEST_LINE:
            raise csv.Error(f"more than {LONGEST_LINE:,} characters in one row (an unclosed quote?)")
        return numbered[1]

    def begin(self) -> None:
        """The next line begins a record."""
        self.record, self.length = [], 0

    def hand_back(self) -> int:
        """Give all lines of the record but the first back; says which number the first has."""
        self._again.extendleft(reversed(self.record[1:]))
        return self.record[0][0]


class Records:
    """Records of a CSV or TSV file with the line each begins in; the first is the header.

    A quote that never closes would make one record of the rest of the file. So a record over several lines that cannot
    be parsed, or has not the header's number of columns, costs its first line only, and parsing begins again behind it.
    """

    def __init__(self, handle: io.TextIOWrapper, path: Path, bad: Reports) -> None:
        csv.field_size_limit(sys.maxsize)
        self.path, self.bad = path, bad
        first = next(lines := lines_of(handle, path, bad), None)
        self._lines = _Lines(iter(()) if first is None else _chain(first, lines))
        separator = separator_of(first[1]) if first is not None else ","
        if bare_suffix(path) == ".csv" and separator != "\t":
            self._parser = csv.reader(self._lines, delimiter=separator, strict=True)
        else:
            self._parser = csv.reader(self._lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        self._width: int | None = None
        self._broken: tuple[str, int] | None = None  # message and lines of a bad record that may still go on

    def __iter__(self) -> Records:
        return self

    def __next__(self) -> tuple[int, list[str]]:
        while True:
            self._lines.begin()
            try:
                record = next(self._parser)
            except StopIteration:
                self._report()
                raise
            except csv.Error as error:
                self._give_up(str(error))
                continue
            if not record:
                continue
            line = self._lines.record[0][0]
            if self._width is None:
                self._width = len(record)
            elif len(record) != self._width:
                message = f"{len(record)} columns where the header has {self._width}"
                if len(self._lines.record) > 1:
                    self._give_up(message)
                elif self._broken is not None:  # the rest of a record whose quotes did not match
                    self._broken = (self._broken[0], self._broken[1] + 1)
                else:
                    self.bad.report(f"{self.path}:{line}: {message}")
                continue
            self._report()
            return line, record

    def _give_up(self, why: str) -> None:
        """Leave out the first line of a record and begin again with the second."""
        if len(self._lines.record) == 1:
            self._report()
        line = self._lines.hand_back()
        message = f"{self.path}:{line}: {why}"
        if not self.bad.skip:
            self.bad.report(message)
        if self._broken is None:
            self._broken = (message, 1)
        else:
            self._broken = (self._broken[0], self._broken[1] + 1)
        if self._lines.rescanned > 1_000 + RESCANNED * self._lines.fresh:
            raise CogstageError(f"{message}; quotes are unbalanced in too many rows to continue reading")

    def _report(self) -> None:
        if self._broken is not None:
            message, lines = self._broken
            self.bad.report(f"{message}; {lines:,} line{'s' if lines > 1 else ''} left out", lines)
            self._broken = None


def _chain(first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    yield first
    yield from rest
