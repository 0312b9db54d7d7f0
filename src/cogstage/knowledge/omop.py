"""Facts from OMOP vocabulary files: CONCEPT, CONCEPT_RELATIONSHIP and, where it is there, CONCEPT_SYNONYM."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from cogstage.choices import Ambiguity, check_choice
from cogstage.corpus.formats.omop import table_files
from cogstage.corpus.streams import find_tables, table_batches
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Matcher, MatchResult, Names
from cogstage.knowledge.relation_map import OMOP_RELATIONS, OMOP_TYPES, read_relation_map, read_types
from cogstage.knowledge.source_facts import SourceStatement, facts_of_statements
from cogstage.progress import SILENT, Progress
from cogstage.tables import BadRows

SYNONYM = ["concept_id", "concept_synonym_name", "language_concept_id"]
ENGLISH = "4180186"  # the language's own concept
ADVICE = "give the folder of an unpacked vocabulary download"


def facts_from_omop(
    folder: Path | str,
    names: Names | None = None,
    ambiguity: Ambiguity = "first",
    vocabularies: Collection[str] = (),
    relation_map: Path | str | None = None,
    keep_invalid: bool = False,
    bad: BadRows | None = None,
    progress: Progress = SILENT,
) -> Facts:
    """Read facts between OMOP concepts from vocabulary tables.

    CONCEPT_RELATIONSHIP reads "concept_id_1 relationship_id concept_id_2".

    Parameters
    ----------
    folder
        Folder with CONCEPT and CONCEPT_RELATIONSHIP, as CSV, TSV or Parquet.
    names
        Names of a lexicon or graph. Concepts are matched by identifier, by code (vocabulary_id and concept_code), or
        by English name if the types agree. Only facts between matched concepts are kept.
    ambiguity
        What to do with a concept whose names match several identifiers.
    vocabularies
        Vocabularies to read; all by default.
    relation_map
        Table that maps relations of the source to relation names; the built-in table by default.
    keep_invalid
        Whether to read withdrawn concepts and relationships (invalid_reason).
    bad, progress
        How to handle rows that cannot be read, and the receiver of progress reports.

    Returns
    -------
    Facts
        ``matched`` maps concepts of the graph to those of the facts; ``unmatched`` lists concepts without a node.

    Examples
    --------
    >>> Path("vocabulary").mkdir()
    >>> concepts = ["1,Aspirin,Drug,RxNorm,Ingredient,S,11,", "2,Headache,Condition,SNOMED,Finding,S,22,"]
    >>> columns = "concept_id,concept_name,domain_id,vocabulary_id,concept_class_id,standard_concept,concept_code"
    >>> _ = Path("vocabulary/CONCEPT.csv").write_text("\\n".join([f"{columns},invalid_reason", *concepts]))
    >>> related = ["concept_id_1,concept_id_2,relationship_id,invalid_reason", "1,2,May treat,"]
    >>> _ = Path("vocabulary/CONCEPT_RELATIONSHIP.csv").write_text("\\n".join(related))
    >>> facts = cs.facts_from_omop("vocabulary")
    >>> facts.head, facts.relation, facts.tail
    (('1',), ('may_treat',), ('2',))
    """
    folder, bad = Path(folder), bad or BadRows()
    check_choice("ambiguity", ambiguity, Ambiguity)
    files = find_tables(folder, ["CONCEPT", "CONCEPT_RELATIONSHIP"], ADVICE)
    rules = read_relation_map(relation_map or OMOP_RELATIONS)
    matcher = None if names is None else Matcher(names, ambiguity)
    counts: Counter[str] = Counter()

    progress.start("Reading CONCEPT_RELATIONSHIP")
    statements = dict.fromkeys(
        _statements(files["CONCEPT_RELATIONSHIP"], set(rules), keep_invalid, counts, bad, progress)
    )
    progress.done(f"{counts['rows']:,} rows, {len(statements):,} statements with a mapped relation")

    progress.start("Reading CONCEPT")
    wanted = {concept for first, _, second in statements for concept in (first, second)}
    usable = _Usable(wanted, set(vocabularies), keep_invalid)
    synonyms = table_files(folder, "concept_synonym")
    further = _synonyms(synonyms, names, wanted, bad) if names is not None and synonyms else {}
    usable.read(files["CONCEPT"], matcher, further, bad, progress)
    progress.done(f"{len(usable.vocabulary):,} concepts of the facts are usable")
    if matcher is not None and not synonyms:
        progress.say(f"warning: {folder} has no CONCEPT_SYNONYM; only preferred names are matched")

    matched = MatchResult() if matcher is None else matcher.decide(frozenset(usable.identifiers), usable.types)

    def stated() -> Iterator[SourceStatement]:
        for first, relation, second in statements:
            reason = usable.why_not(first) or usable.why_not(second)
            if reason:
                counts[reason] += 1
                continue
            yield first, relation, second, usable.vocabulary[first]

    made_with = {
        "from": "OMOP",
        "licences": ["OMOP vocabularies: the terms of each vocabulary, as Athena states them"],
        "relation map": Path(relation_map).name if relation_map else "default",
        "vocabularies": sorted(vocabularies) or "all",
        "ambiguous": ambiguity,
    }
    counted = ("CONCEPT_RELATIONSHIP", counts)
    return facts_of_statements(stated(), rules, usable.types, matched, names, usable.name, counted, made_with, bad)


def _statements(
    paths: Sequence[Path],
    relations: set[str],
    keep_invalid: bool,
    counts: Counter[str],
    bad: BadRows,
    progress: Progress,
) -> Iterator[tuple[str, str, str]]:
    """The rows whose relationship is mapped."""
    wanted = pa.array(sorted(relations))
    columns = ["concept_id_1", "concept_id_2", "relationship_id", "invalid_reason"]
    for batch in table_batches(paths, columns, bad):
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
    """What CONCEPT says: which concepts of the statements may be used, their name, vocabulary and our type."""

    def __init__(self, wanted: set[str], vocabularies: set[str], keep_invalid: bool) -> None:
        self._wanted, self._vocabularies, self._keep_invalid = wanted, vocabularies, keep_invalid
        self._ours = read_types(OMOP_TYPES, "domain")
        self._withdrawn: set[str] = set()
        self._elsewhere: set[str] = set()
        self.vocabulary: dict[str, str] = {}
        self.name: dict[str, str] = {}
        self.types: dict[str, frozenset[str]] = {}
        self.identifiers: set[str] = set()

    def why_not(self, concept: str) -> str | None:
        """Why statements about a concept are passed over; None if they are not."""
        if concept in self.vocabulary:
            return None
        if concept in self._withdrawn:
            return "with a withdrawn concept"
        return "with a concept of another vocabulary" if concept in self._elsewhere else "with a concept not in CONCEPT"

    def read(
        self,
        paths: Sequence[Path],
        matcher: Matcher | None,
        synonyms: Mapping[str, list[str]],
        bad: BadRows,
        progress: Progress,
    ) -> None:
        """Read the table; names and codes go to the matcher."""
        columns = ["concept_id", "concept_name", "domain_id", "vocabulary_id", "concept_code", "invalid_reason"]
        for batch in table_batches(paths, columns, bad):
            progress.advance(batch.num_rows)
            rows = zip(*(batch.column(name).to_pylist() for name in columns), strict=True)
            for concept, name, domain, vocabulary, code, invalid in rows:
                if invalid and not self._keep_invalid:
                    if concept in self._wanted:
                        self._withdrawn.add(concept)
                    continue
                if self._vocabularies and vocabulary not in self._vocabularies:
                    if concept in self._wanted:
                        self._elsewhere.add(concept)
                    continue
                wanted = concept in self._wanted
                if wanted:
                    self.vocabulary[concept], self.name[concept] = vocabulary, name
                if (wanted or matcher is not None) and domain in self._ours:
                    self.types[concept] = frozenset([self._ours[domain]])
                if matcher is not None:
                    matcher.offer(name, concept, preferred=True, loosely=wanted)
                    matcher.offer_code(vocabulary, code, concept)
                    for synonym in synonyms.get(concept, ()):
                        matcher.offer(synonym, concept, loosely=wanted)
                    if concept in matcher.names.concepts:
                        self.identifiers.add(concept)


def _synonyms(paths: Sequence[Path], names: Names, wanted: set[str], bad: BadRows) -> dict[str, list[str]]:
    """The English synonyms of each concept: all of the ``wanted``, of others those that are names of the graph."""
    found: dict[str, list[str]] = {}
    for batch in table_batches(paths, SYNONYM, bad):
        batch = batch.filter(pc.equal(batch.column("language_concept_id"), ENGLISH))
        concepts, texts = batch.column("concept_id").to_pylist(), batch.column("concept_synonym_name").to_pylist()
        for concept, text in zip(concepts, texts, strict=True):
            if concept in wanted or names.find(text, loosely=False)[1]:
                found.setdefault(concept, []).append(text)
    return found
