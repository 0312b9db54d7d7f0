"""User tables: TSV, CSV, JSON or Parquet, plain or compressed, streamed by column name.

Errors name file, line and column. ``BadRows`` decides whether a bad row ends the run or is counted.
"""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.csv_records import Records
from cogstage.errors import CogstageError, UsageError
from cogstage.input_files import (
    COMPRESSED,
    Meter,
    Paths,
    archive_of,
    bare_suffix,
    expand,
    files_in,
    is_archive,
    is_clean,
    lines_of,
    open_bytes,
    open_text,
    refuse_utf_16,
)
from cogstage.json_stream import BrokenJson, JsonScanner

__all__ = [
    "FORMATS",
    "BadRows",
    "Row",
    "bare_suffix",
    "column_names",
    "expand",
    "open_bytes",
    "read_rows",
    "table_kind",
]

FORMATS = {
    ".tsv": "tsv",
    ".tab": "tsv",
    ".csv": "csv",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
    ".parquet": "parquet",
}
PARQUET_ROWS = 16_384
_PLACE = re.compile(r"^.*?(?::\d+|, (?:citation|document) \d+)(?=[,: ])")  # file and line at the start of a message
_VALUE = re.compile(r"'[^']*'|\"[^\"]*\"|\b\d[\d,.]*")
KINDS_KEPT = 1_000  # kinds of bad rows that are told apart
KINDS_SHOWN = 8


@dataclass
class BadRows:
    """Handling of invalid rows: with ``skip`` they are counted by kind, otherwise the first one raises an error.

    ``kinds`` has for each kind of error, which is its message without places and values, how often it occurred and its
    first message. ``notices`` holds what is no mistake but should be known, with how often it happened (0: said once).
    """

    skip: bool = False
    count: int = 0
    lines: int = 0  # that the skipped rows took
    kinds: dict[str, tuple[int, str]] = field(default_factory=dict)
    notices: Counter[str] = field(default_factory=Counter)

    def report(self, message: str, lines: int = 1) -> None:
        """Raise the message, or count it and keep the first of its kind."""
        if not self.skip:
            raise CogstageError(f"{message} (set `skip` to skip and count such rows)")
        self.count += 1
        self.lines += lines
        self._add_kind(_VALUE.sub("…", _PLACE.sub("", message)), 1, message)

    def _add_kind(self, kind: str, count: int, message: str) -> None:
        kind = kind if kind in self.kinds or len(self.kinds) < KINDS_KEPT else "other"
        before, first = self.kinds.get(kind, (0, message))
        self.kinds[kind] = (before + count, first)

    @property
    def first(self) -> list[str]:
        """The first message of each kind."""
        return [message for _, message in self.kinds.values()]

    def notice(self, what: str, count: int = 1) -> None:
        """Count something that a user should know of; with ``count`` 0 it is said without a number."""
        self.notices[what] += count

    def add(self, other: BadRows) -> None:
        """Take over what another part of the same run counted."""
        self.count += other.count
        self.lines += other.lines
        for kind, (count, message) in other.kinds.items():
            self._add_kind(kind, count, message)
        for what, count in other.notices.items():
            self.notice(what, count)

    def to_dict(self) -> dict[str, Any]:
        """For JSON: the arguments that give an equal one."""
        return {
            "skip": self.skip, "count": self.count, "lines": self.lines,
            "kinds": self.kinds, "notices": dict(self.notices),
        }  # fmt: skip

    def summary(self) -> list[str]:
        """Lines for the user: what was skipped and what should be known."""
        lines = [f"{what}: {count:,}" if count else what for what, count in self.notices.items()]
        if self.count:
            cost = f" ({self.lines:,} lines)" if self.lines > self.count else ""
            lines.append(f"{self.count:,} bad rows{cost} were skipped; by kind, with the first of each:")
            kinds = sorted(self.kinds.values(), key=lambda kind: -kind[0])
            lines += [f"  {count:,} × {message}" for count, message in kinds[:KINDS_SHOWN]]
            if others := sum(count for count, _ in kinds[KINDS_SHOWN:]):
                lines.append(f"  {others:,} of other kinds")
        return lines


