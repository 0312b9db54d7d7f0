"""Documents or coded records to a graph folder: read, find, count, choose, write."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cogstage.artefact import FORMAT_VERSION, META, file_hash, replace_folder, software_version, to_json, write_text
from cogstage.corpus.lexicon import Lexicon
from cogstage.corpus.readers import Reader, open_reader
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.blocks import BlockCounter, Census, choose_nodes, documents_in
from cogstage.graph.counting import n_threads
from cogstage.graph.edges import Edges
from cogstage.graph.folder import check_target, write_edges
from cogstage.graph.local_engine import RunWriter, find_all, tasks
from cogstage.graph.options import BuildOptions
from cogstage.graph.privacy import fresh_seed, release, suppress, threshold
from cogstage.graph.runs import WorkFolder
from cogstage.graph.units import Finder, Keys, usable
from cogstage.graph.vocabulary import Vocabulary
from cogstage.progress import SILENT, Progress
from cogstage.tables import BadRows, expand

if TYPE_CHECKING:
    from cogstage.graph.engine_spark import SparkCounter

Paths = str | Path | Sequence[str | Path]
Names = Callable[[Iterable[str]], Mapping[str, tuple[str, str]]]
SMALL = 2 << 20  # inputs below this are annotated in the process itself


@dataclass(frozen=True)
class Built:
    """What a build did."""

    nodes: int
    edges: int
    documents: int
    units: int
    skipped: int


def build_graph(
    documents: Paths,
    out: Path | str,
    lexicon: Paths | Lexicon | None = None,
    options: BuildOptions | None = None,
    *,
    stop_list: str | Path | Iterable[str] = (),
    engine: str = "local",
    master: str = "local[*]",
    memory: int = 4 << 30,
    workers: int | None = None,
    resume: bool = False,
    seed: int | None = None,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Built:
    """Build the graph of ``documents`` and write it to the folder ``out``.

    ``lexicon`` names the terms to look for; coded records need none. ``memory`` bounds what counting holds; more goes
    to disk beside ``out``. ``resume`` goes on with the work that an interrupted build of the same inputs left there.
    ``seed`` is for private release alone, and by default nobody knows it. The graph does not depend on engine, memory,
    workers or interruptions.
    """
    options = options or BuildOptions()
    if engine not in ("local", "spark"):
        raise UsageError(f"unknown engine {engine}; known are local, spark")
    out, bad = Path(out), bad if bad is not None else BadRows()
    check_target(out)
    reader = open_reader(documents, options.format, bad=bad, **options.reader)
    words = _lexicon(lexicon, options, stop_list, bad, progress)
    finder = Finder(words, options)
    plan = {
        "options": repr(options),
        "version": software_version(),
        "inputs": _stamps(reader.files),
        "lexicon": _lexicon_stamp(lexicon),
        "stop_list": repr(stop_list),
        "seed": seed,
    }
    work = WorkFolder(out, plan, resume)
    if work.dropped:
        progress.say(f"unfinished work of an earlier build was dropped from {work.path} (--resume goes on with it)")
    try:
        built = _build(out, work, reader, finder, lexicon, engine, master, memory, workers, seed, bad, progress)
    except BaseException:
        if not work.runs():  # nothing there that would be worth going on with
            work.remove()
        raise
    work.remove()
    return built


def _build(
    out: Path,
    work: WorkFolder,
    reader: Reader,
    finder: Finder,
    lexicon: Paths | Lexicon | None,
    engine: str,
    master: str,
    memory: int,
    workers: int | None,
    seed: int | None,
    bad: BadRows,
    progress: Progress,
) -> Built:
    """Find and count with the engine asked for, and write the graph."""
    options = finder.options
    skipped_terms = bad.count
    keys = Keys(finder.lexicon, options.level)
    seed = _seed(work, seed)
    counter: BlockCounter | SparkCounter
    if engine == "local":
        _find_to_runs(reader, finder, work, memory, workers, bad, progress)
        counter = BlockCounter(work, keys, options, memory, seed, progress)
        n_documents, names = documents_in(counter.runs), cast(Names, reader.names_of)
    else:
        from cogstage.graph.engine_spark import SparkCounter

        counter = SparkCounter(master, reader, finder, keys, seed, bad, progress)
        n_documents, names = counter.n_documents, counter.names_of
    try:
        if n_documents == 0:
            files = ", ".join(map(str, reader.files))
            raise CogstageError(f"{files}: no documents" + (" that can be used" if bad.count else ""))
        census = counter.census()
        if not census.units.any():
            if finder.lexicon is None:
                raise CogstageError(
                    f"{reader.files[0]}: no codes in {n_documents:,} documents; terms in text need --lexicon"
                )
            progress.say("no term of the lexicon was found: the graph is empty")
        made_with = {
            "how": "build",
            **options.as_meta(),
            "inputs": _hashes(reader.files) if options.private is None else None,
            "lexicon": None if lexicon is None or isinstance(lexicon, Lexicon) else _hashes(expand(lexicon)),
            "documents": n_documents,
            "units": census.n_units,
            "groups": census.n_groups,
            "skipped": bad.count - skipped_terms,
            "skipped_terms": skipped_terms,
        }
        nodes, edges = _write(out, work, keys, census, counter.edges, names, options, seed, made_with, progress)
    finally:
        counter.stop()
    return Built(nodes, edges, n_documents, census.n_units, bad.count)


def _find_to_runs(
    reader: Reader, finder: Finder, work: WorkFolder, memory: int, workers: int | None, bad: BadRows, progress: Progress
) -> None:
    """Annotate everything that no finished run covers yet."""
    finished = work.runs()[-1].last if work.runs() else 0
    total = reader.bytes_total
    workers = (n_threads() if total > SMALL else 1) if workers is None else workers
    progress.start("Reading and finding terms", total)
    writer = RunWriter(work, Keys(finder.lexicon, finder.options.level).n_known, memory, finished)
    pieces = islice(tasks(usable(reader, finder.options, bad)), finished, None)
    seen = done = 0
    for documents, found in find_all(finder, pieces, workers):
        writer.add(found, documents)
        done += documents
        position = min(reader.position(), total)
        progress.advance(position - seen, f"{done:,} documents")
        seen = position
    writer.write()
    progress.done(
        f"{documents_in(work.runs()):,} documents" + (f", {bad.count:,} bad rows skipped" if bad.count else "")
    )


def _write(
    out: Path,
    work: WorkFolder,
    keys: Keys,
    census: Census,
    count: Callable[[np.ndarray, int], Iterator[Edges]],
    names: Names,
    options: BuildOptions,
    seed: int,
    made_with: dict[str, Any],
    progress: Progress,
) -> tuple[int, int]:
    """Choose the nodes, count, and put the graph in its place; gives nodes and edges."""
    chosen, node = choose_nodes(keys.keys, census, options)
    counts = (census.groups if options.counts_groups else census.units)[chosen]
    folder = work.path / "graph"
    folder.mkdir(exist_ok=True)
    progress.start("Counting pairs")
    edges = count(node, len(chosen))
    if options.private is not None:
        edges, chosen, counts = _released(edges, options, seed, chosen)
        made_with = _private_meta(made_with, options)
    elif options.suppress_below > 0:
        edges = suppress(edges, options.suppress_below)
    n_edges = write_edges(folder / "edges.parquet", edges)
    vocabulary_of(keys, chosen, counts, names).write(folder)
    progress.done(f"{len(chosen):,} nodes, {n_edges:,} edges")
    made_with = {**made_with, "nodes": len(chosen), "edges": n_edges}
    meta = {"kind": "graph", "format": FORMAT_VERSION, "version": software_version(), "made_with": made_with}
    write_text(folder / META, to_json(meta))
    replace_folder(folder, out)
    return len(chosen), n_edges


def _released(
    edges: Iterator[Edges], options: BuildOptions, seed: int, chosen: np.ndarray
) -> tuple[Iterator[Edges], np.ndarray, np.ndarray]:
    """Private edges, and the nodes that they alone decide: renumbered in the same order, counted by their edges."""
    assert options.private is not None
    parts = list(suppress(release(edges, options.private, seed), options.suppress_below))
    largest = np.zeros(len(chosen), np.int64)
    for part in parts:
        np.maximum.at(largest, part.source, part.count)
        np.maximum.at(largest, part.target, part.count)
    kept = np.flatnonzero(largest > 0)
    number = np.full(len(chosen), -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    renumbered = (Edges(number[part.source], number[part.target], part.count) for part in parts)
    return renumbered, chosen[kept], largest[kept]


def _private_meta(made_with: dict[str, Any], options: BuildOptions) -> dict[str, Any]:
    """What may be said of a private graph: nothing that was counted exactly."""
    assert options.private is not None
    exact = ("inputs", "documents", "units", "groups", "skipped")
    private = {**made_with["private"], "threshold": threshold(options.private), "noise": "discrete Laplace"}
    private["unit_of_privacy"] = "patient, or document where there is no patient_id"
    return {**{key: value for key, value in made_with.items() if key not in exact}, "private": private}


def vocabulary_of(
    keys: Keys,
    chosen: np.ndarray,
    counts: np.ndarray,
    names: Names,
) -> Vocabulary:
    """The nodes with what the lexicon and the source call them; a concept's terms are its synonyms."""
    lexicon, numbers = keys.lexicon, chosen.tolist()
    term = tuple(keys.keys[number] for number in numbers)
    concept, name, kind = list(term), list(term), [""] * len(term)
    given = names([keys.keys[number] for number in numbers if number >= keys.n_known])
    synonyms: list[tuple[str, int]] = []
    first = None if lexicon is None else lexicon.first_concept
    for node, number in enumerate(numbers):
        if number >= keys.n_known or lexicon is None:
            name[node], kind[node] = given.get(term[node], (term[node], ""))
        elif keys.level == "concept":
            name[node], kind[node] = lexicon.concept_names[number], lexicon.concept_types[number]
        else:
            assert first is not None
            concept[node], kind[node] = lexicon.concepts[first[number]], lexicon.concept_types[first[number]]
    if lexicon is not None and keys.level == "concept":
        node_of = np.full(len(keys.keys), -1, np.int64)
        node_of[chosen] = np.arange(len(chosen))
        nodes = node_of[lexicon.term_concepts]
        owner = np.repeat(np.arange(len(lexicon)), np.diff(lexicon.concept_starts))[nodes >= 0]
        spellings = map(lexicon.terms.__getitem__, owner.tolist())
        synonyms = list(zip(spellings, nodes[nodes >= 0].tolist(), strict=True))
    synonyms.sort(key=lambda pair: (pair[1], pair[0]))
    return Vocabulary(term, tuple(concept), tuple(name), tuple(kind), counts.astype(np.int64), tuple(synonyms))


