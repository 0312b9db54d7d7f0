"""Vectors that others publish, as an encoder: word2vec text and binary, CSV, TSV and Parquet (cui2vec, ClinVec)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from cogstage.corpus.tokens import casefold_text
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.input_files import bare_suffix, open_bytes
from cogstage.knowledge.dataset import FittingView
from cogstage.progress import SILENT, Progress

LONGEST_WORD = 1000  # bytes
MOST_DIMENSIONS = 100_000
Batch = tuple[list[str], np.ndarray]  # words, and their vectors (n, d)


@dataclass(frozen=True)
class PublishedVectors:
    """The vectors of a file; terms that it does not have get zeros.

    Words are matched with keys, concepts and names of the graph. A subclass with its own ``path``, ``name`` and
    ``title`` can be an entry point of ``cogstage.encoders``.
    """

    path: str = ""
    """File with one vector per word: .bin (word2vec), .csv, .tsv, .parquet, or text (word2vec, GloVe)."""

    name: ClassVar[str] = "published"
    title: ClassVar[str] = "Published vectors"
    quick: ClassVar[Mapping[str, Any]] = {}
    needs_facts: ClassVar[bool] = False

    def encode(self, graph: Graph, view: FittingView, seed: int, progress: Progress = SILENT) -> np.ndarray:
        """Vectors (V, d) float32: row i is term i."""
        progress.start("Reading vectors")
        vectors, found = vectors_of(graph.vocabulary, Path(self.path))
        progress.done(f"{int(found.sum()):,} of {len(found):,} terms have a vector")
        return vectors


def vectors_of(vocabulary: Vocabulary, path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Vectors (V, d) float32 of the terms, and whether the file has them (V,)."""
    if not path.is_file():
        raise UsageError(f"no such file: {path}")
    by_concept = {concept: node for node, concept in reversed(list(enumerate(vocabulary.concept)))}
    lookups = (vocabulary.index, by_concept, vocabulary.casefolded)
    rank = np.full(len(vocabulary), len(lookups), np.int8)  # of the lookup that gave the vector
    vectors: np.ndarray | None = None
    try:
        for words, rows in _batches(path):
            if vectors is None:
                vectors = np.zeros((len(vocabulary), rows.shape[1]), np.float32)
            for word, row in zip(words, rows, strict=True):
                keys = (word, word, casefold_text(word.replace("_", " ")))
                for how, (lookup, key) in enumerate(zip(lookups, keys, strict=True)):
                    node = lookup.get(key)
                    if node is not None:
                        if how < rank[node]:
                            vectors[node], rank[node] = row, how
                        break
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        raise CogstageError(f"{path} is not a table of vectors: {error}") from error
    if vectors is None or not (found := rank < len(lookups)).any():
        raise CogstageError(f"{path}: no word of the file is a key, concept or name of the graph")
    return vectors, found


def _batches(path: Path) -> Iterator[Batch]:
    suffix = bare_suffix(path)
    if suffix == ".bin":
        return _word2vec_binary(path)
    if suffix == ".parquet":
        return _parquet(path)
    return _csv(path, "," if suffix == ".csv" else "\t") if suffix in (".csv", ".tsv") else _text(path)


def _word2vec_binary(path: Path) -> Iterator[Batch]:
    with open_bytes(path) as handle:
        count, dimension = map(int, handle.readline(100).split())
        if not 0 < dimension <= MOST_DIMENSIONS:
            raise ValueError(f"vectors of length {dimension}")
        for _ in range(count):
            word = bytearray()
            while (letter := handle.read(1)) != b" ":
                if not letter or len(word) > LONGEST_WORD:
                    raise ValueError("it ends early, or a word is too long")
                word += letter
            raw = handle.read(4 * dimension)
            if len(raw) < 4 * dimension:
                raise ValueError("it ends early")
            yield [word.decode("utf-8", "replace").lstrip("\n")], np.frombuffer(raw, "<f4")[None]


def _text(path: Path) -> Iterator[Batch]:
    """Lines of a word and its numbers; a first line of two numbers is the header of word2vec."""
    with open_bytes(path) as handle:
        for number, raw in enumerate(handle):
            word, *values = raw.decode("utf-8", "replace").split()
            if number or len(values) > 1:
                yield [word], np.array([values], np.float32)


def _csv(path: Path, separator: str) -> Iterator[Batch]:
    with open_bytes(path) as handle:
        options = pa_csv.ParseOptions(delimiter=separator)
        for batch in pa_csv.open_csv(handle, pa_csv.ReadOptions(use_threads=False), options):
            yield _columns(batch)


def _parquet(path: Path) -> Iterator[Batch]:
    with pq.ParquetFile(path) as file:
        for batch in file.iter_batches(16_384):
            yield _columns(batch)


def _columns(batch: pa.RecordBatch) -> Batch:
    """The first column holds the words; the others numbers, or one of them lists of numbers."""
    words = [str(word) for word in batch.column(0).to_pylist()]
    rest = batch.columns[1:]
    if len(rest) == 1 and pa.types.is_nested(rest[0].type):
        return words, np.array(rest[0].to_pylist(), np.float32).reshape(len(words), -1)
    return words, np.stack([column.cast(pa.float32()).to_numpy(zero_copy_only=False) for column in rest], axis=1)
