"""Facts from a UMLS Metathesaurus release: MRREL for the relations, MRSTY for the types, MRCONSO for the names."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Matcher, Names
from cogstage.knowledge.relation_map import UMLS_RELATIONS, UMLS_TYPES, Oriented, orient, read_relation_map, read_types
from cogstage.knowledge.streams import batches, find_files
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
ADVICE = "point to the META folder of a UMLS release (MetamorphoSys writes it)"

Statement = tuple[str, str, str, str]  # a, their relation, b, source


def facts_from_umls(
    meta: Path | str,
    names: Names | None = None,
    ambiguous: str = "first",
    sources: Collection[str] = (),
    relation_map: Path | str | None = None,
    language: str = "ENG",
    keep_suppressed: bool = False,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Facts:
    """Facts between CUIs.

    MRREL reads from CUI2 to CUI1: a row says "CUI2 RELA CUI1". Rows of other ``sources`` (SAB; none means all) and
    suppressed rows are passed over. Only concepts with a name in ``language`` that is not suppressed take part. With
    ``names`` (of a lexicon or graph) each of its concepts is matched to a CUI, by being one or by its names, and only
    facts between matched ones are kept; ``Facts.matched`` says what stands for what.
    """
    bad = bad or BadRows()
    files = find_files(Path(meta), FILES, ADVICE)
    rules = read_relation_map(relation_map or UMLS_RELATIONS)
    matcher = None if names is None else Matcher(names, ambiguous)
    counts: Counter[str] = Counter()

    progress.start("Reading MRREL")
    statements = Counter(
        read_statements(files["MRREL.RRF"], set(rules), set(sources), keep_suppressed, counts, bad, progress)
    )
    progress.done(f"{counts['rows']:,} rows, {len(statements):,} of them with a relation that is wanted")
    concepts = {concept for first, _, second, _ in statements for concept in (first, second)}
    types = _types(files["MRSTY.RRF"], concepts, bad)

    progress.start("Reading MRCONSO")
    named = _Named(concepts, names.concepts if names else frozenset())
    _read_names(files["MRCONSO.RRF"], language, keep_suppressed, named, matcher, bad, progress)
    progress.done(f"{named.rows:,} names in {language}")

    matched: dict[str, str] = {}
    merged: Mapping[str, str] = {}
    matching: dict[str, int] = {}
    if matcher is not None:
        matched, merged, matching = matcher.decide(frozenset(named.identifiers))
    wanted = set(matched.values()) if names is not None else None
    said = Oriented()

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for head, relation, tail, source in orient(statements.elements(), rules, types, said):
            if head not in named.found or tail not in named.found:
                counts["without a name in the language"] += 1
                continue
            head, tail = merged.get(head, head), merged.get(tail, tail)
            if wanted is not None and (head not in wanted or tail not in wanted):
                counts["not in the lexicon or graph"] += 1
                continue
            yield head, relation, tail, source

    made_with = {
        "from": "UMLS",
        "relation map": Path(relation_map).name if relation_map else "default",
        "sources": sorted(sources) or "all",
        "language": language,
        "ambiguous": ambiguous,
    }
    facts = Facts.of(rows(), made_with, matched)
    details = {
        "MRREL": dict(counts),
        "turned round by their types": dict(said.turned),
        "heads and tails of other types": dict(said.other_types),
        "names": matching,
        "bad rows": bad.count,
    }
    return Facts(facts.head, facts.relation, facts.tail, facts.source, {**facts.made_with, **details}, facts.matched)


def read_statements(
    path: Path,
    relations: set[str],
    sources: set[str],
    keep_suppressed: bool,
    counts: Counter[str],
    bad: BadRows,
    progress: Progress,
) -> Iterator[Statement]:
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
        # Interned, since a concept stands in many rows: a third of the memory.
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
        self.found: set[str] = set()
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
    columns = ["CUI", "LAT", "TS", "STT", "ISPREF", "STR", "SUPPRESS"]
    for batch in batches(path, MRCONSO, columns, "|", bad):
        progress.advance(batch.num_rows)
        batch = batch.filter(pc.equal(batch.column("LAT"), language))
        if not keep_suppressed:
            batch = batch.filter(pc.equal(batch.column("SUPPRESS"), "N"))
        named.rows += batch.num_rows
        concepts = batch.column("CUI").to_pylist()
        for concept in set(concepts):
            if concept in named.wanted:
                named.found.add(concept)
            if concept in named.theirs:
                named.identifiers.add(concept)
        if matcher is None:
            continue
        preferred = pc.and_(
            pc.equal(batch.column("TS"), "P"),
            pc.and_(pc.equal(batch.column("STT"), "PF"), pc.equal(batch.column("ISPREF"), "Y")),
        )
        for concept, name, best in zip(concepts, batch.column("STR").to_pylist(), preferred.to_pylist(), strict=True):
            matcher.offer(name, concept, best)
