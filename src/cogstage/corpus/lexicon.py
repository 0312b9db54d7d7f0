"""The lexicon: terms, the concepts they name, and the matcher compiled from them, kept in a cache on disk."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib.resources import files
from itertools import compress, product
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.choices import Ambiguity, check_choice
from cogstage.corpus.context import default_rules
from cogstage.corpus.tokens import casefold_text, casefold_token, casefold_tokens, normalise
from cogstage.corpus.variants import variants_of
from cogstage.errors import CogstageError, UsageError
from cogstage.input_files import Paths
from cogstage.tables import BadRows, expand, read_rows

Tokens = tuple[str, ...]

UNKNOWN = "\x01"  # stands for every token that no term and no cue holds
BREAK = "\x02"  # stands for a line end between sentences
FIRST_CHARACTER = 0x20  # below: the reserved ones
LONGEST_EXACT = 4
MOST_CASES = 3  # a term with more words that are also abbreviations gets the form in capitals alone
MOST_TOKENS = 0x10FFFF - 0x800 - FIRST_CHARACTER


def character(number: int) -> str:
    """The private character of token ``number``: every Unicode scalar but the reserved ones, short ones first."""
    point = FIRST_CHARACTER + number
    return chr(point if point < 0xD800 else point + 0x800)


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of a lexicon table."""

    term: str
    concept: str | None = None
    name: str | None = None
    type: str | None = None
    where: str = ""


@dataclass(frozen=True)
class Lexicon:
    """Terms by number, concepts by number, and which concepts a term names.

    A term is identified by its tokens: spellings that differ in case, white space or kind of dash are one term, but an
    abbreviation (see :func:`is_exact`) is known by its capitals. With the ambiguity rule ``all`` a term may name
    several concepts, otherwise one.
    """

    terms: tuple[str, ...]
    concepts: tuple[str, ...]
    concept_names: tuple[str, ...]
    concept_types: tuple[str, ...]
    concept_starts: np.ndarray  # int64 (T + 1,): the concepts of term t are term_concepts[starts[t] : starts[t + 1]]
    term_concepts: np.ndarray  # int32
    tokens: tuple[str, ...]  # casefolded, or exact in capitals; token i has the private character character(i)
    pattern_terms: np.ndarray  # int32 (P,): the term that each pattern of the automaton stands for
    automaton: Any = field(repr=False, compare=False)  # daachorse, leftmost-longest over private characters

    def __len__(self) -> int:
        return len(self.terms)

    @cached_property
    def first_concept(self) -> np.ndarray:
        """The first (or only) concept of each term, int32 (T,)."""
        return np.asarray(self.term_concepts[self.concept_starts[:-1]])

    @property
    def ambiguous(self) -> bool:
        """Whether some term names several concepts."""
        return len(self.term_concepts) > len(self.terms)

    def concepts_of(self, term: int) -> list[int]:
        """The concepts that a term names."""
        found: list[int] = self.term_concepts[self.concept_starts[term] : self.concept_starts[term + 1]].tolist()
        return found

    @cached_property
    def any_case(self) -> dict[str, str]:
        """Exact tokens (``MS``) -> the casefolded form (``ms``) that other terms or cues may hold."""
        return {token: casefold_token(token) for token in self.tokens if is_exact(token)}

    @cached_property
    def common_words(self) -> list[int]:
        """Terms that are common English words in any case, and so will match in text that does not mean them."""
        common = common_words()
        return [t for t, term in enumerate(self.terms) if not is_exact(term) and casefold_text(term) in common]

    @classmethod
    def read(
        cls,
        paths: Paths,
        ambiguity: Ambiguity = "first",
        stop_list: str | Path | Iterable[str] = (),
        variants: bool = False,
        bad: BadRows | None = None,
        cache: Path | str | bool = True,
        any_case: bool = False,
    ) -> Lexicon:
        """Read tables ``term, concept, name, type`` (all but term optional) and compile them.

        ``ambiguity``: a term of several concepts stands for the ``first`` one listed, for ``all``, or is left out
        (``skip``). ``stop_list``: terms to leave out, given or as a file with one per line. ``variants``: plurals and
        hyphens too. ``any_case``: abbreviations (one word of at most four characters, all capitals) match in any case,
        and not as they are written only. ``cache``: where compiled lexicons are kept (True: the user's cache folder;
        False: nowhere).
        """
        from cogstage.corpus import lexicon_cache

        bad = bad if bad is not None else BadRows()
        check_choice("ambiguity", ambiguity, Ambiguity)
        stopped = read_stop_list(stop_list)
        tables = expand(paths)
        kept_at = lexicon_cache.entry_path(cache, tables, [ambiguity, sorted(stopped), variants, any_case])
        if kept_at is not None and (kept := lexicon_cache.load(kept_at, bad)) is not None:
            return kept
        counted = BadRows(skip=bad.skip)
        rows = read_rows(tables, required=["term"], optional=["concept", "name", "type"], bad=counted)
        entries = (
            Entry(str(r["term"]), _text(r["concept"]), _text(r["name"]), _text(r["type"]), r.where("term"))
            for r in rows
        )
        where = ", ".join(map(str, tables))
        lexicon = cls.build(entries, ambiguity, stopped, variants, counted, where, any_case)
        if kept_at is not None:
            lexicon_cache.save(lexicon, kept_at, counted)
        bad.add(counted)
        return lexicon

    @classmethod
    def build(
        cls,
        entries: Iterable[Entry],
        ambiguity: Ambiguity = "first",
        stop_list: Iterable[str] = (),
        variants: bool = False,
        bad: BadRows | None = None,
        where: str = "lexicon",
        any_case: bool = False,
    ) -> Lexicon:
        """Create a lexicon from rows; ``where`` names them in messages."""
        bad = bad if bad is not None else BadRows()
        stopped = {casefold_tokens(term) for term in stop_list}
        rows = _Rows(bad, any_case)
        for entry in entries:
            rows.add(entry, stopped)
        named = _resolve_ambiguity(rows.concepts_by_term(), ambiguity)
        if not named:
            raise CogstageError(
                f"{where}: the lexicon has no terms (or the stop list and the ambiguity rule removed all of them)"
            )
        numbers: dict[str, int] = {}
        per_term = [[numbers.setdefault(c, len(numbers)) for c in concepts] for concepts in named.values()]
        keys, pattern_terms = list(named), list(range(len(named)))
        if variants:
            _add_variants(keys, pattern_terms, stopped)
        _add_cases(keys, pattern_terms)
        token_list, patterns = _encode(keys, where)
        return cls(
            terms=tuple(rows.spelling[tokens] for tokens in named),
            concepts=tuple(numbers),
            concept_names=tuple(rows.names.get(concept) or concept for concept in numbers),
            concept_types=tuple(rows.types.get(concept, "") for concept in numbers),
            concept_starts=np.concatenate([[0], np.cumsum([len(found) for found in per_term])]).astype(np.int64),
            term_concepts=np.array([concept for found in per_term for concept in found], np.int32),
            tokens=token_list,
            pattern_terms=np.array(pattern_terms, np.int32),
            automaton=compile_patterns(patterns),
        )


