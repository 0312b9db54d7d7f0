"""From documents to rows (which key occurs in which unit of which group), identical on every engine.

Groups and units are 64-bit hashes of identifiers, so that no table of patients or documents is kept in memory and
every worker numbers them alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from cogstage.corpus.annotate import Annotator
from cogstage.corpus.context import rules_named
from cogstage.corpus.language import language_of
from cogstage.corpus.lexicon import Lexicon
from cogstage.corpus.near_duplicates import document_key
from cogstage.corpus.records import Document
from cogstage.errors import UsageError
from cogstage.graph.counting import Rows
from cogstage.graph.options import BuildOptions
from cogstage.graph.renumbering import Renumbering
from cogstage.tables import BadRows

EPOCH = 719_163  # ordinal of 1970-01-01: bins are counted from there, for all patients alike
TEXTS_LOOKED_AT = 500
SPREAD = np.uint64(0x9E3779B97F4A7C15)


def number_of(*parts: str, salt: int = 0) -> int:
    """A 64-bit number for an identifier; with a secret salt it cannot be reversed."""
    text = "\0".join(parts).encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(text, digest_size=8, salt=salt.to_bytes(8, "little")).digest(), "little")


@dataclass
class InputSummary:
    """How many documents of each kind there are, and the first and the last year of those that were counted."""

    kinds: dict[str, int] = field(default_factory=dict)
    examples: dict[str, str] = field(default_factory=dict)  # where the first document of each kind is
    languages: dict[str, int] = field(default_factory=dict)  # of the first texts
    texts: int = 0  # whose language was looked for
    first_year: int | None = None
    last_year: int | None = None

    def add(self, document: Document) -> None:
        """Count a document by its kind."""
        kind = document.kind
        self.kinds[kind] = self.kinds.get(kind, 0) + 1
        self.examples.setdefault(kind, document.where)
        if document.text and self.texts < TEXTS_LOOKED_AT:
            self.texts += 1
            if (language := language_of(document.text)) is not None:
                self.languages[language] = self.languages.get(language, 0) + 1

    def add_year(self, year: int) -> None:
        """The year of a document that is counted."""
        self.first_year = year if self.first_year is None else min(self.first_year, year)
        self.last_year = year if self.last_year is None else max(self.last_year, year)

    def join(self, other: InputSummary) -> None:
        """Add the documents of another part of the input."""
        for kind, count in other.kinds.items():
            self.kinds[kind] = self.kinds.get(kind, 0) + count
            self.examples.setdefault(kind, other.examples[kind])
        self.texts += other.texts
        for language, count in other.languages.items():
            self.languages[language] = self.languages.get(language, 0) + count
        for year in (other.first_year, other.last_year):
            if year is not None:
                self.add_year(year)

    @property
    def years(self) -> list[int] | None:
        """First and last year, for ``meta.json``; None if no document has a date."""
        return None if self.first_year is None or self.last_year is None else [self.first_year, self.last_year]


def usable(
    documents: Iterable[Document],
    options: BuildOptions,
    bad: BadRows,
    copies: np.ndarray | None = None,
    summary: InputSummary | None = None,
) -> Iterator[Document]:
    """The documents that have what the unit needs; the others are bad rows.

    Those after ``until``, and copied notes (``copies`` has their keys, sorted), are left out. ``summary`` counts all
    documents by kind, and the years of those that are used.
    """
    dated = {
        "the unit patient-window": options.unit == "patient-window" and options.window is not None,
        "order": options.order,
        "until": options.until is not None,
    }
    why_date = next((why for why, needed in dated.items() if needed), None)
    for document in documents:
        if summary is not None:
            summary.add(document)
        if why_date is not None and document.date is None:
            bad.report(f"{document.where}, column date: no value, but {why_date} needs one")
        elif options.until is not None and document.date is not None and document.date > options.until:
            bad.notice(f"documents after {options.until}, left out")
        elif copies is not None and len(copies) and document.text and _is_in(copies, document_key(document)):
            bad.notice("notes that are nearly identical to an earlier note of the patient, not counted")
        else:
            if summary is not None and document.date is not None:
                summary.add_year(document.date.year)
            yield document


def _is_in(keys: np.ndarray, key: int) -> bool:
    rank = int(np.searchsorted(keys, np.uint64(key)))
    return rank < len(keys) and int(keys[rank]) == key


@dataclass(frozen=True)
class DocumentRows:
    """Rows of some documents; terms from ``n_known`` on stand for ``codes``, which the lexicon does not know."""

    rows: Rows
    codes: tuple[str, ...] = ()
    left_out: tuple[int, ...] = ()  # mentions that context left out, by the categories of Context


class Keys:
    """The keys of nodes: those of the lexicon at the level asked for, then codes as they are seen.

    Rows are found under running numbers. Once all codes are known, :meth:`seal` sorts the keys; from then on a key's
    number is its rank, so that nodes, which are some of the keys in the same order, need no sorting of their own.
    """

    def __init__(self, lexicon: Lexicon | None, level: str) -> None:
        known: tuple[str, ...] = () if lexicon is None else lexicon.concepts if level == "concept" else lexicon.terms
        self.n_known = len(known)
        self.known = {key: number for number, key in enumerate(known)}
        self._number = dict(self.known)
        self._ranks = Renumbering.from_keys(())

    def add(self, codes: Sequence[str]) -> None:
        """Number the codes that have no number yet."""
        for code in codes:
            self._number.setdefault(code, len(self._number))

    def codes(self) -> list[str]:
        """All keys that were numbered so far."""
        return list(self._number)

    def seal(self, parents: Mapping[str, tuple[str, ...]] | None = None) -> None:
        """Sort the keys: all codes have been added. ``parents`` take the place of the keys that have any."""
        self._ranks = Renumbering.from_keys(self._number, parents)

    @property
    def keys(self) -> list[str]:
        """The sorted keys, once they are sealed."""
        return self._ranks.keys

    def ranked(self, found: DocumentRows) -> Rows:
        """Rows whose terms are ranks of keys; a row whose code has several parents becomes several."""
        numbers = np.arange(self.n_known)
        if found.codes:
            own = np.fromiter((self._number[code] for code in found.codes), np.int64, len(found.codes))
            numbers = np.concatenate([numbers, own])
        number = numbers[found.rows.term]
        if self._ranks.one_to_one:
            return replace(found.rows, term=self._ranks.new[number])
        row, rank = self._ranks.spread(number)
        return replace(found.rows.take(row), term=rank)


class Finder:
    """Finds keys in documents; the work of one process, locally or on Spark."""

    def __init__(self, lexicon: Lexicon | None, options: BuildOptions, salt: int = 0) -> None:
        if lexicon is None and options.content in ("text", "both"):
            raise UsageError("counting terms in text requires `lexicon`")
        self.options, self.salt = options, salt
        self.lexicon = lexicon
        self.annotator = (
            None
            if lexicon is None
            else Annotator(lexicon, context=not options.keep_context, rules=rules_named(options.context_rules))
        )
        keys = Keys(lexicon, options.level)
        self.known, self._n_known = keys.known, keys.n_known

    def __reduce__(self) -> tuple[type[Finder], tuple[Lexicon | None, BuildOptions, int]]:
        return Finder, (self.lexicon, self.options, self.salt)

    def find(self, documents: Sequence[Document]) -> DocumentRows:
        """The rows of these documents, one for each mention."""
        group, unit, marks = self._places(documents)
        index, sentence, term, codes = self.mentions(documents, self.options.unit == "sentence")
        units = unit[index]
        if self.options.unit == "sentence":
            units = marks[index] + sentence.astype(np.int64).view(np.uint64) * SPREAD
        day = self._days(documents)[index] if self.options.order else None
        left_out = () if self.annotator is None else self.annotator.take_left_out()
        return DocumentRows(Rows.from_columns(group[index], units.view(np.int64), term, day), codes, left_out)

    def mentions(
        self, documents: Sequence[Document], sentences: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[str, ...]]:
        """Document, sentence (0 unless asked for, -1 for a code) and term of each mention; and the unknown codes."""
        index, sentence, term = self._terms(documents, sentences)
        of_codes, code_numbers, codes = self._codes(documents)
        index = np.concatenate([index, of_codes])
        sentence = np.concatenate([sentence, np.full(len(of_codes), -1, np.int32)])  # codes occur in no sentence
        return index, sentence, np.concatenate([term, code_numbers]), codes

    def _days(self, documents: Sequence[Document]) -> np.ndarray:
        dates = (document.date for document in documents)
        days = (0 if date is None else date.toordinal() - EPOCH for date in dates)
        return np.fromiter(days, np.int32, len(documents))

    def _places(self, documents: Sequence[Document]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each document the group, the unit, and a number that marks its sentences."""
        options = self.options
        group = np.empty(len(documents), np.uint64)
        unit = np.zeros(len(documents), np.uint64)
        marks = np.zeros(len(documents), np.uint64)
        for at, document in enumerate(documents):
            own = number_of("document", document.scope, document.doc_id, salt=self.salt)
            patient = document.patient_id
            group[at] = own if patient is None else number_of("patient", patient, salt=self.salt)
            if options.unit == "document" or (options.unit == "visit" and document.visit_id is None):
                unit[at] = own
            elif options.unit == "visit":
                unit[at] = number_of("visit", patient or "", str(document.visit_id), salt=self.salt)
            elif options.unit == "sentence":
                marks[at] = number_of("sentences", document.scope, document.doc_id, salt=self.salt)
            elif options.window is not None and document.date is not None:
                days = (document.date.toordinal() - EPOCH) // options.window
                unit[at] = days % 2**64  # two's complement
        return group, unit, marks

    def _terms(self, documents: Sequence[Document], sentences: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if self.annotator is None or self.options.content == "codes":
            return np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int32)
        texts = [document.text for document in documents]
        if self.options.level == "concept":
            return self.annotator.concept_rows(texts, sentences)
        return self.annotator.term_rows(texts, sentences)

    def _codes(self, documents: Sequence[Document]) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
        """Document and number of every code that counts; codes the lexicon does not know are numbered behind it."""
        rule = self.options.content
        index: list[int] = []
        numbers: list[int] = []
        new: dict[str, int] = {}
        for at, document in enumerate(documents):
            if (
                not document.codes
                or rule == "text"
                or (rule == "auto" and self.annotator is not None and document.text)
            ):
                continue
            for code in document.codes:
                number = self.known.get(code)
                if number is None:
                    number = new.setdefault(code, self._n_known + len(new))
                index.append(at)
                numbers.append(number)
        return np.array(index, np.int32), np.array(numbers, np.int32), tuple(new)
