"""Read large delimited files as a stream of column batches with bounded memory; errors name file and line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from cogstage.corpus.formats.omop import table_files
from cogstage.errors import CogstageError, UsageError
from cogstage.tables import BadRows, open_bytes

BLOCK = 16 << 20  # bytes read at a time


def find_file(folder: Path, names: Sequence[str]) -> Path | None:
    """The first of these files that the folder has, plain or compressed, whatever the case of its name."""
    there = {path.name.lower(): path for path in folder.iterdir()}
    for name in names:
        for ending in ("", ".gz", ".zst"):
            if (name + ending).lower() in there:
                return there[(name + ending).lower()]
    return None


def find_files(folder: Path, wanted: Sequence[str], advice: str) -> dict[str, Path]:
    """The files of a release by name; all that are missing are named at once."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; {advice}")
    found = {name: find_file(folder, [name]) for name in wanted}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        raise UsageError(f"{folder} has no {', '.join(missing)} (plain or .gz); {advice}")
    return {name: path for name, path in found.items() if path is not None}


def find_tables(folder: Path, wanted: Sequence[str], advice: str) -> dict[str, list[Path]]:
    """The files of OMOP tables by name, as ``graph build`` finds them; all that are missing are named at once."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; {advice}")
    found = {name: table_files(folder, name.lower()) for name in wanted}
    missing = [name for name, paths in found.items() if not paths]
    if missing:
        raise UsageError(f"{folder} has no {', '.join(missing)} (CSV, TSV or Parquet); {advice}")
    return found


def table_batches(
    paths: Sequence[Path], wanted: Sequence[str], bad: BadRows, optional: Sequence[str] = ()
) -> Iterator[pa.RecordBatch]:
    """Batches of the ``wanted`` and ``optional`` columns of a table with a header, all as text and without nulls.

    Vocabulary downloads are separated by tabs and have no quotes; tables that people export have commas and quotes, or
    are Parquet. Which it is shows in the file. Column names are compared without case; integers that were
    written as floats (1.0) lose their point.
    """
    for path in paths:
        if path.suffix.lower() == ".parquet":
            yield from _parquet_batches(path, wanted, optional)
        else:
            yield from _separated_batches(path, wanted, optional, bad)


def _separated_batches(
    path: Path, wanted: Sequence[str], optional: Sequence[str], bad: BadRows
) -> Iterator[pa.RecordBatch]:
    with open_bytes(path) as handle:
        first = handle.readline().decode("utf-8-sig", "replace")
    delimiter = "\t" if "\t" in first else ";" if first.count(";") > first.count(",") else ","
    columns = [name.strip().strip('"') for name in first.rstrip("\r\n").split(delimiter)]
    own = _own_names(path, columns, wanted, optional)
    for batch in batches(path, columns, list(own.values()), delimiter, bad, header=True, quotes=delimiter != "\t"):
        yield _as_text(batch, own, [*wanted, *optional])


def _own_names(path: Path, columns: Sequence[str], wanted: Sequence[str], optional: Sequence[str]) -> dict[str, str]:
    """How the file writes the wanted columns, and the optional ones that it has."""
    known = {name.lower(): name for name in columns}
    missing = [name for name in wanted if name.lower() not in known]
    if missing:
        raise CogstageError(f"{path}: no column {', '.join(missing)}; the columns are {', '.join(columns)}")
    return {name: known[name.lower()] for name in (*wanted, *optional) if name.lower() in known}


def _parquet_batches(path: Path, wanted: Sequence[str], optional: Sequence[str]) -> Iterator[pa.RecordBatch]:
    try:
        with pq.ParquetFile(path) as file:
            own = _own_names(path, file.schema_arrow.names, wanted, optional)
            for batch in file.iter_batches(columns=list(own.values())):
                yield _as_text(batch, own, [*wanted, *optional])
    except (pa.ArrowInvalid, OSError) as error:
        raise CogstageError(f"{path}: damaged or truncated ({str(error).splitlines()[0]})") from error


def _as_text(batch: pa.RecordBatch, own: Mapping[str, str], names: Sequence[str]) -> pa.RecordBatch:
    """The columns under our names; an optional one that the file does not have is empty."""
    columns = []
    for name in names:
        if name not in own:
            columns.append(pa.repeat("", batch.num_rows))
            continue
        column = batch.column(own[name])
        if not pa.types.is_string(column.type):
            column = pc.cast(column, pa.string())
        column = pc.fill_null(column, "")
        columns.append(pc.replace_substring_regex(column, r"^(\d+)\.0$", r"\1"))
    return pa.RecordBatch.from_arrays(columns, names=list(names))


def batches(
    path: Path,
    columns: Sequence[str],
    wanted: Sequence[str],
    delimiter: str,
    bad: BadRows,
    header: bool = False,
    quotes: bool = False,
) -> Iterator[pa.RecordBatch]:
    """Batches of the ``wanted`` columns, all as text.

    ``columns`` are all columns of a row in order; with ``header`` the file's own first line has them instead, and
    ``columns`` is not looked at.
    """
    wrong: list[tuple[int | None, int, int]] = []

    def note(row: Any) -> str:
        # With a header, or with column names given, Arrow numbers the rows as lines of the file from 1.
        wrong.append((row.number, row.actual_columns, row.expected_columns))
        return "skip"

    parse = pa_csv.ParseOptions(
        delimiter=delimiter,
        quote_char='"' if quotes else False,
        double_quote=quotes,
        escape_char=False,
        newlines_in_values=quotes,
        invalid_row_handler=note,
    )
    read = pa_csv.ReadOptions(
        use_threads=False, block_size=BLOCK, column_names=None if header else list(columns), encoding="utf8"
    )
    convert = pa_csv.ConvertOptions(
        include_columns=list(wanted),
        column_types={name: pa.string() for name in wanted},
        strings_can_be_null=False,
        check_utf8=True,
    )
    with open_bytes(path) as handle:
        try:
            reader = pa_csv.open_csv(handle, read_options=read, parse_options=parse, convert_options=convert)
            while True:
                try:
                    batch = reader.read_next_batch()
                except StopIteration:
                    break
                _report(path, wrong, bad)
                yield batch
        except (pa.ArrowInvalid, pa.ArrowKeyError, OSError, EOFError, UnicodeDecodeError) as error:
            _report(path, wrong, bad)
            raise CogstageError(f"{path}: {_reason(error, columns)}") from error
    _report(path, wrong, bad)


def _report(path: Path, wrong: list[tuple[int | None, int, int]], bad: BadRows) -> None:
    for number, actual, expected in wrong:
        where = f"{path}:{number}" if number else str(path)
        bad.report(f"{where}: {actual} columns where {expected} are expected")
    wrong.clear()


def _reason(error: Exception, columns: Sequence[str]) -> str:
    text = str(error).split("\n")[0]
    if "Empty CSV" in text:
        return "the file is empty"
    if "UTF8" in text.upper().replace("-", ""):
        return f"not UTF-8 text ({text})"
    if isinstance(error, pa.ArrowKeyError):
        return f"{text}; the columns of this file must be {', '.join(columns)}"
    return f"damaged or truncated ({text})"
