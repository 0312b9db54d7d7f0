"""Examples of counted pairs: documents that name both terms, with the sentences that do.

Gathered by a second pass over the documents once the edges are known. What the pass holds is two bytes per edge and a
buffer; examples go to disk as they are seen and are sorted there by pairs, range by range.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.corpus.records import Document
from cogstage.errors import UsageError
from cogstage.graph.counting import Rows
from cogstage.graph.folder import EDGES, EXAMPLES, read_columns
from cogstage.graph.job import BuildJob, Nodes
from cogstage.graph.kept_examples import SCHEMA
from cogstage.graph.units import DocumentRows, usable
from cogstage.numbering import within_groups

LONGEST = 400  # letters of a sentence that are kept
HELD = 50_000  # examples in memory before they go to disk, and in a row group
LOT = 500  # documents looked at together
PAIRS = 2_000_000  # pairs looked at together
SORTED = 500_000  # examples sorted at a time
CODED = 2**31 - 1  # the sentence of what was coded and not written; behind all others
PATIENTS = (
    "the documents belong to patients, and examples contain their text; drop `keep_examples`, or confirm it with "
    "`examples_of_patients`"
)


def keep_examples(folder: Path, job: BuildJob, nodes: Nodes, copies: np.ndarray) -> int:
    """Write ``examples.parquet`` next to the edges in ``folder``; how many examples it has."""
    source, target, _ = read_columns(folder / EDGES, ("source", "target", "count"))
    edges = _Edges(source, target, len(nodes))
    reader = job.open_again()
    job.progress.start("Looking for examples", job.reader.bytes_total)
    with tempfile.TemporaryDirectory(dir=job.work.path) as scratch:
        gathered = _Gathered(Path(scratch), edges, job.options.keep_examples)
        for lot in _lots(usable(reader, job.options, reader.bad, copies)):
            if not job.options.examples_of_patients and any(document.patient_id is not None for document in lot):
                raise UsageError(PATIENTS)
            for documents, rows in _mentions(lot, job, nodes):
                gathered.add(documents, rows, job)
        total = gathered.write(folder / EXAMPLES)
    job.progress.done(f"{total:,} for {len(edges):,} pairs")
    return total


def _lots(documents: Iterable[Document]) -> Iterator[list[Document]]:
    lot: list[Document] = []
    for document in documents:
        if len(lot) >= LOT and (document.scope, document.doc_id) != (lot[-1].scope, lot[-1].doc_id):
            yield lot
            lot = []
        lot.append(document)
    if lot:
        yield lot


def _mentions(lot: list[Document], job: BuildJob, nodes: Nodes) -> Iterator[tuple[list[Document], Rows]]:
    """Rows of some documents: ``group`` is the place of the document in the lot, ``unit`` its sentence."""
    index, sentence, term, codes = job.finder.mentions(lot, sentences=True)
    first: dict[tuple[str, str], int] = {}  # rows of one document may come apart
    place = np.array([first.setdefault((d.scope, d.doc_id), number) for number, d in enumerate(lot)], np.int64)
    found = DocumentRows(Rows.from_columns(place[index], np.where(sentence < 0, CODED, sentence), term), codes)
    rows = job.keys.ranked(found).renumbered(nodes.of_key).distinct()
    many = np.bincount(rows.group.astype(np.int64), minlength=len(lot))
    pairs = np.cumsum(many * (many - 1) // 2)
    part = pairs // PAIRS
    for number in np.unique(part).tolist():
        yield lot, rows.take(part[rows.group.astype(np.int64)] == number)


class _Edges:
    """Number of the edge between two nodes; edges are sorted."""

    def __init__(self, source: np.ndarray, target: np.ndarray, nodes: int) -> None:
        self.source, self.target, self._nodes = source, target, nodes
        self._key = source.astype(np.int64) * nodes + target

    def __len__(self) -> int:
        return len(self._key)

    def between(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """-1 if there is none."""
        key = low.astype(np.int64) * self._nodes + high
        at = np.minimum(np.searchsorted(self._key, key), max(len(self) - 1, 0))
        return np.where(self._key[at] == key, at, -1) if len(self) else np.full(len(key), -1)


class _Gathered:
    """The first examples of every edge, in the order of reading; those with both terms in a sentence come first."""

    def __init__(self, scratch: Path, edges: _Edges, most: int) -> None:
        self.scratch, self.edges, self.most = scratch, edges, most
        self._seen = np.zeros((2, len(edges)), np.uint8)  # apart, in one sentence
        self._edge: list[int] = []
        self._together: list[bool] = []
        self._texts: list[tuple[str, str, str]] = []
        self._files: list[Path] = []

    def add(self, documents: list[Document], rows: Rows, job: BuildJob) -> None:
        """Keep what is still wanted of the pairs in these rows (sorted by document, sentence and node)."""
        one, other = _within(rows.group, rows.unit)
        document, sentence = rows.group[one].astype(np.int64), rows.unit[one]
        edge = self.edges.between(rows.term[one], rows.term[other])
        near = _first(document[edge >= 0], edge[edge >= 0], sentence[edge >= 0])
        texts: dict[int, list[str]] = {}
        wanted = self._wanted(near[:, 1], True)
        for d, e, s in near[wanted].tolist():
            self._keep(e, True, documents[d], [_sentence(documents, d, s, texts, job)])
        if job.options.unit == "sentence":
            return
        mention = _first(rows.group.astype(np.int64), rows.term.astype(np.int64), rows.unit)  # first sentence of each
        mention = mention[np.lexsort((mention[:, 1], mention[:, 0]))]
        one, other = _within(mention[:, 0], np.zeros(len(mention), np.int64))
        edge = self.edges.between(mention[one, 1], mention[other, 1])
        key = mention[one, 0] * len(self.edges) + edge
        apart = (edge >= 0) & ~np.isin(key, near[:, 0] * len(self.edges) + near[:, 1])
        one, other, edge = one[apart], other[apart], edge[apart]
        wanted = self._wanted(edge, False)
        for at, second, e in zip(one[wanted].tolist(), other[wanted].tolist(), edge[wanted].tolist(), strict=True):
            d = int(mention[at, 0])
            both = [_sentence(documents, d, int(mention[row, 2]), texts, job) for row in (at, second)]
            self._keep(e, False, documents[d], both)

    def _wanted(self, edge: np.ndarray, near: bool) -> np.ndarray:
        """Which rows are still wanted; they count from now on."""
        order = np.argsort(edge, kind="stable")
        ordered = edge[order]
        first = np.searchsorted(ordered, ordered)
        rank = np.empty(len(edge), np.int64)
        rank[order] = np.arange(len(edge)) - first
        seen = self._seen[int(near)]
        have = seen[edge].astype(np.int64) + (0 if near else self._seen[1][edge])
        wanted = np.flatnonzero(have + rank < self.most)
        np.add.at(seen, edge[wanted], 1)
        return wanted

    def _keep(self, edge: int, near: bool, document: Document, sentences: list[str]) -> None:
        self._edge.append(edge)
        self._together.append(near)
        self._texts.append((document.doc_id, sentences[0], sentences[1] if len(sentences) > 1 else ""))
        if len(self._edge) >= HELD:
            self._flush()

    def _flush(self) -> None:
        if not self._edge:
            return
        edge, near = np.array(self._edge, np.int64), np.array(self._together, bool)
        order = np.argsort(edge, kind="stable")
        documents, sentences, others = zip(*self._texts, strict=True)
        texts = [pa.array(column, pa.large_string()) for column in (documents, sentences, others)]
        table = pa.table([edge, near, *texts], ["edge", "near", *SCHEMA.names[2:]]).take(order)
        path = self.scratch / f"{len(self._files):06d}.arrow"
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
        self._files.append(path)
        self._edge, self._together, self._texts = [], [], []

    def write(self, path: Path) -> int:
        """Sort them by pairs and write the best of each; how many there are."""
        self._flush()
        held = [pa.ipc.open_file(pa.memory_map(str(file))).read_all() for file in self._files]
        edges = [table.column("edge").to_numpy() for table in held]
        ends = np.cumsum(self._seen.sum(0, dtype=np.int64))
        total = 0
        with pq.ParquetWriter(path, SCHEMA, compression="zstd") as writer:
            begun = 0
            while begun < len(self.edges):
                done = int(ends[begun - 1]) if begun else 0
                end = max(begun + 1, int(np.searchsorted(ends, done + SORTED, "right")))
                cuts = [np.searchsorted(edge, [begun, end]).tolist() for edge in edges]
                parts = [table.slice(a, b - a) for table, (a, b) in zip(held, cuts, strict=True) if b > a]
                if parts:
                    best = self._best(pa.concat_tables(parts))
                    writer.write_table(best, row_group_size=HELD)
                    total += best.num_rows
                begun = end
        return total

    def _best(self, found: pa.Table) -> pa.Table:
        edge, near = (found.column(name).to_numpy() for name in ("edge", "near"))
        order = np.lexsort((~near, edge))  # stable: otherwise in the order of reading
        edge = edge[order]
        kept = np.arange(len(edge)) - np.searchsorted(edge, edge) < self.most
        chosen, edge = found.take(order[kept]), edge[kept]
        ends = [pa.array(end[edge].astype(np.int32)) for end in (self.edges.source, self.edges.target)]
        return pa.table([*ends, *(chosen.column(name) for name in SCHEMA.names[2:])], schema=SCHEMA)


def _within(group: np.ndarray, unit: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of all pairs of rows that share group and unit, which lie together."""
    changes = np.flatnonzero((np.diff(group) != 0) | (np.diff(unit) != 0)) + 1
    ends = np.append(changes, len(group))
    end = np.repeat(ends, np.diff(np.concatenate([[0], ends])))
    many = end - np.arange(len(group)) - 1
    one = np.repeat(np.arange(len(group)), many)
    other = one + 1 + within_groups(many)
    return one, other


def _first(document: np.ndarray, what: np.ndarray, sentence: np.ndarray) -> np.ndarray:
    """The first sentence of each thing in each document: (n, 3), in the order of documents; rows come in order."""
    rows = np.stack([document, what, sentence], 1)
    if not len(rows):
        return rows
    _, first = np.unique(rows[:, :2], axis=0, return_index=True)
    found: np.ndarray = rows[np.sort(first)]
    return found


def _sentence(
    documents: list[Document], document: int, sentence: int, texts: dict[int, list[str]], job: BuildJob
) -> str:
    """A sentence as it is shown; "" for what was coded and not written."""
    if sentence == CODED or job.finder.annotator is None:
        return ""
    if document not in texts:
        texts[document] = job.finder.annotator.sentences(documents[document].text)
    text = " ".join(texts[document][sentence].split())
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1].rstrip()}…"
