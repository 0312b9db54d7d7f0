"""Examples of counted pairs, as they are kept and looked up; :mod:`cogstage.graph.examples` gathers them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cogstage.errors import CogstageError

TEXT = pa.dictionary(pa.int32(), pa.large_string())
SCHEMA = pa.schema(
    [
        ("source", pa.int32()),
        ("target", pa.int32()),
        ("document", pa.large_string()),
        ("sentence", pa.large_string()),  # names both terms, or the source alone if there is another; "" without text
        ("other_sentence", pa.large_string()),  # names the target
    ]
)


@dataclass(frozen=True, slots=True)
class Example:
    """A document that mentions both terms of a pair.

    Attributes
    ----------
    document
        Identifier of the document.
    sentences
        One sentence that mentions both terms, or one for each term; empty if there is no text.
    """

    document: str
    sentences: tuple[str, ...]


class Examples:
    """Examples of pairs of nodes, to be looked up; in a model folder they are mapped from a file."""

    def __init__(self, table: pa.Table, nodes: int) -> None:
        self.table, self.nodes = table, nodes

    @cached_property
    def _pair(self) -> np.ndarray:
        """source · V + target of each row, ascending."""
        source, target = (self.table.column(name).to_numpy() for name in ("source", "target"))
        pair: np.ndarray = source.astype(np.int64) * self.nodes + target
        return pair

    @cached_property
    def _texts(self) -> list[pa.Array]:
        return [self.table.column(name).combine_chunks() for name in SCHEMA.names[2:]]

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def between(self, one: int, other: int) -> tuple[Example, ...]:
        """The examples of a pair, best first."""
        wanted = min(one, other) * self.nodes + max(one, other)
        first, last = np.searchsorted(self._pair, [wanted, wanted + 1]).tolist()
        found = []
        for row in range(first, last):
            document, *sentences = (texts[row].as_py() for texts in self._texts)
            found.append(Example(document, tuple(sentence for sentence in sentences if sentence)))
        return tuple(found)

    @classmethod
    def read(cls, path: Path, nodes: int) -> Examples:
        """From a graph folder's table."""
        try:
            table = pq.read_table(path, columns=SCHEMA.names, read_dictionary=SCHEMA.names[2:])
            return cls(_encoded(table), nodes)
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            raise CogstageError(f"{path} is damaged ({error}); build the graph again") from error

    def write(self, path: Path) -> None:
        """As an Arrow file, which can be mapped."""
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, self.table.schema) as writer:
            writer.write_table(self.table, max_chunksize=max(1, len(self)))

    @classmethod
    def load(cls, path: Path, nodes: int) -> Examples:
        """Open a file of :meth:`write` as a memory map."""
        return cls(pa.ipc.open_file(pa.memory_map(str(path))).read_all(), nodes)


def _encoded(table: pa.Table) -> pa.Table:
    """Every text once, with large offsets, in one chunk."""
    columns = [table.column(name).combine_chunks() for name in SCHEMA.names[:2]]
    for name in SCHEMA.names[2:]:
        texts = table.column(name).cast(pa.large_string())
        columns.append(pc.dictionary_encode(texts).combine_chunks().cast(TEXT))
    return pa.table(columns, names=SCHEMA.names)
