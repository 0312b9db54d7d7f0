"""Lexicon tables from UMLS, the OMOP vocabularies and MeSH: terms with their concept, name and type."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cogstage.artefact import new_file
from cogstage.corpus.concept_names import ENGLISH
from cogstage.corpus.formats.omop import table_files
from cogstage.corpus.lexicon import common_words, is_exact, read_stop_list
from cogstage.corpus.mesh import read_mesh
from cogstage.corpus.streams import batches, find_file, find_tables, table_batches
from cogstage.corpus.tokens import casefold_text, casefold_tokens
from cogstage.errors import CogstageError, UsageError
from cogstage.knowledge.names import without_suffix
from cogstage.knowledge.relation_map import OMOP_TYPES, UMLS_TYPES, read_types
from cogstage.knowledge.umls import MRCONSO, MRSTY
from cogstage.progress import SILENT, Progress
from cogstage.tables import BadRows

MOST_TOKENS = 10  # longer names are descriptions, which no text repeats
_LETTER = re.compile(r"[^\W\d_]")


@dataclass(frozen=True)
class LexiconOptions:
    """Which names become terms.

    ``types`` are our types (``drug``) or those of the source: a UMLS type (``T047``, ``Disease or Syndrome``) or an
    OMOP domain. ``vocabularies`` are those of UMLS (SAB) or OMOP; none of either means all.
    """

    types: tuple[str, ...] = ()
    vocabularies: tuple[str, ...] = ()
    language: str = "ENG"
    stop_list: str | Path | Iterable[str] = ()


@dataclass
class LexiconSummary:
    """Counts of a lexicon that was built."""

    terms: int = 0
    concepts: int = 0
    types: Counter[str] = field(default_factory=Counter)  # concepts by type
    left_out: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class NamedConcept:
    """A concept of a source with all its names, the preferred one first."""

    concept: str
    type: str
    names: tuple[str, ...]


def build_lexicon(
    sources: Collection[Path | str],
    out: Path | str,
    options: LexiconOptions | None = None,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> LexiconSummary:
    """Write a lexicon table (term, concept, name, type) from UMLS, OMOP or MeSH files.

    Names of one letter, without letters, or of more than ten tokens are left out, as are common English words and the
    terms of the stop list. A term of several concepts is written for each.

    Parameters
    ----------
    sources
        META folders of UMLS, folders with OMOP vocabulary tables, MeSH XML files or folders with them.
    out
        The table to write, tab-separated.
    options
        Which names become terms.
    bad, progress
        How to handle rows that cannot be read, and the receiver of progress reports.
    """
    options, bad, out = options or LexiconOptions(), bad if bad is not None else BadRows(), Path(out)
    summary, unsuitable = LexiconSummary(), _Unsuitable(options)
    written: set[tuple[str, str]] = set()
    with new_file(out) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as handle:
        handle.write("term\tconcept\tname\ttype\n")
        for source in map(Path, sources):
            progress.start(f"Reading {source}")
            for concept in _concepts(source, options, bad):
                terms = dict.fromkeys(_cell(without_suffix(name)) for name in concept.names)
                lines = []
                for term in terms:
                    key = (casefold_text(term) if not is_exact(term) else term, concept.concept)
                    if reason := unsuitable.why(term):
                        summary.left_out[reason] += 1
                    elif key not in written:
                        written.add(key)
                        name = _cell(without_suffix(concept.names[0]))
                        lines.append(f"{term}\t{_cell(concept.concept)}\t{name}\t{concept.type}\n")
                if lines:
                    handle.writelines(lines)
                    summary.terms += len(lines)
                    summary.concepts += 1
                    summary.types[concept.type or "no type"] += 1
                progress.advance()
            progress.done(f"{summary.terms:,} terms of {summary.concepts:,} concepts")
        if not summary.terms:
            raise CogstageError(f"{', '.join(map(str, sources))}: no terms of the types and vocabularies asked for")
    return summary


class _Unsuitable:
    """Why a name is no term for text; the stop list and common words are read once."""

    def __init__(self, options: LexiconOptions) -> None:
        self._stopped = {casefold_tokens(term) for term in read_stop_list(options.stop_list)}
        self._common = common_words()

    def why(self, term: str) -> str | None:
        """Return the reason, or None for a suitable term."""
        tokens = casefold_tokens(term)
        if len(term) < 2 or not _LETTER.search(term):
            return "names of one character or without letters"
        if len(tokens) > MOST_TOKENS:
            return f"names of more than {MOST_TOKENS} tokens"
        if tokens in self._stopped:
            return "terms of the stop list"
        return "common English words" if not is_exact(term) and casefold_text(term) in self._common else None


def _cell(text: str) -> str:
    return " ".join(text.split())


def _concepts(source: Path, options: LexiconOptions, bad: BadRows) -> Iterator[NamedConcept]:
    if source.is_dir() and find_file(source, ["MRCONSO.RRF"]) is not None:
        return _of_umls(source, options, bad)
    if source.is_dir() and table_files(source, "concept"):
        return _of_omop(source, options, bad)
    if not source.exists():
        raise UsageError(f"no such file: {source}")
    if source.is_dir() or ".xml" in source.name.lower():
        return _of_mesh(source, options, bad)
    raise UsageError(f"{source}: expected a folder with MRCONSO.RRF or CONCEPT, or MeSH XML (desc2026.xml)")


def _of_mesh(source: Path, options: LexiconOptions, bad: BadRows) -> Iterator[NamedConcept]:
    wanted = _wanted(options.types)
    for record in read_mesh(source, bad):
        if not wanted or record.type in wanted:
            yield NamedConcept(record.identifier, record.type, record.terms)


def _of_umls(meta: Path, options: LexiconOptions, bad: BadRows) -> Iterator[NamedConcept]:
    """The rows of MRCONSO come sorted by CUI, so that one concept is held at a time."""
    conso, sty = (find_file(meta, [name]) for name in ("MRCONSO.RRF", "MRSTY.RRF"))
    if conso is None or sty is None:
        raise UsageError(f"{meta} has no MRSTY.RRF, which holds the semantic types")
    types = _umls_types(sty, _wanted(options.types), bad)
    rows = _umls_rows(conso, options, bad)
    for cui, group in groupby((row for row in rows if not options.types or row[0] in types), itemgetter(0)):
        names = sorted(((not preferred, order, name) for order, (_, name, preferred) in enumerate(group)))
        yield NamedConcept(cui, types.get(cui, ""), tuple(name for _, _, name in names))


def _umls_rows(path: Path, options: LexiconOptions, bad: BadRows) -> Iterator[tuple[str, str, bool]]:
    """CUI, name and whether it is the preferred one, of rows that are not suppressed."""
    columns = ["CUI", "LAT", "TS", "STT", "ISPREF", "SAB", "STR", "SUPPRESS"]
    allowed = pa.array(sorted(options.vocabularies), pa.string())
    for batch in batches(path, MRCONSO, columns, "|", bad):
        kept = pc.and_(pc.equal(batch.column("LAT"), options.language), pc.equal(batch.column("SUPPRESS"), "N"))
        if options.vocabularies:
            kept = pc.and_(kept, pc.is_in(batch.column("SAB"), value_set=allowed))
        batch = batch.filter(kept)
        marks = zip(*(batch.column(name).to_pylist() for name in ("TS", "STT", "ISPREF")), strict=True)
        concepts, names = batch.column("CUI").to_pylist(), batch.column("STR").to_pylist()
        for concept, name, mark in zip(concepts, names, marks, strict=True):
            yield concept, name, mark == ("P", "PF", "Y")


def _umls_types(path: Path, wanted: frozenset[str], bad: BadRows) -> dict[str, str]:
    """Our type of each concept that has a wanted one; the first in the order of their types."""
    ours = read_types(UMLS_TYPES, "tui")
    found: dict[str, tuple[str, str]] = {}
    for batch in batches(path, MRSTY, ["CUI", "TUI", "STY"], "|", bad):
        for cui, tui, name in zip(*(batch.column(c).to_pylist() for c in ("CUI", "TUI", "STY")), strict=True):
            type = ours.get(tui, "")
            if not wanted or wanted & {tui.lower(), name.lower(), type}:
                found[cui] = min((tui, type), found.get(cui, (tui, type)))
    return {cui: type for cui, (_, type) in found.items()}


def _of_omop(folder: Path, options: LexiconOptions, bad: BadRows) -> Iterator[NamedConcept]:
    """Standard concepts, with their English synonyms."""
    ours, wanted, chosen = read_types(OMOP_TYPES, "domain"), _wanted(options.types), set(options.vocabularies)
    files = find_tables(folder, ["CONCEPT"], "give the folder of an unpacked vocabulary download")["CONCEPT"]
    concepts: dict[str, tuple[str, str]] = {}
    columns = ["concept_id", "concept_name", "domain_id", "vocabulary_id", "standard_concept", "invalid_reason"]
    for batch in table_batches(files, columns, bad):
        batch = batch.filter(pc.and_(pc.equal(batch.column(4), "S"), pc.equal(batch.column(5), "")))
        for concept, name, domain, vocabulary, _, _ in zip(*(c.to_pylist() for c in batch.columns), strict=True):
            type = ours.get(domain, "")
            if (not chosen or vocabulary in chosen) and (not wanted or wanted & {domain.lower(), type}):
                concepts[concept] = (name, type)
    synonyms: dict[str, list[str]] = {}
    for batch in table_batches(
        table_files(folder, "concept_synonym"), ["concept_id", "concept_synonym_name", "language_concept_id"], bad
    ):
        batch = batch.filter(pc.equal(batch.column(2), ENGLISH))
        for concept, name in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
            if concept in concepts:
                synonyms.setdefault(concept, []).append(name)
    for concept, (name, type) in concepts.items():
        yield NamedConcept(concept, type, (name, *synonyms.get(concept, ())))


def _wanted(types: Iterable[str]) -> frozenset[str]:
    return frozenset(type.strip().lower() for type in types)