def _lexicon(
    lexicon: Paths | Lexicon | None, options: BuildOptions, stop_list: Any, bad: BadRows, progress: Progress
) -> Lexicon | None:
    if lexicon is None or isinstance(lexicon, Lexicon):
        return lexicon
    progress.start("Reading the lexicon")
    words = Lexicon.read(lexicon, options.ambiguity, stop_list, options.variants, bad)
    progress.done(f"{len(words):,} terms of {len(words.concepts):,} concepts")
    return words


def _lexicon_stamp(lexicon: Paths | Lexicon | None) -> Any:
    """What tells one lexicon from another: its files, or its terms if it came ready made."""
    if isinstance(lexicon, Lexicon):
        return hashlib.sha256("\n".join(lexicon.terms + lexicon.concepts).encode()).hexdigest()
    return None if lexicon is None else _stamps(expand(lexicon))


def _seed(work: WorkFolder, seed: int | None) -> int:
    """The seed of this build; one that nobody gave is kept with the work, so that --resume uses the same."""
    path = work.path / "seed.json"
    if path.exists():
        return int(json.loads(path.read_text(encoding="utf-8")))
    seed = fresh_seed() if seed is None else seed
    write_text(path, to_json(seed))
    return seed


def _stamps(files: Sequence[Path]) -> list[list[Any]]:
    """Name, size and time of files: enough to see that they are those of the interrupted build."""
    found = [
        path for file in files for path in ([file] if file.is_file() else sorted(file.rglob("*"))) if path.is_file()
    ]
    return [[str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns] for path in found]


def _hashes(files: Sequence[Path]) -> list[dict[str, str]]:
    found = [
        path for file in files for path in ([file] if file.is_file() else sorted(file.rglob("*"))) if path.is_file()
    ]
    return [{"file": path.name, "sha256": file_hash(path)} for path in found]
