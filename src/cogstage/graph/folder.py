"""Writing a graph folder from a stream of edges, so that a graph need not fit memory; equal content is equal bytes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.graph.edges import Edges

ROW_GROUP = 1 << 20  # rows a row group, whatever the size of the pieces that come
SCHEMA = pa.schema([("source", pa.int32()), ("target", pa.int32()), ("count", pa.int64())])


def write_edges(path: Path, edges: Iterable[Edges]) -> int:
    """Write ``edges.parquet`` from sorted pieces; how many edges there were."""
    total = 0
    with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
        for columns in _even(edges):
            writer.write_table(pa.table(columns, SCHEMA), row_group_size=ROW_GROUP)
            total += len(columns[0])
    return total


def _even(edges: Iterable[Edges]) -> Iterator[list[np.ndarray]]:
    """The same edges in pieces of exactly a row group, the last one smaller."""
    held: list[list[np.ndarray]] = []
    size = 0
    for part in edges:
        held.append([part.source.astype(np.int32), part.target.astype(np.int32), part.count.astype(np.int64)])
        size += len(part)
        if size >= ROW_GROUP:
            whole = [np.concatenate(columns) for columns in zip(*held, strict=True)]
            full = size - size % ROW_GROUP
            for at in range(0, full, ROW_GROUP):
                yield [column[at : at + ROW_GROUP] for column in whole]
            held, size = [[column[full:] for column in whole]], size - full
    if size:
        yield [np.concatenate(columns) for columns in zip(*held, strict=True)]
