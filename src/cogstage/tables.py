"""Tables that people bring: TSV, CSV, JSON lines or Parquet, plain, gzip or zstd, read by column name as a stream.

Every complaint names file, line and column. ``BadRows`` decides whether a bad row ends the run or is counted.
"""

from __future__ import annotations

import contextlib
import csv
import glob
import io
import itertools
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.errors import CogstageError, UsageError

COMPRESSED = {".gz": "gzip", ".zst": "zstd"}
FORMATS = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".jsonl": "json", ".ndjson": "json", ".parquet": "parquet"}
PARQUET_ROWS = 16_384


@dataclass
class BadRows:
    """What happens to a row that cannot be used: with ``skip`` it is counted, without it the run ends."""

    skip: bool = False
    count: int = 0
    first: list[str] = field(default_factory=list)

    def report(self, message: str) -> None:
        """Raise the message, or count it and keep the first few for the closing words."""
        if not self.skip:
            raise CogstageError(f"{message} (--skip-bad leaves such rows out and counts them)")
        self.count += 1
        if len(self.first) < 5:
            self.first.append(message)


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
        place = f"{self.file}:{self.line}"
        return f"{place}, column {column}" if column else place


def expand(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    """Files behind a path, several paths, or globs, in a stable order; a path that is not there is an error."""
    found: list[Path] = []
    for entry in [paths] if isinstance(paths, (str, Path)) else paths:
        path = Path(entry)
        if path.exists():
            found.append(path)
            continue
        matches = sorted(glob.glob(str(entry), recursive=True))
        if not matches:
            raise UsageError(f"no such file: {entry}")
        found.extend(Path(match) for match in matches)
    return found


def bare_suffix(path: Path) -> str:
    """The suffix that names the format: ``.tsv`` of ``notes.tsv.gz``."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in COMPRESSED:
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


@dataclass
class Meter:
    """How many bytes of the files were read so far (before decompression), for a progress bar."""

    position: int = 0


class _MeteredFile(io.RawIOBase):
    """A file that tells a meter what was read of it."""

    def __init__(self, path: Path, meter: Meter) -> None:
        self._file = path.open("rb", buffering=0)
        self._meter = meter

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer) or 0
        self._meter.position += count
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_bytes(path: Path, meter: Meter | None = None) -> io.BufferedReader:
    """The file's content as a byte stream, decompressed on the way where its name says so."""
    compression = COMPRESSED.get(path.suffix.lower())
    try:
        file: Any = _MeteredFile(path, meter or Meter())
        if compression is not None:
            file = pa.CompressedInputStream(pa.PythonFile(file, mode="r"), compression)
        return io.BufferedReader(file, 1 << 16)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error


def open_text(path: Path, meter: Meter | None = None) -> io.TextIOWrapper:
    """The file's content as UTF-8 text (a byte order mark is passed over).

    Bytes that are not UTF-8 come as lone surrogates, so that the reader can say in which line they stand: see
    :func:`is_clean`.
    """
    return io.TextIOWrapper(open_bytes(path, meter), encoding="utf-8-sig", errors="surrogateescape", newline="")


def is_clean(text: str) -> bool:
    """Whether the text was UTF-8 throughout."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_rows(
    paths: str | Path | Sequence[str | Path],
    required: Iterable[str],
    optional: Iterable[str] = (),
    bad: BadRows | None = None,
    renames: dict[str, str] | None = None,
    meter: Meter | None = None,
) -> Iterator[Row]:
    """Stream the rows of one or several tables.

    ``required`` columns must be there and not empty; ``optional`` ones come as None where they are missing or empty.
    ``renames`` maps other names a column may have (compared without case) to ours; ``meter`` counts the bytes read.
    """
    bad = bad if bad is not None else BadRows()
    meter = meter or Meter()
    required, optional = tuple(required), tuple(optional)
    for path in expand(paths):
        reader = {"tsv": _separated, "csv": _separated, "json": _json_lines, "parquet": _parquet}[table_kind(path)]
        rows = reader(path, (*required, *optional), required, renames or {}, bad, meter)
        try:
            for row in rows:
                missing = next((column for column in required if row.values.get(column) in (None, "")), None)
                if missing is None:
                    yield row
                else:
                    bad.report(f"{row.where(missing)}: no value")
        except (OSError, EOFError, pa.ArrowInvalid) as error:
            raise CogstageError(f"{path} is damaged or cut short: {error}") from error


def table_kind(path: Path) -> str:
    """``tsv``, ``csv``, ``json`` or ``parquet``, by the file's ending."""
    kind = FORMATS.get(bare_suffix(path))
    if kind is None:
        known = ", ".join(FORMATS)
        raise UsageError(f"{path}: unknown kind of table; known endings are {known} (and .gz, .zst behind them)")
    return kind


def column_names(path: Path) -> list[str]:
    """The columns of a table in lower case: its header, or the keys of the first readable JSON line."""
    kind = table_kind(path)
    try:
        if kind == "parquet":
            return [str(name).lower() for name in pq.read_schema(path).names]
        if kind == "json":
            with open_bytes(path) as handle:
                for raw in handle:
                    with contextlib.suppress(ValueError, RecursionError):
                        if isinstance(record := json.loads(raw), dict):
                            return [key.lower() for key in record]
            return []
        with open_text(path) as handle:
            return [name.strip().lower() for name in next(_delimited(path, handle), [])]
    except (OSError, pa.ArrowInvalid, csv.Error) as error:
        raise CogstageError(f"{path} is damaged or cut short: {error}") from error


def _columns(path: Path, names: Sequence[str], required: Sequence[str], renames: dict[str, str]) -> dict[str, int]:
    """Position of each column by our name for it; a needed one that is missing is an error with what is there."""
    positions: dict[str, int] = {}
    for position, name in enumerate(names):
        ours = name.strip().lower()
        positions.setdefault(renames.get(ours, ours), position)
    for column in required:
        if column not in positions:
            there = ", ".join(names) or "none"
            raise CogstageError(f"{path}:1: no column {column}; the columns are {there}")
    return positions


def _delimited(path: Path, handle: io.TextIOWrapper) -> Any:
    """A CSV reader for the file: commas and quotes in .csv (tabs if its first line has tabs alone), tabs elsewhere."""
    csv.field_size_limit(sys.maxsize)
    lines = iter(handle)
    first = next(lines, "")
    lines = itertools.chain([first] if first else [], lines)
    if bare_suffix(path) == ".csv" and not ("\t" in first and "," not in first):
        return csv.reader(lines, strict=True)
    return csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)


