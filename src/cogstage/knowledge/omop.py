"""Facts from OMOP vocabulary files: CONCEPT, CONCEPT_RELATIONSHIP and, where it is there, CONCEPT_SYNONYM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cogstage.graph.vocabulary import fold
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Matcher, Names
from cogstage.knowledge.relation_map import OMOP_RELATIONS, OMOP_TYPES, Oriented, orient, read_relation_map, read_types
from cogstage.knowledge.streams import batches, find_file, find_files
from cogstage.progress import SILENT, Progress
from cogstage.tables import BadRows

# The published column layout; the files are separated by tabs, without quotes, whatever their ending says.
CONCEPT = [
    "concept_id",
    "concept_name",
    "domain_id",
    "vocabulary_id",
    "concept_class_id",
    "standard_concept",
    "concept_code",
    "valid_start_date",
    "valid_end_date",
    "invalid_reason",
]
RELATIONSHIP = [
    "concept_id_1",
    "concept_id_2",
    "relationship_id",
    "valid_start_date",
    "valid_end_date",
    "invalid_reason",
]
SYNONYM = ["concept_id", "concept_synonym_name", "language_concept_id"]
ENGLISH = "4180186"  # the language's own concept
ADVICE = "point to an unpacked vocabulary download"

Statement = tuple[str, str, str, str]  # a, their relation, b, source


def facts_from_omop(
    folder: Path | str,
    names: Names | None = None,
    ambiguous: str = "first",
    vocabularies: Collection[str] = (),
    relation_map: Path | str | None = None,
    keep_invalid: bool = False,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Facts:
    """Facts between OMOP concept identifiers.

    CONCEPT_RELATIONSHIP reads "concept_id_1 relationship_id concept_id_2". Withdrawn concepts and relationships
    (invalid_reason) are passed over, and with ``vocabularies`` so are concepts of others. ``names`` works as for UMLS:
    concepts of a lexicon or graph are matched by identifier or by English name.
    """
    folder, bad = Path(folder), bad or BadRows()
    files = find_files(folder, ["CONCEPT.csv", "CONCEPT_RELATIONSHIP.csv"], ADVICE)
    rules = read_relation_map(relation_map or OMOP_RELATIONS)
    matcher = None if names is None else Matcher(names, ambiguous)
    counts: Counter[str] = Counter()

    progress.start("Reading CONCEPT_RELATIONSHIP")
    statements = dict.fromkeys(
        _statements(files["CONCEPT_RELATIONSHIP.csv"], set(rules), keep_invalid, counts, bad, progress)
    )
    progress.done(f"{counts['rows']:,} rows, {len(statements):,} statements with a relation that is wanted")

    progress.start("Reading CONCEPT")
    wanted = {concept for first, _, second in statements for concept in (first, second)}
    usable = _Usable(wanted, set(vocabularies), keep_invalid)
    synonyms = find_file(folder, ["CONCEPT_SYNONYM.csv"])
    further = _synonyms(synonyms, names, bad) if names is not None and synonyms is not None else {}
    usable.read(files["CONCEPT.csv"], matcher, further, bad, progress)
    progress.done(f"{len(usable.vocabulary):,} concepts of the facts are usable")
    if matcher is not None and synonyms is None:
        progress.say(f"warning: {folder} has no CONCEPT_SYNONYM.csv; names are matched by the preferred names alone")

    matched: dict[str, str] = {}
    merged: Mapping[str, str] = {}
    matching: dict[str, int] = {}
    if matcher is not None:
        matched, merged, matching = matcher.decide(frozenset(usable.identifiers))
    targets = set(matched.values()) if names is not None else None
    said = Oriented()

    def stated() -> Iterator[Statement]:
        for first, relation, second in statements:
            if first not in usable.vocabulary or second not in usable.vocabulary:
                counts["with a withdrawn or unwanted concept"] += 1
                continue
            yield first, relation, second, usable.vocabulary[first]

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for head, relation, tail, source in orient(stated(), rules, usable.types, said):
            head, tail = merged.get(head, head), merged.get(tail, tail)
            if targets is not None and (head not in targets or tail not in targets):
                counts["not in the lexicon or graph"] += 1
                continue
            yield head, relation, tail, source

    made_with = {
        "from": "OMOP",
        "relation map": Path(relation_map).name if relation_map else "default",
        "vocabularies": sorted(vocabularies) or "all",
        "ambiguous": ambiguous,
    }
    facts = Facts.of(rows(), made_with, matched)
    details = {
        "CONCEPT_RELATIONSHIP": dict(counts),
        "turned round by their types": dict(said.turned),
        "heads and tails of other types": dict(said.other_types),
        "names": matching,
        "bad rows": bad.count,
    }
    return Facts(facts.head, facts.relation, facts.tail, facts.source, {**facts.made_with, **details}, facts.matched)


def _statements(
    path: Path, relations: set[str], keep_invalid: bool, counts: Counter[str], bad: BadRows, progress: Progress
) -> Iterator[tuple[str, str, str]]:
    """The rows whose relationship is mapped."""
    wanted = pa.array(sorted(relations))
    columns = ["concept_id_1", "concept_id_2", "relationship_id", "invalid_reason"]
    for batch in batches(path, RELATIONSHIP, columns, "\t", bad, header=True):
        counts["rows"] += batch.num_rows
        progress.advance(batch.num_rows)
        batch = batch.filter(pc.is_in(pc.utf8_lower(batch.column("relationship_id")), value_set=wanted))
        counts["with a mapped relation"] += batch.num_rows
        if not keep_invalid:
            kept = batch.filter(pc.equal(batch.column("invalid_reason"), ""))
            counts["withdrawn"] += batch.num_rows - kept.num_rows
            batch = kept
        first, second, relation = (batch.column(name).to_pylist() for name in columns[:3])
        yield from zip(first, map(str.lower, relation), second, strict=True)


class _Usable:
    """What CONCEPT says: which concepts of the statements may be used, their vocabulary and our type."""

    def __init__(self, wanted: set[str], vocabularies: set[str], keep_invalid: bool) -> None:
        self._wanted, self._vocabularies, self._keep_invalid = wanted, vocabularies, keep_invalid
        self._ours = read_types(OMOP_TYPES, "domain")
        self.vocabulary: dict[str, str] = {}
        self.types: dict[str, frozenset[str]] = {}
        self.identifiers: set[str] = set()

    def read(
        self, path: Path, matcher: Matcher | None, synonyms: Mapping[str, list[str]], bad: BadRows, progress: Progress
    ) -> None:
        """Read the file; names go to the matcher."""
        columns = ["concept_id", "concept_name", "domain_id", "vocabulary_id", "invalid_reason"]
        for batch in batches(path, CONCEPT, columns, "\t", bad, header=True):
            progress.advance(batch.num_rows)
            if not self._keep_invalid:
                batch = batch.filter(pc.equal(batch.column("invalid_reason"), ""))
            if self._vocabularies:
                allowed = pa.array(sorted(self._vocabularies))
                batch = batch.filter(pc.is_in(batch.column("vocabulary_id"), value_set=allowed))
            rows = zip(*(batch.column(name).to_pylist() for name in columns[:4]), strict=True)
            for concept, name, domain, vocabulary in rows:
                if concept in self._wanted:
                    self.vocabulary[concept] = vocabulary
                    if domain in self._ours:
                        self.types[concept] = frozenset([self._ours[domain]])
                if matcher is not None:
                    matcher.offer(name, concept, preferred=True)
                    for synonym in synonyms.get(concept, ()):
                        matcher.offer(synonym, concept)
                    if concept in matcher.names.concepts:
                        self.identifiers.add(concept)


def _synonyms(path: Path, names: Names, bad: BadRows) -> dict[str, list[str]]:
    """The English synonyms of each concept, those alone that are names of the lexicon or graph."""
    found: dict[str, list[str]] = {}
    for batch in batches(path, SYNONYM, SYNONYM, "\t", bad, header=True):
        batch = batch.filter(pc.equal(batch.column("language_concept_id"), ENGLISH))
        concepts, texts = batch.column("concept_id").to_pylist(), batch.column("concept_synonym_name").to_pylist()
        for concept, text in zip(concepts, texts, strict=True):
            if fold(text) in names.concepts_of:
                found.setdefault(concept, []).append(text)
    return found
