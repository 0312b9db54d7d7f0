"""Build a graph folder from documents or coded records: read, find terms, count, select nodes, write."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import (
    check_target,
    finish_folder,
    one_line_if_full,
    software_version,
)
from cogstage.choices import EngineName, check_choice
from cogstage.corpus.formats.omop import OmopReader, table_files
from cogstage.corpus.lexicon import Lexicon
from cogstage.corpus.readers import open_reader
from cogstage.errors import CogstageError
from cogstage.frames import takes_frames
from cogstage.graph.build_inputs import (
    decide,
    file_hashes,
    file_stamps,
    input_hashes,
    lexicon_stamp,
    notice_contradicting,
    open_lexicon,
    sample_documents,
)
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.counting import Census
from cogstage.graph.engines import Engine, open_engine
from cogstage.graph.examples import keep_examples
from cogstage.graph.folder import write_edges
from cogstage.graph.job import BuildJob, choose_nodes
from cogstage.graph.matching_notices import notice_matching
from cogstage.graph.mechanism import mechanism_for
from cogstage.graph.naming import check_vocabulary, name_nodes, with_vocabulary
from cogstage.graph.noise import Randomness
from cogstage.graph.options import BuildOptions
from cogstage.graph.privacy import fresh_seed, private_meta, release, released_nodes, suppress
from cogstage.graph.roll_up import RollUp, read_roll_up
from cogstage.graph.runs import WorkFolder, hashed_file, is_sound, write_hashed
from cogstage.graph.units import Finder, InputSummary, Keys
from cogstage.input_files import Paths
from cogstage.locks import lock_folder
from cogstage.progress import SILENT, Progress
from cogstage.reporting.release import release_markdown
from cogstage.tables import BadRows, expand


@dataclass(frozen=True)
class BuildResult:
    """The result of a build."""

    nodes: int
    edges: int
    documents: int
    units: int
    skipped: int


@takes_frames("documents", "lexicon")
def build_graph(
    documents: Paths,
    out: Path | str,
    lexicon: Paths | Lexicon | None = None,
    options: BuildOptions | None = None,
    *,
    stop_list: str | Path | Iterable[str] = (),
    roll_up: str | Path | None = None,
    vocabulary: str | Path | None = None,
    engine: EngineName = "local",
    master: str = "local[*]",
    memory: int = 4 << 30,
    workers: int | None = None,
    resume: bool = False,
    seed: int | None = None,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Graph:
    """Count co-occurrences in documents and write the graph folder ``out``.

    Parameters
    ----------
    documents
        Files, folders or glob patterns, or a frame.
    out
        The graph folder; an existing graph is replaced.
    lexicon
        Terms to find in text: tables (files, or a frame), or a :class:`~cogstage.corpus.lexicon.Lexicon`. Not needed
        for coded records.
    options
        What to count and what to leave out.
    stop_list
        Terms to ignore, or a file with one term per line.
    roll_up, vocabulary
        Level or table for replacing codes by broader concepts (see :func:`cogstage.graph.roll_up.read_roll_up`), and
        the folder with the OMOP concept tables, which also name all codes. It defaults to the input, if that is OMOP.
    engine, master
        Counting engine, and the Spark master.
    memory
        Memory limit for counting, in bytes; the rest is kept on disk next to ``out``.
    workers
        Number of annotation processes; one per core by default.
    resume
        Whether to continue an interrupted build of the same inputs.
    seed
        Seed of the noise of a private release, for tests only; by default the noise is not reproducible.
    bad, progress
        How to handle rows that cannot be read, and the receiver of progress reports.

    Returns
    -------
    Graph
        The graph; ``made_with`` has the numbers of documents, units and skipped rows, unless it is private. It does not
        depend on the engine, the memory limit, the number of workers or interruptions.

    Examples
    --------
    >>> rows = ["doc_id\\tcodes", "1\\taspirin;headache", "2\\taspirin;headache", "3\\taspirin;fever"]
    >>> _ = Path("records.tsv").write_text("\\n".join(rows))
    >>> graph = cs.build_graph("records.tsv", "counted")
    >>> graph, graph.count.tolist(), graph.made_with["documents"]
    (Graph(3 nodes, 2 edges), [1, 2], 3)
    """
    how = {"stop_list": stop_list, "roll_up": roll_up, "vocabulary": vocabulary, "memory": memory, "workers": workers}
    more = {"master": master, "resume": resume, "seed": seed, "bad": bad, "progress": progress}
    build_folder(documents, out, lexicon, options, engine=engine, **how, **more)  # type: ignore[arg-type]
    return Graph.load(out, verify=False)


def build_folder(
    documents: Paths,
    out: Path | str,
    lexicon: Paths | Lexicon | None = None,
    options: BuildOptions | None = None,
    *,
    stop_list: str | Path | Iterable[str] = (),
    roll_up: str | Path | None = None,
    vocabulary: str | Path | None = None,
    engine: EngineName = "local",
    master: str = "local[*]",
    memory: int = 4 << 30,
    workers: int | None = None,
    resume: bool = False,
    seed: int | None = None,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> BuildResult:
    """Write the folder of :func:`build_graph`, without reading it."""
    given, bad = options or BuildOptions(), bad if bad is not None else BadRows()
    check_choice("engine", engine, EngineName)
    check_vocabulary(vocabulary)
    out = Path(out)
    check_target(out, "graph")

    def attempt(summary: InputSummary) -> BuildResult:
        """Build with the options that fit the documents in ``summary``; raise if all documents decide otherwise."""
        counted = BadRows(skip=bad.skip)
        reader = open_reader(documents, given.format, bad=counted, **given.reader)
        options, reasons = decide(given, summary)
        for option, reason in reasons.items():
            progress.say(f"{option} {getattr(options, option)}: {reason}")
        words = open_lexicon(lexicon, options, stop_list, counted, progress)
        plan = {
            "options": repr(options),
            "version": software_version(),
            "engine": engine,
            "inputs": file_stamps(reader.files_on_disk),
            "lexicon": lexicon_stamp(lexicon),
            "stop_list": repr(stop_list),
            "roll_up": repr((roll_up, vocabulary)),
            "seed": seed,
        }
        work = WorkFolder(out, plan, resume)
        if options.private is not None and seed is not None:
            progress.say("anyone who knows the seed can remove the noise; do not set `seed` for a real release")
        if work.dropped:
            progress.say(f"unfinished work in {work.path} was deleted (use `resume` to continue it)")
        with work:
            own_seed = _seed(work, seed)
            finder, keys = Finder(words, options, own_seed), Keys(words, options.level)
            job = BuildJob(reader, finder, keys, work, memory, workers, own_seed, seed, counted, progress)
            hashes = None if lexicon is None or isinstance(lexicon, Lexicon) else file_hashes(expand(lexicon))
            built = _build(out, job, open_engine(engine, job, master), given, hashes, roll_up, vocabulary)
        bad.add(counted)
        return built

    with lock_folder(out), one_line_if_full(out):
        try:
            return attempt(sample_documents(given, documents))
        except UnlikeSample as unlike:  # the decision depends on all documents, not on the order of files and rows
            progress.say(f"{unlike}; starting again")
            return attempt(unlike.summary)


class UnlikeSample(Exception):
    """All documents decide an option otherwise than the sample did."""

    def __init__(self, message: str, summary: InputSummary) -> None:
        super().__init__(message)
        self.summary = summary


def _decided(job: BuildJob, given: BuildOptions) -> dict[str, str] | None:
    """Why the options "auto" are what they are, for ``meta.json``; raise if all documents decide otherwise."""
    options, reasons = decide(given, job.summary)
    for option, reason in reasons.items():
        if getattr(options, option) != getattr(job.options, option):
            job.work.remove()
            raise UnlikeSample(f"{option} {getattr(options, option)}: in all files together, {reason}", job.summary)
    if "unit" in reasons:
        notice_contradicting(options.unit, job.summary, job.bad)
    return reasons or None


def _build(
    out: Path,
    job: BuildJob,
    engine: Engine,
    given: BuildOptions,
    lexicon: list[dict[str, str]] | None,
    roll_up: str | Path | None,
    vocabulary: str | Path | None,
) -> BuildResult:
    """Find and count with the engine, and write the graph."""
    options, bad = job.options, job.bad
    skipped_terms = bad.count
    try:
        n_documents = engine.find(_copies(job, engine))
        if n_documents == 0:
            files = ", ".join(map(str, job.reader.files))
            raise CogstageError(f"{files}: no documents" + (" that can be used" if bad.count else ""))
        decided = _decided(job, given)
        rolled = _roll_up(job, roll_up, vocabulary)
        census = engine.census()
        if not census.units.any():
            if job.finder.lexicon is None:
                raise CogstageError(
                    f"{job.reader.files[0]}: no codes in {n_documents:,} documents; to count terms, set `lexicon`"
                )
            job.progress.say("no term of the lexicon was found: the graph is empty")
        notice_matching(job, [run.left_out for run in engine.runs], census.units)
        made_with = {
            "how": "build",
            **options.as_meta(),
            "decided": decided,
            "format": job.reader.format,
            "inputs": input_hashes(job.reader.files_on_disk, options),
            "lexicon": lexicon,
            "roll_up": None if rolled is None else rolled.level,
            "documents": n_documents,
            "units": census.n_units,
            "groups": census.n_groups,
            "years": job.summary.years if options.suppress_below == 0 else None,
            "skipped": bad.count - skipped_terms,
            "skipped_terms": skipped_terms,
        }
        nodes, edges = _write(out, job, engine, census, rolled, _vocabulary(job, vocabulary), made_with)
    finally:
        engine.stop()
    return BuildResult(nodes, edges, n_documents, census.n_units, bad.count)


def _copies(job: BuildJob, engine: Engine) -> np.ndarray:
    """Keys of the notes that are copies; kept with the work, so that a resumed build has the same."""
    path = job.work.path / "copies.npy"
    if job.options.copies != "drop":
        return np.empty(0, np.uint64)
    if not is_sound(path):
        job.progress.start("Looking for copied notes")
        copies = engine.signatures().copies()
        with hashed_file(path) as temporary, temporary.open("wb") as handle:
            np.save(handle, copies)
        job.progress.done(f"{len(copies):,} notes are nearly identical to an earlier note of their patient")
    found: np.ndarray = np.load(path)
    return found


def _roll_up(job: BuildJob, level: str | Path | None, vocabulary: str | Path | None) -> RollUp | None:
    """Sort the keys, rolled up if that is asked for."""
    if level is None:
        job.keys.seal()
        return None
    job.progress.start(f"Rolling up to {level}")
    codes = job.keys.codes()
    own = job.reader.folder if vocabulary is None and isinstance(job.reader, OmopReader) else vocabulary
    rolled = read_roll_up(level, codes, own)
    job.keys.seal(rolled.parents)
    parents = {parent for found in rolled.parents.values() for parent in found}
    same = f", {rolled.unchanged:,} are at this level already" if rolled.unchanged else ""
    job.progress.done(f"{len(rolled.parents):,} of {len(codes):,} codes became {len(parents):,}{same}")
    if (unused := rolled.unused(codes)) is not None:
        job.progress.say(f"{unused}: they stay as they are")
    return rolled


def _vocabulary(job: BuildJob, given: str | Path | None) -> str | Path | None:
    """The folder with CONCEPT that names the codes: the one given, or OMOP input."""
    if given is not None or not isinstance(job.reader, OmopReader):
        return given
    if table_files(job.reader.folder, "concept"):
        return job.reader.folder
    job.bad.notice(f"{job.reader.folder} has no table CONCEPT, so concepts have no names; see `vocabulary`", 0)
    return None


def _write(
    out: Path,
    job: BuildJob,
    engine: Engine,
    census: Census,
    rolled: RollUp | None,
    vocabulary: str | Path | None,
    made_with: dict[str, Any],
) -> tuple[int, int]:
    """Choose the nodes, count, and write the graph folder; gives nodes and edges."""
    options, keys = job.options, job.keys
    nodes = choose_nodes(keys.keys, census, options)
    chosen = nodes.keys
    counts = (census.groups if options.counts_groups else census.units)[chosen]
    job.progress.start("Counting pairs")
    edges = engine.edges(nodes)
    if options.private is not None:
        noisy = release(edges, options.private, Randomness(job.given_seed), options.order)
        parts, kept, counts = released_nodes(noisy, len(chosen), options.suppress_below)
        edges, chosen = iter(parts), chosen[kept]
        made_with = private_meta(made_with, options.private, options.order, job.given_seed)
    elif options.suppress_below > 0:
        total = census.n_groups if options.counts_groups else census.n_units
        edges = suppress(edges, options.suppress_below, counts, total)
    folder = job.work.path / "graph"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    n_edges = write_edges(folder, edges, options.order)
    _check_not_empty(len(chosen), n_edges, options)
    terms = [keys.keys[number] for number in chosen.tolist()]
    source = None if isinstance(job.reader, OmopReader) else engine.names_of  # its names are those of CONCEPT
    names = with_vocabulary(source, vocabulary, job.bad)
    name_nodes(terms, counts, job.finder, names, {} if rolled is None else rolled.names).write(folder)
    job.progress.done(f"{len(chosen):,} nodes, {n_edges:,} edges")
    if options.keep_examples:
        keep_examples(folder, job, nodes, _copies(job, engine))
    about = {**made_with, "nodes": len(chosen), "edges": n_edges}
    finish_folder(folder, out, "graph", about, release_markdown)
    return len(chosen), n_edges


def _check_not_empty(n_nodes: int, n_edges: int, options: BuildOptions) -> None:
    """Raise if there are no edges, and name the option to change."""
    if n_edges:
        return
    if options.private is not None:
        least = mechanism_for(options.private, options.order).threshold
        raise CogstageError(
            f"no pair has a noisy count of τ = {least:,} patients, so the private graph would be empty; "
            "use more data, or lower τ with a larger EPS or DELTA or a smaller M in `private`"
        )
    if n_nodes == 0:
        return
    if options.suppress_below > 1:
        reason = (
            f"no two occur together in {options.suppress_below} patients; lower `suppress_below` or use a larger `unit`"
        )
    elif options.unit == "patient-window" and options.window is not None:
        reason = f"no two occur in one window of {options.window} days; use a larger `window`, or ever"
    elif options.unit == "patient-window":
        reason = "no patient has two of them; check that patient_id identifies patients and not records"
    else:
        reason = f"no two occur in one {options.unit}; for patient records, use the `unit` patient-window"
    raise CogstageError(f"{n_nodes:,} terms but no edges: {reason}")


def _seed(work: WorkFolder, seed: int | None) -> int:
    """The seed of this build; a generated seed is stored with the work, so that ``resume`` uses the same one."""
    path = work.path / "seed.json"
    if is_sound(path):
        return int(json.loads(path.read_text(encoding="utf-8")))
    if path.exists() and not work.is_empty():
        raise CogstageError(f"the unfinished work in {work.path} is damaged (seed.json); build without `resume`")
    seed = fresh_seed() if seed is None else seed
    write_hashed(path, seed)
    return seed
