"""Tables that people bring: TSV, CSV, JSON lines or Parquet, plain, gzip or zstd, read by column name as a stream.

Every complaint names file, line and column. ``BadRows`` decides whether a bad row ends the run or is counted.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

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


def open_bytes(path: Path) -> IO[bytes]:
    """The file's content as a byte stream, decompressed on the way where its name says so."""
    compression = COMPRESSED.get(path.suffix.lower())
    try:
        if compression is None:
            return path.open("rb")
        stream: IO[bytes] = pa.input_stream(str(path), compression=compression)
        return stream
    except (OSError, pa.ArrowInvalid) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def open_text(path: Path) -> io.TextIOWrapper:
    """The file's content as UTF-8 text (a byte order mark is passed over)."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline="")


def read_rows(
    paths: str | Path | Sequence[str | Path],
    required: Iterable[str],
    optional: Iterable[str] = (),
    bad: BadRows | None = None,
    renames: dict[str, str] | None = None,
) -> Iterator[Row]:
    """Stream the rows of one or several tables.

    ``required`` columns must be there and not empty; ``optional`` ones come as None where they are missing or empty.
    ``renames`` maps other names a column may have (compared without case) to ours.
    """
    bad = bad or BadRows()
    required, optional = tuple(required), tuple(optional)
    for path in expand(paths):
        kind = FORMATS.get(bare_suffix(path))
        if kind is None:
            known = ", ".join(FORMATS)
            raise UsageError(f"{path}: unknown kind of table; known endings are {known} (and .gz, .zst behind them)")
        reader = {"tsv": _separated, "csv": _separated, "json": _json_lines, "parquet": _parquet}[kind]
        rows = reader(path, (*required, *optional), required, renames or {}, bad)
        try:
            for row in rows:
                missing = next((column for column in required if row.values.get(column) in (None, "")), None)
                if missing is None:
                    yield row
                else:
                    bad.report(f"{row.where(missing)}: no value")
        except (OSError, EOFError, pa.ArrowInvalid) as error:
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


def _separated(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows
) -> Iterator[Row]:
    csv.field_size_limit(sys.maxsize)
    with open_text(path) as handle:
        if bare_suffix(path) == ".csv":
            reader = csv.reader(handle, strict=True)
        else:
            reader = csv.reader(handle, delimiter="\t", quoting=csv.QUOTE_NONE)
        header = _next_record(reader, path, bad)
        if header is None:
            raise CogstageError(f"{path}: the file is empty")
        positions = _columns(path, header, required, renames)
        kept = {column: positions[column] for column in wanted if column in positions}
        while (record := _next_record(reader, path, bad)) is not None:
            if not record:
                continue
            if len(record) != len(header):
                bad.report(f"{path}:{reader.line_num}: {len(record)} columns where the header has {len(header)}")
                continue
            yield Row({c: record[p] or None for c, p in kept.items()}, str(path), reader.line_num)


def _next_record(reader: Any, path: Path, bad: BadRows) -> list[str] | None:
    """The next record, passing over those that cannot be decoded or parsed as ``bad`` says."""
    while True:
        try:
            return list(next(reader))
        except StopIteration:
            return None
        except UnicodeDecodeError as error:
            raise CogstageError(f"{path}:{reader.line_num + 1}: not UTF-8 text ({error.reason})") from None
        except csv.Error as error:
            bad.report(f"{path}:{reader.line_num}: {error}")


def _json_lines(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows
) -> Iterator[Row]:
    with open_bytes(path) as handle:
        for number, raw in enumerate(handle, start=1):
            if not raw.strip():
                continue
            try:
                record = json.loads(raw)
            except UnicodeDecodeError as error:
                bad.report(f"{path}:{number}: not UTF-8 text ({error.reason})")
                continue
            except ValueError as error:
                bad.report(f"{path}:{number}: not JSON ({error})")
                continue
            if not isinstance(record, dict):
                bad.report(f"{path}:{number}: not a JSON object")
                continue
            named = {renames.get(key.lower(), key.lower()): value for key, value in record.items()}
            absent = next((column for column in required if column not in named), None)
            if absent is not None:
                bad.report(f"{path}:{number}: no column {absent}")
                continue
            yield Row({column: named.get(column) for column in wanted}, str(path), number)


def _parquet(
    path: Path, wanted: Sequence[str], required: Sequence[str], renames: dict[str, str], bad: BadRows
) -> Iterator[Row]:
    try:
        table = pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise CogstageError(f"{path} is not a readable Parquet file: {error}") from error
    with table:
        names = table.schema_arrow.names
        positions = _columns(path, names, required, renames)
        kept = {column: names[positions[column]] for column in wanted if column in positions}
        number = 0
        for batch in table.iter_batches(batch_size=PARQUET_ROWS, columns=list(kept.values())):
            columns = {ours: batch.column(theirs).to_pylist() for ours, theirs in kept.items()}
            for index in range(batch.num_rows):
                number += 1
                yield Row({ours: values[index] for ours, values in columns.items()}, str(path), number)
