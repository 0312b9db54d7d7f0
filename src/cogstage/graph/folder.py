"""Write a graph folder from a stream of edges that need not fit in memory. Equal content gives equal bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.graph.edges import Edges

ROW_GROUP = 1 << 20  # rows per row group, regardless of the size of the pieces that come
EDGES, ORDER, EXAMPLES = "edges.parquet", "order.parquet", "examples.parquet"
SCHEMA = pa.schema([("source", pa.int32()), ("target", pa.int32()), ("count", pa.int64())])
ORDER_COLUMNS = ("source_first", "target_first", "same_day")
ORDER_SCHEMA = pa.schema([("source", pa.int32()), ("target", pa.int32()), *((c, pa.int32()) for c in ORDER_COLUMNS)])


def write_edges(folder: Path, edges: Iterable[Edges], order: bool = False) -> int:
    """Write ``edges.parquet`` (and ``order.parquet``) from sorted pieces; how many edges there were."""
    total = 0
    with ExitStack() as stack:
        counts = stack.enter_context(_Table(folder / EDGES, SCHEMA))
        orders = stack.enter_context(_Table(folder / ORDER, ORDER_SCHEMA)) if order else None
        for part in edges:
            ends = [part.source.astype(np.int32), part.target.astype(np.int32)]
            counts.add([*ends, part.count.astype(np.int64)])
            if orders is not None and part.order is not None:
                kept = part.order.any(axis=1)
                orders.add([*(end[kept] for end in ends), *part.order[kept].astype(np.int32).T])
            total += len(part)
    return total


class _Table:
    """A Parquet file whose row groups have one size, regardless of the size of the pieces that are added."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._writer, self._schema = pq.ParquetWriter(path, schema, compression="zstd"), schema
        self._held: list[list[np.ndarray]] = []
        self._size = 0

    def __enter__(self) -> _Table:
        return self

    def add(self, columns: list[np.ndarray]) -> None:
        """Rows that follow those before."""
        self._held.append(columns)
        self._size += len(columns[0])
        if self._size >= ROW_GROUP:
            whole = [np.concatenate(column) for column in zip(*self._held, strict=True)]
            full = self._size - self._size % ROW_GROUP
            for at in range(0, full, ROW_GROUP):
                self._write([column[at : at + ROW_GROUP] for column in whole])
            self._held, self._size = [[column[full:] for column in whole]], self._size - full

    def _write(self, columns: list[np.ndarray]) -> None:
        self._writer.write_table(pa.table(columns, self._schema), row_group_size=ROW_GROUP)

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._size:
            self._write([np.concatenate(column) for column in zip(*self._held, strict=True)])
        self._writer.close()


def read_columns(path: Path, columns: Iterable[str]) -> list[np.ndarray]:
    """Columns of a Parquet file as arrays, row group by row group, so that nothing is held twice.

    Whole numbers of 64 bits come as 32 bits where the file says that all of them fit.
    """
    names = list(columns)
    with pq.ParquetFile(path) as file:
        kinds = [_kind(file, name) for name in names]
        arrays = [np.zeros(file.metadata.num_rows, kind) for kind in kinds]
        at = 0
        for batch in _batches(file, names):
            for array, column in zip(arrays, batch.columns, strict=True):
                array[at : at + len(column)] = _values(column)
            at += batch.num_rows
    return arrays


def _values(column: pa.Array) -> Any:
    """A column as an array; pyarrow's own conversion would load pandas, 60 MB, where it is installed."""
    plain = column.null_count == 0 and pa.types.is_integer(column.type)
    return np.from_dlpack(column) if plain else column.to_numpy(zero_copy_only=False)


def _kind(file: pq.ParquetFile, name: str) -> Any:
    """The type of a column's array."""
    kind = file.schema_arrow.field(name).type.to_pandas_dtype()
    if kind != np.int64:
        return kind
    column, groups = file.schema_arrow.get_field_index(name), range(file.metadata.num_row_groups)
    ranges = [file.metadata.row_group(group).column(column).statistics for group in groups]
    fit = (each is not None and each.has_min_max and -(2**31) <= each.min <= each.max < 2**31 for each in ranges)
    return np.int32 if all(fit) else np.int64


def _batches(file: pq.ParquetFile, names: list[str]) -> Iterator[pa.RecordBatch]:
    yield from file.iter_batches(batch_size=1 << 18, columns=names)