class _AllNeeded(BadRows):
    """For tables of which no row can be left out, so that no message offers it."""

    def report(self, message: str, lines: int = 1) -> None:
        raise CogstageError(message)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its values by column name (missing optional columns are None) and where it stands."""

    values: dict[str, Any]
    file: str
    line: int

    def __getitem__(self, column: str) -> Any:
        return self.values.get(column)

    def where(self, column: str | None = None) -> str:
        """``file:line`` or ``file:line, column c``, for messages."""
        line = f"{self.file}:{self.line}"
        return f"{line}, column {column}" if column else line


def read_rows(
    paths: Paths,
    required: Iterable[str],
    optional: Iterable[str] = (),
    bad: BadRows | None = None,
    renames: dict[str, str] | None = None,
    meter: Meter | None = None,
    may_be_empty: Iterable[str] = (),
) -> Iterator[Row]:
    """Stream the rows of one or several tables.

    ``required`` columns must be there and not empty (``may_be_empty``: must be there); ``optional`` ones come as None
    if they are missing or empty.
    ``renames`` maps other names a column may have (compared without case) to ours; ``meter`` counts the bytes read.
    Without ``bad``, the first row that cannot be used ends the run.
    """
    bad = bad if bad is not None else _AllNeeded()
    meter = meter or Meter()
    required, optional = tuple(required), tuple(optional)
    there = (*required, *may_be_empty)
    renames = {theirs.lower(): ours for theirs, ours in (renames or {}).items()}
    readers = {"tsv": _separated, "csv": _separated, "json": _json, "parquet": _parquet}
    files = [file for path in expand(paths) for file in (files_in(path) if is_archive(path) else [path])]
    for path in files:
        rows = readers[table_kind(path)](path, (*there, *optional), there, renames, bad, meter)
        try:
            for row in rows:
                missing = next((column for column in required if row.values.get(column) in (None, "")), None)
                spoilt = next((c for c, v in row.values.items() if isinstance(v, str) and not is_clean(v)), None)
                if missing is not None:
                    bad.report(f"{row.where(missing)}: no value")
                elif spoilt is not None:
                    bad.report(f"{row.where(spoilt)}: not UTF-8 text; convert the file to UTF-8")
                else:
                    yield row
        except (OSError, EOFError, pa.ArrowInvalid) as error:
            raise CogstageError(f"{path} is damaged or truncated: {error}") from error


def table_kind(path: Path) -> str:
    """``tsv``, ``csv``, ``json`` or ``parquet``, by the file's ending."""
    kind = FORMATS.get(bare_suffix(path))
    if kind is None:
        known = ", ".join(FORMATS)
        raise UsageError(
            f"{path}: unknown table format; supported extensions are {known}, optionally followed by .gz or .zst"
        )
    return kind


def column_names(path: Path) -> list[str]:
    """The columns of a table in lower case: its header, or the keys of the first readable JSON object."""
    kind = table_kind(path)
    try:
        if kind == "parquet":
            _check_parquet(path)
            return [str(name).lower() for name in pq.read_schema(path).names]
        if kind == "json":
            with contextlib.suppress(BrokenJson):
                for _, record in _json_records(path, BadRows(skip=True), Meter()):
                    if isinstance(record, dict):
                        return [key.lower() for key in record]
            return []
        with open_text(path) as handle:
            return [name.strip().lower() for name in next(Records(handle, path, BadRows(skip=True)), (0, []))[1]]
    except (OSError, pa.ArrowInvalid) as error:
        raise CogstageError(f"{path} is damaged or truncated: {error}") from error


def _columns(
    path: Path, names: Sequence[str], wanted: Sequence[str], required: Sequence[str], renames: dict[str, str]
) -> dict[str, int]:
    """Position of each wanted column by our name for it; one that is missing or there twice is an error."""
    positions: dict[str, int] = {}
    seen: set[str] = set()
    for position, name in enumerate(names):
        theirs = name.strip().lower()
        ours = renames.get(theirs, theirs)
        if ours not in wanted:
            continue
        if theirs in seen:
            raise CogstageError(f"{path}:1: the column {name.strip()} occurs twice; rename or remove one")
        seen.add(theirs)
        positions.setdefault(ours, position)
    for column in required:
        if column not in positions:
            there = ", ".join(names) or "none"
            raise CogstageError(f"{path}:1: no column {column}; the columns are {there}")
    return positions