def _separated(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows, meter: Meter
) -> Iterator[Row]:
    with open_text(path, meter) as handle:
        reader = _delimited(path, handle)
        header = next(_records(reader, path, bad), (0, None))[1]
        if header is None:
            raise CogstageError(f"{path}: the file is empty")
        positions = _columns(path, header, required, renames)
        kept = {column: positions[column] for column in wanted if column in positions}
        for line, record in _records(reader, path, bad):
            if len(record) != len(header):
                bad.report(f"{path}:{line}: {len(record)} columns where the header has {len(header)}")
                continue
            row = Row({c: record[p] or None for c, p in kept.items()}, str(path), line)
            spoilt = next((c for c, value in row.values.items() if value and not is_clean(value)), None)
            if spoilt is not None:
                bad.report(f"{row.where(spoilt)}: not UTF-8 text; convert the file to UTF-8")
                continue
            yield row


def _records(reader: Any, path: Path, bad: BadRows) -> Iterator[tuple[int, list[str]]]:
    """Records that are not empty, with the line each begins in; ``bad`` says what happens to the others."""
    while True:
        line = reader.line_num + 1
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad.report(f"{path}:{line}: {error}")
            continue
        if record:
            yield line, record


def _json_lines(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows, meter: Meter
) -> Iterator[Row]:
    ours = _OurNames(renames)
    with open_bytes(path, meter) as handle:
        for number, raw in enumerate(handle, start=1):
            if not raw.strip():
                continue
            try:
                record = json.loads(raw)
            except UnicodeDecodeError as error:
                bad.report(f"{path}:{number}: not UTF-8 text ({error.reason})")
                continue
            except (ValueError, RecursionError) as error:
                column = f", column {error.colno}" if isinstance(error, json.JSONDecodeError) else ""
                bad.report(f"{path}:{number}{column}: not JSON ({getattr(error, 'msg', error)})")
                continue
            if not isinstance(record, dict):
                bad.report(f"{path}:{number}: not a JSON object")
                continue
            named = {ours[key]: value for key, value in record.items()}
            absent = next((column for column in required if column not in named), None)
            if absent is not None:
                bad.report(f"{path}:{number}: no column {absent}")
                continue
            yield Row({column: _none_if_empty(named.get(column)) for column in wanted}, str(path), number)


class _OurNames(dict[str, str]):
    """A key as it stands in a file -> our name for it; told once for each key, and not for each line."""

    def __init__(self, renames: dict[str, str]) -> None:
        super().__init__()
        self._renames = renames

    def __missing__(self, key: str) -> str:
        found = self._renames.get(key.lower(), key.lower())
        if len(self) < 1_000:  # keys that are data must not fill the memory
            self[key] = found
        return found


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


def _parquet(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows, meter: Meter
) -> Iterator[Row]:
    try:
        table = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise CogstageError(f"{path} is not a readable Parquet file: {error}") from error
    with table:
        names = table.schema_arrow.names
        positions = _columns(path, names, required, renames)
        kept = {column: names[positions[column]] for column in wanted if column in positions}
        number, begun, size, rows = 0, meter.position, path.stat().st_size, max(table.metadata.num_rows, 1)
        for batch in table.iter_batches(batch_size=PARQUET_ROWS, columns=list(kept.values())):
            try:
                columns = {ours: batch.column(theirs).to_pylist() for ours, theirs in kept.items()}
            except UnicodeDecodeError as error:
                raise CogstageError(f"{path}: not UTF-8 text behind row {number} ({error.reason})") from None
            for index in range(batch.num_rows):
                number += 1
                values = {ours: _none_if_empty(column[index]) for ours, column in columns.items()}
                yield Row(values, str(path), number)
            meter.position = begun + size * number // rows