class _Rows:
    """The rows of a lexicon, gathered by the tokens that a term is known by."""

    def __init__(self, bad: BadRows, any_case: bool) -> None:
        self.bad, self.any_case = bad, any_case
        self.spelling: dict[Tokens, str] = {}  # how a term was first written
        self.names: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self._concepts: dict[Tokens, dict[str, None]] = {}  # of each term, in order
        self._rows: set[tuple[str, str]] = set()  # term as written, concept

    def add(self, entry: Entry, stopped: Collection[Tokens]) -> None:
        """Add one row; a repeated one, or another way to write its case, is counted."""
        casefolded = casefold_tokens(entry.term)
        if not casefolded:
            self.bad.report(f"{entry.where}: the term is empty")
            return
        written = " ".join(normalise(entry.term).split())
        concept = entry.concept or casefold_text(entry.term)
        if (written, concept) in self._rows:
            self.bad.notice("rows of the lexicon that repeat a term and its concept, merged")
            return
        self._rows.add((written, concept))
        if casefolded in stopped:
            return
        exact = not self.any_case and len(casefolded) == 1 and is_exact(written)
        tokens: Tokens = (written,) if exact else casefolded
        concepts = self._concepts.setdefault(tokens, {})
        if concept in concepts:
            self.bad.notice("terms of the lexicon that differ only in case, merged")
        concepts[concept] = None
        self.spelling.setdefault(tokens, " ".join(entry.term.split()))
        if (name := entry.name or (None if entry.concept else entry.term)) and concept not in self.names:
            self.names[concept] = name
        if entry.type and concept not in self.types:
            self.types[concept] = entry.type

    def concepts_by_term(self) -> dict[Tokens, dict[str, None]]:
        """The concepts of each term; "PACK" is merged with "Pack" of the same concepts, which matches in any case."""
        for tokens in [tokens for tokens in self._concepts if len(tokens) == 1 and is_exact(tokens[0])]:
            if self._concepts.get((casefold_token(tokens[0]),), {}).keys() == self._concepts[tokens].keys():
                del self._concepts[tokens]
                self.bad.notice("terms of the lexicon that differ only in case, merged")
        return self._concepts


