"""Facts from a UMLS Metathesaurus release: MRREL for the relations, MRSTY for the types, MRCONSO for the names."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cogstage.choices import Ambiguity, check_choice
from cogstage.corpus.streams import batches, find_files
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Matcher, MatchResult, Names
from cogstage.knowledge.relation_map import UMLS_RELATIONS, UMLS_TYPES, read_relation_map, read_types
from cogstage.knowledge.source_facts import SourceStatement, facts_of_statements
from cogstage.progress import SILENT, Progress
from cogstage.tables import BadRows

# The published column layout of the Rich Release Format; every line ends with a bar, hence the last, empty column.
MRREL = [
    "CUI1",
    "AUI1",
    "STYPE1",
    "REL",
    "CUI2",
    "AUI2",
    "STYPE2",
    "RELA",
    "RUI",
    "SRUI",
    "SAB",
    "SL",
    "RG",
    "DIR",
    "SUPPRESS",
    "CVF",
    "END",
]
MRCONSO = [
    "CUI",
    "LAT",
    "TS",
    "LUI",
    "STT",
    "SUI",
    "ISPREF",
    "AUI",
    "SAUI",
    "SCUI",
    "SDUI",
    "SAB",
    "TTY",
    "CODE",
    "STR",
    "SRL",
    "SUPPRESS",
    "CVF",
    "END",
]
MRSTY = ["CUI", "TUI", "STN", "STY", "ATUI", "CVF", "END"]
FILES = ("MRREL.RRF", "MRSTY.RRF", "MRCONSO.RRF")
ADVICE = "give the META folder of a UMLS release, as written by MetamorphoSys"


def facts_from_umls(
    meta: Path | str,
    names: Names | None = None,
    ambiguity: Ambiguity = "first",
    sources: Collection[str] = (),
    relation_map: Path | str | None = None,
    language: str = "ENG",
    keep_suppressed: bool = False,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Facts:
    """Read facts between CUIs from a UMLS Metathesaurus release.

    MRREL reads from CUI2 to CUI1: a row says "CUI2 RELA CUI1".

    Parameters
    ----------
    meta
        Folder with MRCONSO.RRF, MRREL.RRF and MRSTY.RRF, plain or gzipped.
    names
        Names of a lexicon or graph. Concepts are matched by CUI, by source code (SAB and CODE in MRCONSO), or by name
        if the types agree. Only facts between matched concepts are kept.
    ambiguity
        What to do with a concept whose names match several CUIs.
    sources
        Source vocabularies (SAB) to read; all by default.
    relation_map
        Table that maps relations of the source to relation names; the built-in table by default.
    language, keep_suppressed
        Language that a concept must have a name in, and whether to read suppressed rows.
    bad, progress
        How to handle rows that cannot be read, and the receiver of progress reports.

    Returns
    -------
    Facts
        ``matched`` maps concepts of the graph to CUIs; ``unmatched`` lists concepts of the facts without a node.

    Examples
    --------
    >>> Path("META").mkdir()
    >>> _ = Path("META/MRREL.RRF").write_text("C2||CUI|RO|C1||CUI|may_treat|R1||MED-RT|MED-RT|||N||\\n")
    >>> names = [("C1", "Aspirin"), ("C2", "Headache")]
    >>> lines = [f"{cui}|ENG|P|L1|PF|S1|Y|A1||||MED-RT|PT|{cui}|{name}|0|N||" for cui, name in names]
    >>> _ = Path("META/MRCONSO.RRF").write_text("".join(line + "\\n" for line in lines))
    >>> _ = Path("META/MRSTY.RRF").write_text("C1|T121||Pharmacologic Substance|||\\nC2|T184||Sign or Symptom|||\\n")
    >>> facts = cs.facts_from_umls("META")
    >>> facts.head, facts.relation, facts.tail
    (('C1',), ('may_treat',), ('C2',))
    """
    bad = bad or BadRows()
    check_choice("ambiguity", ambiguity, Ambiguity)
    files = find_files(Path(meta), FILES, ADVICE)
    rules = read_relation_map(relation_map or UMLS_RELATIONS)
    matcher = None if names is None else Matcher(names, ambiguity)
    counts: Counter[str] = Counter()

    progress.start("Reading MRREL")
    statements = Counter(
        read_statements(files["MRREL.RRF"], set(rules), set(sources), keep_suppressed, counts, bad, progress)
    )
    progress.done(f"{counts['rows']:,} rows, {counts['with a mapped relation']:,} of them with a mapped relation")
    concepts = {concept for first, _, second, _ in statements for concept in (first, second)}

    progress.start("Reading MRCONSO")
    named = _Named(concepts, names.concepts if names else frozenset())
    _read_names(files["MRCONSO.RRF"], language, keep_suppressed, named, matcher, bad, progress)
    progress.done(f"{named.rows:,} names in {language}")

    types = _types(files["MRSTY.RRF"], concepts | (matcher.voted if matcher else set()), bad)
    matched = MatchResult() if matcher is None else matcher.decide(frozenset(named.identifiers), types)

    def stated() -> Iterator[SourceStatement]:
        for statement in statements.elements():
            if statement[0] in named.name and statement[2] in named.name:
                yield statement
            else:
                counts["without a name in the language"] += 1

    made_with = {
        "from": "UMLS",
        "licences": ["UMLS Metathesaurus License, and the terms of each source vocabulary"],
        "relation map": Path(relation_map).name if relation_map else "default",
        "chosen_sources": sorted(sources) or "all",
        "language": language,
        "ambiguous": ambiguity,
    }
    return facts_of_statements(stated(), rules, types, matched, names, named.name, ("MRREL", counts), made_with, bad)


def read_statements(
    path: Path,
    relations: set[str],
    sources: set[str],
    keep_suppressed: bool,
    counts: Counter[str],
    bad: BadRows,
    progress: Progress,
) -> Iterator[SourceStatement]:
    """The rows of MRREL whose RELA is mapped, read as "CUI2 RELA CUI1"."""
    wanted = pa.array(sorted(relations))
    allowed = pa.array(sorted(sources), pa.string())
    columns = ["CUI1", "CUI2", "RELA", "SAB", "SUPPRESS"]
    for batch in batches(path, MRREL, columns, "|", bad):
        counts["rows"] += batch.num_rows
        progress.advance(batch.num_rows)
        batch = batch.filter(pc.is_in(pc.ascii_lower(batch.column("RELA")), value_set=wanted))
        counts["with a mapped relation"] += batch.num_rows
        if sources:
            kept = batch.filter(pc.is_in(batch.column("SAB"), value_set=allowed))
            counts["of other sources"] += batch.num_rows - kept.num_rows
            batch = kept
        if not keep_suppressed:
            kept = batch.filter(pc.equal(batch.column("SUPPRESS"), "N"))
            counts["suppressed"] += batch.num_rows - kept.num_rows
            batch = kept
        first, second, relation, source = (batch.column(name).to_pylist() for name in ("CUI2", "CUI1", "RELA", "SAB"))
        # Interned, since a concept occurs in many rows: a third of the memory.
        lowered = (sys.intern(name.lower()) for name in relation)
        yield from zip(map(sys.intern, first), lowered, map(sys.intern, second), map(sys.intern, source), strict=True)


def _types(path: Path, concepts: set[str], bad: BadRows) -> dict[str, frozenset[str]]:
    """Our types of each of the concepts."""
    ours = read_types(UMLS_TYPES, "tui")
    types: dict[str, frozenset[str]] = {}
    for batch in batches(path, MRSTY, ["CUI", "TUI"], "|", bad):
        for concept, tui in zip(batch.column("CUI").to_pylist(), batch.column("TUI").to_pylist(), strict=True):
            if concept in concepts and tui in ours:
                types[concept] = types.get(concept, frozenset()) | {ours[tui]}
    return types


@dataclass
class _Named:
    """Which of the wanted concepts, and of the identifiers a lexicon uses, have a usable name."""

    wanted: set[str]
    theirs: frozenset[str]
    rows: int = 0

    def __post_init__(self) -> None:
        self.name: dict[str, str] = {}  # of the wanted concepts: the preferred one, else the first
        self.identifiers: set[str] = set()


def _read_names(
    path: Path,
    language: str,
    keep_suppressed: bool,
    named: _Named,
    matcher: Matcher | None,
    bad: BadRows,
    progress: Progress,
) -> None:
    columns = ["CUI", "LAT", "TS", "STT", "ISPREF", "SAB", "CODE", "STR", "SUPPRESS"]
    for batch in batches(path, MRCONSO, columns, "|", bad):
        progress.advance(batch.num_rows)
        batch = batch.filter(pc.equal(batch.column("LAT"), language))
        if not keep_suppressed:
            batch = batch.filter(pc.equal(batch.column("SUPPRESS"), "N"))
        named.rows += batch.num_rows
        preferred = pc.and_(
            pc.equal(batch.column("TS"), "P"),
            pc.and_(pc.equal(batch.column("STT"), "PF"), pc.equal(batch.column("ISPREF"), "Y")),
        ).to_pylist()
        concepts, texts, sources, codes = (batch.column(name).to_pylist() for name in ("CUI", "STR", "SAB", "CODE"))
        for concept, name, best in zip(concepts, texts, preferred, strict=True):
            if concept in named.wanted and (best or concept not in named.name):
                named.name[concept] = name
            if concept in named.theirs:
                named.identifiers.add(concept)
        if matcher is None:
            continue
        for concept, name, best, source, code in zip(concepts, texts, preferred, sources, codes, strict=True):
            matcher.offer(name, concept, best, loosely=concept in named.wanted)
            matcher.offer_code(source, code, concept)
