"""Import existing counts: a table of edges, and the files of Finlayson et al. (2014)."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from cogstage.artefact import file_hash
from cogstage.corpus.formats.table import renames_of
from cogstage.csv_records import separator_of
from cogstage.errors import CogstageError, UsageError
from cogstage.frames import takes_frames
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.edges import Edges
from cogstage.graph.renumbering import Renumbering
from cogstage.graph.vocabulary import Vocabulary
from cogstage.input_files import Paths, open_bytes, open_text
from cogstage.progress import SILENT, Progress
from cogstage.tables import BadRows, Row, expand, read_rows, table_kind

EDGE_COLUMNS = ("source", "target", "count")


def graph_of(
    keys: Sequence[str],
    source: np.ndarray,
    target: np.ndarray,
    count: np.ndarray,
    node_count: np.ndarray | None,
    about: Mapping[str, tuple[str, str, str]],
    made_with: dict[str, Any],
    synonyms: Sequence[tuple[str, int]] = (),
) -> Graph:
    """A graph from keys in any order and one row per pair: nodes sorted by key, edges by nodes.

    ``about`` gives concept, name and type of a key. Without node counts a node gets its largest edge count.
    """
    nodes = Renumbering.from_keys(keys)
    place, term = nodes.new, tuple(nodes.keys)
    edges = Edges(place[source], place[target], count.astype(np.int64)).upward()
    edges = edges.where(np.argsort(edges.source.astype(np.int64) << 32 | edges.target))
    counts = np.zeros(len(keys), np.int64)
    if node_count is None:
        np.maximum.at(counts, edges.source, edges.count)
        np.maximum.at(counts, edges.target, edges.count)
    else:
        counts[place] = node_count
    described = [about.get(key, (key, key, "")) for key in term]
    concept, name, kind = (tuple(column) for column in zip(*described, strict=True)) if described else ((), (), ())
    names = tuple(sorted(((word, int(place[at])) for word, at in synonyms), key=lambda pair: (pair[1], pair[0])))
    vocabulary = Vocabulary(term, concept, name, kind, counts, names)
    return Graph(vocabulary, edges.source, edges.target, edges.count, made_with)


@takes_frames("edges", "terms")
def import_edges(
    edges: Paths,
    terms: Paths | None = None,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
    columns: Mapping[str, str] | None = None,
) -> Graph:
    """Create a graph from a table of pair counts.

    Parameters
    ----------
    edges
        Tables (files, or a frame) with the columns source, target and count. A pair may occur in both directions with
        the same count; two different counts are an invalid row.
    terms
        Tables with the column term, and optionally concept, name, type and count. Terms that are missing from these
        tables still become nodes.
    bad, progress
        How to handle rows that cannot be read, and the receiver of progress reports.
    columns
        Names of the columns in ``edges``, such as ``{"source": "concept_id_1"}``.

    Returns
    -------
    Graph
        Nodes are sorted by key. A node without a count gets the largest count of its pairs.

    Examples
    --------
    >>> _ = Path("pairs.csv").write_text("source,target,count\\naspirin,headache,12\\nfever,aspirin,7")
    >>> graph = cs.import_edges("pairs.csv")
    >>> graph.vocabulary.term, graph.count.tolist()
    (('aspirin', 'fever', 'headache'), [7, 12])
    """
    bad, columns = bad if bad is not None else BadRows(), columns or {}
    if unknown := set(columns) - set(EDGE_COLUMNS):
        raise UsageError(f"unknown column {min(unknown)}; the columns of edges are {', '.join(EDGE_COLUMNS)}")
    keys: dict[str, int] = {}
    about: dict[str, tuple[str, str, str]] = {}
    node_counts: dict[int, int] = {}
    for row in read_rows(terms, ["term"], ["concept", "name", "type", "count"], bad) if terms is not None else ():
        term = str(row["term"])
        if term in keys:
            bad.report(f"{row.where('term')}: duplicate term {term!r}")
            continue
        count = 0 if row["count"] is None else _whole(row, "count", bad, least=0)
        if count is None:
            continue
        about[term] = (str(row["concept"] or term), str(row["name"] or term), str(row["type"] or ""))
        node_counts[keys.setdefault(term, len(keys))] = count
    progress.start("Reading edges")
    renames = renames_of(columns)
    ends, counts = _clean_edges(expand(edges), renames, keys) or _checked_edges(edges, renames, keys, bad)
    progress.done(f"{len(keys):,} terms, {len(counts):,} edges")
    if not len(counts):
        raise CogstageError(f"{', '.join(map(str, expand(edges)))}: no edges")
    given = np.zeros(len(keys), np.int64)
    for end in ends.T:
        np.maximum.at(given, end, counts)  # a term occurs at least as often as its most frequent pair
    for node, count in node_counts.items():
        given[node] = max(given[node], count)
    made_with = {"how": "import edges", "inputs": inputs(expand(edges)), "skipped": bad.count}
    return graph_of(list(keys), ends[:, 0], ends[:, 1], counts, given, about, made_with)


def _clean_edges(
    files: Sequence[Path], renames: Mapping[str, str], keys: dict[str, int]
) -> tuple[np.ndarray, np.ndarray] | None:
    """The pairs (E, 2) and counts of tables without a mistake, read by Arrow; None if a row needs a second look."""
    parts = [_edge_table(path, renames) for path in files]
    tables = [part for part in parts if part is not None]
    if len(tables) < len(files):
        return None
    table = pa.concat_tables(tables)
    count = table.column("count").to_numpy()
    ends = pa.chunked_array([*table.column("source").chunks, *table.column("target").chunks], pa.string())
    ends = ends.combine_chunks().dictionary_encode()
    terms = ends.dictionary.to_pylist()
    if ends.null_count or "" in terms or len(count) == 0 or count.min() < 1:
        return None
    place = ends.indices.to_numpy().reshape(2, -1)
    pair = place.min(axis=0).astype(np.int64) << 32 | place.max(axis=0)
    order = np.argsort(pair)
    pair, count = pair[order], count[order]
    low, high = pair >> 32, pair & 0xFFFFFFFF
    repeated = pair[1:] == pair[:-1]
    if np.any(low == high) or np.any(count[1:][repeated] != count[:-1][repeated]):
        return None
    number = np.fromiter((keys.setdefault(term, len(keys)) for term in terms), np.int64, len(terms))
    first = np.append(True, ~repeated)
    return number[np.stack([low[first], high[first]], axis=1)], count[first]


def _edge_table(path: Path, renames: Mapping[str, str]) -> pa.Table | None:
    """The edges of a CSV, TSV or Parquet file as text, text and int64; None if it cannot be converted."""
    try:
        table = arrow_table(path, renames)
        if table is None or any(table.column_names.count(column) != 1 for column in EDGE_COLUMNS):
            return None
        chosen = [table.column(column) for column in EDGE_COLUMNS]
        if any(pa.types.is_floating(column.type) for column in chosen):
            return None
        types = (pa.string(), pa.string(), pa.int64())
        return pa.table([column.cast(to) for column, to in zip(chosen, types, strict=True)], names=EDGE_COLUMNS)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError, EOFError, UnicodeDecodeError):
        return None


def arrow_table(path: Path, renames: Mapping[str, str]) -> pa.Table | None:
    """A CSV or TSV file as text, or a Parquet file as it is, with our names of its columns; None for JSON."""
    kind = table_kind(path)
    if kind == "json":
        return None
    if kind == "parquet":
        table = pq.read_table(path, use_threads=False)
    else:
        with open_text(path) as handle:
            header = handle.readline()
        separator = "\t" if kind == "tsv" else separator_of(header)
        quotes = kind == "csv" and separator != "\t"
        columns = next(csv.reader([header], delimiter=separator))
        with open_bytes(path) as handle:
            table = pa_csv.read_csv(
                handle,
                pa_csv.ReadOptions(use_threads=False, block_size=16 << 20),
                pa_csv.ParseOptions(delimiter=separator, quote_char='"' if quotes else False),
                pa_csv.ConvertOptions(column_types=dict.fromkeys(columns, pa.string())),
            )
    return table.rename_columns([renames.get(n.strip().lower(), n.strip().lower()) for n in table.column_names])


def _checked_edges(
    edges: Paths, renames: dict[str, str], keys: dict[str, int], bad: BadRows
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs and counts row by row, with a report of each row that cannot be used."""
    pairs: dict[tuple[int, int], int] = {}
    for row in read_rows(edges, EDGE_COLUMNS, (), bad, renames):
        one, other = (keys.setdefault(str(row[end]), len(keys)) for end in ("source", "target"))
        count = _whole(row, "count", bad)
        if count is None:
            continue
        if one == other:
            bad.report(f"{row.where('target')}: {row['target']!r} has an edge to itself")
            continue
        if pairs.setdefault((min(one, other), max(one, other)), count) != count:
            bad.report(f"{row.where('count')}: the pair occurs twice with different counts")
    return np.array(list(pairs), np.int64).reshape(-1, 2), np.array(list(pairs.values()), np.int64)