def is_exact(term: str) -> bool:
    """Whether a word is an abbreviation that matches as it is written only: at most four characters, all capitals."""
    return len(term) <= LONGEST_EXACT and term.isupper()


def _resolve_ambiguity(named: dict[Tokens, dict[str, None]], ambiguity: Ambiguity) -> dict[Tokens, dict[str, None]]:
    """Decide which concepts a term with several concepts represents."""
    if ambiguity == "skip":
        return {tokens: concepts for tokens, concepts in named.items() if len(concepts) == 1}
    if ambiguity == "first":
        return {tokens: {next(iter(concepts)): None} for tokens, concepts in named.items()}
    return named


def _add_variants(keys: list[Tokens], pattern_terms: list[int], stopped: Collection[Tokens]) -> None:
    """Patterns for plurals, singulars and hyphens, where no term is written that way."""
    taken = set(keys)
    for term, tokens in enumerate(list(keys)):
        if is_exact(tokens[0]):
            continue
        for variant in variants_of(tokens):
            if variant not in taken and variant not in stopped:
                taken.add(variant)
                keys.append(variant)
                pattern_terms.append(term)


def _add_cases(keys: list[Tokens], pattern_terms: list[int]) -> None:
    """Patterns for terms that hold the letters of an abbreviation, for in capitals the text will read as that.

    If ALL is an abbreviation, "all-trans" must also be known as ALL-TRANS.
    """
    exact = {casefold_token(tokens[0]): tokens[0] for tokens in keys if len(tokens) == 1 and is_exact(tokens[0])}
    if not exact:
        return
    taken = set(keys)
    for tokens, term in list(zip(keys, pattern_terms, strict=True)):
        at = [position for position, token in enumerate(tokens) if token in exact]
        choices = product((False, True), repeat=len(at)) if len(at) <= MOST_CASES else [(True,) * len(at)]
        for chosen in choices:
            cased = list(tokens)
            for position in compress(at, chosen):
                cased[position] = exact[cased[position]]
            if (key := tuple(cased)) not in taken:
                taken.add(key)
                keys.append(key)
                pattern_terms.append(term)


@cache
def common_words() -> frozenset[str]:
    """Common English words, in lower case."""
    return frozenset(files("cogstage.corpus").joinpath("common_words.txt").read_text(encoding="utf-8").split())


def compile_patterns(patterns: list[str]) -> Any:
    """The leftmost-longest automaton over private characters."""
    import daachorse

    return daachorse.CharwiseDoubleArrayAhoCorasick(patterns, daachorse.MATCH_KIND_LEFTMOST_LONGEST)


def read_stop_list(stop_list: str | Path | Iterable[str]) -> frozenset[str]:
    """The terms of a stop list: given ones, or one per line of a file (lines that begin with # are comments)."""
    if not isinstance(stop_list, (str, Path)):
        return frozenset(stop_list)
    try:
        lines = Path(stop_list).read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise UsageError(f"{stop_list} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise CogstageError(f"{stop_list}: not UTF-8 text ({error.reason})") from None
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


def _encode(keys: Sequence[tuple[str, ...]], where: str) -> tuple[tuple[str, ...], list[str]]:
    """Give every token a private character, frequent tokens the short ones, and write the patterns in them."""
    uses: dict[str, int] = {}
    for key in keys:
        for token in key:
            uses[token] = uses.get(token, 0) + 1
    if len(uses) > MOST_TOKENS - 10_000:  # leaves space for the words of context rules
        raise CogstageError(
            f"{where}: {len(uses):,} different words; a lexicon can have at most {MOST_TOKENS - 10_000:,}"
        )
    # the words of the context rules stand first in every lexicon, so that their matcher is compiled once for all
    cue_tokens = default_rules().tokens
    others = uses.keys() - set(cue_tokens)
    tokens = (*cue_tokens, *sorted(others, key=lambda token: (-uses[token], token)))
    characters = {token: character(number) for number, token in enumerate(tokens)}
    return tokens, ["".join([characters[token] for token in key]) for key in keys]


def _text(value: Any) -> str | None:
    return None if value is None else str(value).strip() or None