def _separated(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows, meter: Meter
) -> Iterator[Row]:
    with open_text(path, meter) as handle:
        records = Records(handle, path, bad)
        _, header = next(records, (0, None))
        if header is None:
            raise CogstageError(f"{path}: the file is empty")
        positions = _columns(path, header, wanted, required, renames)
        kept = {column: positions[column] for column in wanted if column in positions}
        for line, record in records:
            yield Row({c: record[p] or None for c, p in kept.items()}, str(path), line)


def _json_records(path: Path, bad: BadRows, meter: Meter) -> Iterator[tuple[int, Any]]:
    """The values of JSON lines, or of one array of objects, with their lines; what cannot be parsed is reported."""
    with open_bytes(path, meter) as handle:
        refuse_utf_16(handle, path)
        begins = handle.peek(64).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        if begins == b"[" or (bare_suffix(path) == ".json" and begins != b""):
            text = io.TextIOWrapper(handle, encoding="utf-8-sig", errors="surrogateescape", newline="")
            yield from JsonScanner(text, path).items("")
            return
        for number, raw in lines_of(handle, path, bad):
            if raw.strip():
                try:
                    record = json.loads(raw)
                except UnicodeDecodeError as error:
                    bad.report(f"{path}:{number}: not UTF-8 text ({error.reason})")
                except (ValueError, RecursionError) as error:
                    column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
                    bad.report(f"{path}:{number}{column}: not JSON ({getattr(error, 'msg', error)})")
                else:
                    yield number, record


def _json(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows, meter: Meter
) -> Iterator[Row]:
    ours = _OurNames(renames)
    records = _json_records(path, bad, meter)
    try:
        for number, record in records:
            if not isinstance(record, dict):
                bad.report(f"{path}:{number}: not a JSON object")
                continue
            named = {ours[key]: value for key, value in record.items()}
            absent = next((column for column in required if column not in named), None)
            if absent is not None:
                bad.report(f"{path}:{number}: no column {absent}")
                continue
            yield Row({column: _none_if_empty(named.get(column)) for column in wanted}, str(path), number)
    except BrokenJson as error:  # an array that is broken cannot be read on
        bad.report(str(error))


class _OurNames(dict[str, str]):
    """A key as it occurs in a file -> our name for it, worked out once for each key and not for each line."""

    def __init__(self, renames: dict[str, str]) -> None:
        super().__init__()
        self._renames = renames

    def __missing__(self, key: str) -> str:
        name = self._renames.get(key.lower(), key.lower())
        if len(self) < 1_000:  # keys that are data must not fill the memory
            self[key] = name
        return name


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


def _check_parquet(path: Path) -> None:
    """Raise for Parquet inside an archive or compressed again, which cannot be read in parts."""
    if archive_of(path) is not None:
        raise UsageError(f"{path}: Parquet is not read inside an archive; unpack it first")
    if path.suffix.lower() in COMPRESSED:
        raise UsageError(f"{path}: Parquet is compressed already and is not read inside {path.suffix}; unpack it first")


def _parquet(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows, meter: Meter
) -> Iterator[Row]:
    _check_parquet(path)
    try:
        table = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise CogstageError(f"{path} is not a readable Parquet file: {error}") from error
    with table:
        names = table.schema_arrow.names
        positions = _columns(path, names, wanted, required, renames)
        kept = {column: names[positions[column]] for column in wanted if column in positions}
        number, begun, size, rows = 0, meter.position, path.stat().st_size, max(table.metadata.num_rows, 1)
        for batch in table.iter_batches(batch_size=PARQUET_ROWS, columns=list(kept.values())):
            try:
                columns = {ours: batch.column(theirs).to_pylist() for ours, theirs in kept.items()}
            except UnicodeDecodeError as error:
                raise CogstageError(f"{path}: not UTF-8 text after row {number} ({error.reason})") from None
            for index in range(batch.num_rows):
                number += 1
                values = {ours: _none_if_empty(column[index]) for ours, column in columns.items()}
                yield Row(values, str(path), number)
            meter.position = begun + size * number // rows