def _whole(row: Row, column: str, bad: BadRows, least: int = 1) -> int | None:
    """The whole number in a column, or None after it was reported."""
    value = row[column]
    try:
        number = int(value) if not isinstance(value, float) or value.is_integer() else None
    except (TypeError, ValueError, OverflowError):
        number = None
    if number is None or not least <= number < 2**63:
        bad.report(f"{row.where(column)}: {str(value)[:40]!r} is not a whole number of at least {least}")
        return None
    return number


def highest(ends: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each unordered pair of ``ends`` (n, 2) once, with the highest of its values."""
    low, high = ends.min(axis=1), ends.max(axis=1)
    pairs, place = np.unique(low << 32 | high, return_inverse=True)
    highest = np.zeros(len(pairs), np.int64)
    np.maximum.at(highest, place.ravel(), values)
    return pairs >> 32, pairs & 0xFFFFFFFF, highest


def unique_names(named: Sequence[tuple[Any, Any]]) -> list[str]:
    """A key for each id: its name, followed by the id if the name occurs twice."""
    seen: set[str] = set()
    keys = []
    for node, name in named:
        key = str(name) if str(name) not in seen else f"{name} #{node}"
        seen.add(key)
        keys.append(key)
    return keys


def inputs(files: Sequence[Path]) -> list[dict[str, str]]:
    return [{"file": path.name, "sha256": file_hash(path)} for path in files]


def import_finlayson(
    folder: Path | str,
    level: str = "term",
    per: str = "bin",
    window: int | None = 1,
    min_count: int = 1,
    progress: Progress = SILENT,
) -> Graph:
    """The Dryad files of Finlayson et al. 2014 (doi:10.5061/dryad.jp917), unpacked from their tar archives.

    Tab-separated text without a header, plain or gzipped, anywhere below ``folder``:
    ``cofreqs_{terms,concepts}_per{Bin,Pat}_{1,7,30,90,180,365,all}d.txt`` (id, id, count),
    ``singlets_{terms,concepts}_per{Bin,Pat}_{...}d.txt`` (id, count), ``1_term_ID_to_string.txt``,
    ``2a_concept_ID_to_string.txt``, ``2b_concept_ID_to_CUI.txt``, ``3_term_ID_to_concept_ID.txt``. A concept's key is
    its CUI. Terms in fewer than ``min_count`` bins (or patients) are left out before the pairs are kept.
    """
    folder = Path(folder)
    which = f"{level}s_per{'Bin' if per == 'bin' else 'Pat'}_{'all' if window is None else window}d.txt"
    pair_file, single_file = _published(folder, f"cofreqs_{which}"), _published(folder, f"singlets_{which}")
    progress.start("Reading term lists")
    strings = _texts(
        _published(folder, "1_term_ID_to_string.txt" if level == "term" else "2a_concept_ID_to_string.txt")
    )
    cuis = _texts(_published(folder, "2b_concept_ID_to_CUI.txt"))
    concept_of = _texts(_published(folder, "3_term_ID_to_concept_ID.txt")) if level == "term" else {}
    progress.done(f"{len(strings):,} {level}s")
    singles = np.concatenate([np.empty((0, 2), np.int64), *_numbers(single_file, 2)])
    singles = singles[singles[:, 1] >= min_count]
    ids, first = np.unique(singles[:, 0], return_index=True)
    counts = singles[first, 1]
    progress.start("Reading pairs")
    parts = [np.empty((0, 3), np.int64)]
    for block in _numbers(pair_file, 3):
        known = np.isin(block[:, 0], ids) & np.isin(block[:, 1], ids) & (block[:, 0] != block[:, 1]) & (block[:, 2] > 0)
        parts.append(block[known])
        progress.advance(len(block))
    pairs = np.concatenate(parts)
    # a pair that occurs in both directions is one pair
    source, target, count = highest(np.searchsorted(ids, pairs[:, :2]), pairs[:, 2])
    progress.done(f"{len(ids):,} {level}s, {len(count):,} pairs")
    if len(count) == 0:
        raise CogstageError(
            f"{pair_file}: no pairs between {level}s of {single_file.name} that reach the minimum count"
        )
    numbers = [str(number) for number in ids.tolist()]
    if level == "concept":
        keys = unique_names([(n, cuis.get(n, f"concept {n}")) for n in numbers])
        about = {key: (key, strings.get(n, key), "") for n, key in zip(numbers, keys, strict=True)}
    else:
        keys = unique_names([(n, strings.get(n, f"term {n}")) for n in numbers])
        about = {}
        for n, key_ in zip(numbers, keys, strict=True):
            concept = concept_of.get(n)
            about[key_] = (cuis.get(concept, f"concept {concept}") if concept else key_, strings.get(n, key_), "")
    made_with = {
        "how": "import finlayson",
        "unit": "patient-window",
        "window": "ever" if window is None else f"{window}d",
        "per": per,
        "level": level,
        "min_count": min_count,
        "inputs": inputs([pair_file, single_file]),
    }
    return graph_of(keys, source, target, count, counts, about, made_with)


def _published(folder: Path, name: str) -> Path:
    """The file of this name below the folder, plain or gzipped."""
    if not folder.is_dir():
        raise UsageError(f"{folder} is not a folder; expected the unpacked files of doi:10.5061/dryad.jp917")
    for candidate in (name, f"{name}.gz"):
        found = sorted(folder.rglob(candidate))
        if found:
            return found[0]
    raise UsageError(
        f"{folder} contains no {name} (or {name}.gz); unpack the archives of doi:10.5061/dryad.jp917 there"
    )


def _texts(path: Path) -> dict[str, str]:
    """A two-column list as id -> text; the first text of an id stays. The strings are Latin-1 if not UTF-8."""
    found: dict[str, str] = {}
    try:
        with open_bytes(path) as handle:
            for line, raw in enumerate(handle, start=1):
                try:
                    text = raw.decode("utf-8")
                except UnicodeDecodeError:
                    text = raw.decode("latin-1")
                cells = text.rstrip("\r\n").split("\t")
                if len(cells) < 2:
                    if not text.strip():
                        continue
                    raise CogstageError(f"{path}:{line}: expected two columns separated by a tab, found one")
                found.setdefault(cells[0].strip(), cells[1].strip())
    except (OSError, EOFError) as error:
        raise CogstageError(f"{path} is damaged or truncated: {error}") from error
    return found


def _numbers(path: Path, columns: int) -> Iterator[np.ndarray]:
    """The rows of a table of whole numbers, in blocks."""
    names = [f"column {place + 1}" for place in range(columns)]
    try:
        with open_bytes(path) as handle:
            stream = pa_csv.open_csv(
                pa.PythonFile(handle, mode="r"),
                read_options=pa_csv.ReadOptions(column_names=names, use_threads=False, block_size=16 << 20),
                parse_options=pa_csv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=pa_csv.ConvertOptions(
                    column_types={name: pa.int64() for name in names}, null_values=[]
                ),
            )
            for batch in stream:
                yield np.stack([batch.column(place).to_numpy() for place in range(columns)], axis=1)
    except (pa.ArrowInvalid, OSError, EOFError) as error:
        if "Empty CSV" in str(error):
            raise CogstageError(f"{path}: the file is empty") from None
        raise CogstageError(f"{path}: {error}") from error
