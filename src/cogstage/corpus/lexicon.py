"""The lexicon: terms, the concepts they name, and the matcher compiled from them, kept in a cache on disk."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cogstage.corpus.context import default_rules
from cogstage.corpus.tokens import fold, folded_tokens
from cogstage.corpus.variants import variants_of
from cogstage.errors import CogstageError, UsageError
from cogstage.tables import BadRows, expand, read_rows

Ambiguity = Literal["first", "all", "skip"]
AMBIGUITIES: tuple[Ambiguity, ...] = ("first", "all", "skip")

UNKNOWN = "\x01"  # stands for every token that no term and no cue holds
BREAK = "\x02"  # stands for a line end between sentences
FIRST_CHARACTER = 0x20  # below: the reserved ones
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

    A term is known by its tokens: spellings that differ in case, white space or kind of dash are one term. With the
    ambiguity rule ``all`` a term may name several concepts, otherwise one.
    """

    terms: tuple[str, ...]
    concepts: tuple[str, ...]
    concept_names: tuple[str, ...]
    concept_types: tuple[str, ...]
    concept_starts: np.ndarray  # int64 (T + 1,): the concepts of term t are term_concepts[starts[t] : starts[t + 1]]
    term_concepts: np.ndarray  # int32
    tokens: tuple[str, ...]  # folded; token i has the private character character(i)
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

    @classmethod
    def read(
        cls,
        paths: str | Path | Sequence[str | Path],
        ambiguity: Ambiguity = "first",
        stop_list: str | Path | Iterable[str] = (),
        variants: bool = False,
        bad: BadRows | None = None,
        cache: Path | str | bool = True,
    ) -> Lexicon:
        """Read tables ``term, concept, name, type`` (all but term optional) and compile them.

        ``ambiguity``: a term of several concepts stands for the ``first`` one listed, for ``all``, or is left out
        (``skip``). ``stop_list``: terms to leave out, given or as a file with one a line. ``variants``: plurals and
        hyphens too. ``cache``: where compiled lexicons are kept (True: the user's cache folder; False: nowhere).
        """
        from cogstage.corpus import lexicon_cache

        bad = bad if bad is not None else BadRows()
        if ambiguity not in AMBIGUITIES:
            raise UsageError(f"unknown ambiguity rule {ambiguity}; known are {', '.join(AMBIGUITIES)}")
        stopped = read_stop_list(stop_list)
        files = expand(paths)
        place = lexicon_cache.place(cache, files, [ambiguity, sorted(stopped), variants])
        if place is not None and (kept := lexicon_cache.load(place, bad)) is not None:
            return kept
        seen, first = bad.count, len(bad.first)
        rows = read_rows(files, required=["term"], optional=["concept", "name", "type"], bad=bad)
        entries = (
            Entry(str(r["term"]), _text(r["concept"]), _text(r["name"]), _text(r["type"]), r.where("term"))
            for r in rows
        )
        lexicon = cls.build(entries, ambiguity, stopped, variants, bad, ", ".join(map(str, files)))
        if place is not None:
            lexicon_cache.save(lexicon, place, bad.count - seen, bad.first[first:])
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
    ) -> Lexicon:
        """A lexicon from rows at hand; ``where`` names them in messages."""
        bad = bad if bad is not None else BadRows()
        stopped = {folded_tokens(term) for term in stop_list}
        spelling: dict[tuple[str, ...], str] = {}  # tokens of a term -> how it was first written
        named: dict[tuple[str, ...], dict[str, None]] = {}  # -> its concepts, in order
        places: dict[tuple[str, str], str] = {}  # (folded term, concept) -> where it stands
        names: dict[str, str] = {}
        types: dict[str, str] = {}
        for entry in entries:
            tokens = folded_tokens(entry.term)
            if not tokens:
                bad.report(f"{entry.where}: the term is empty")
                continue
            folded = fold(entry.term)
            concept = entry.concept or folded
            if (folded, concept) in places:
                earlier = places[folded, concept]
                bad.report(f"{entry.where}: duplicate term {entry.term!r} (concept {concept}), as in {earlier}")
                continue
            places[folded, concept] = entry.where
            if tokens in stopped:
                continue
            spelling.setdefault(tokens, " ".join(entry.term.split()))
            named.setdefault(tokens, {})[concept] = None
            if (name := entry.name or (None if entry.concept else entry.term)) and concept not in names:
                names[concept] = name
            if entry.type and concept not in types:
                types[concept] = entry.type
        if ambiguity == "skip":
            named = {tokens: concepts for tokens, concepts in named.items() if len(concepts) == 1}
        elif ambiguity == "first":
            named = {tokens: {next(iter(concepts)): None} for tokens, concepts in named.items()}
        if not named:
            raise CogstageError(f"{where}: the lexicon holds no terms (or the stop list and ambiguity rule took them)")
        numbers: dict[str, int] = {}
        per_term = [[numbers.setdefault(c, len(numbers)) for c in concepts] for concepts in named.values()]
        keys, pattern_terms = list(named), list(range(len(named)))
        if variants:
            taken = set(named)
            for term, tokens in enumerate(list(named)):
                for variant in variants_of(tokens):
                    if variant not in taken and variant not in stopped:
                        taken.add(variant)
                        keys.append(variant)
                        pattern_terms.append(term)
        token_list, patterns = _encode(keys, where)
        return cls(
            terms=tuple(spelling[tokens] for tokens in named),
            concepts=tuple(numbers),
            concept_names=tuple(names.get(concept) or concept for concept in numbers),
            concept_types=tuple(types.get(concept, "") for concept in numbers),
            concept_starts=np.concatenate([[0], np.cumsum([len(found) for found in per_term])]).astype(np.int64),
            term_concepts=np.array([concept for found in per_term for concept in found], np.int32),
            tokens=token_list,
            pattern_terms=np.array(pattern_terms, np.int32),
            automaton=compile_patterns(patterns),
        )


def compile_patterns(patterns: list[str]) -> Any:
    """The leftmost-longest automaton over private characters."""
    import daachorse

    return daachorse.CharwiseDoubleArrayAhoCorasick(patterns, daachorse.MATCH_KIND_LEFTMOST_LONGEST)


def read_stop_list(stop_list: str | Path | Iterable[str]) -> frozenset[str]:
    """The terms of a stop list: given ones, or one a line of a file (lines that begin with # are comments)."""
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
    if len(uses) > MOST_TOKENS - 10_000:  # leaves room for the words of context rules
        raise CogstageError(f"{where}: {len(uses):,} different words, at most {MOST_TOKENS - 10_000:,} can be held")
    # the words of the context rules stand first in every lexicon, so that their matcher is compiled once for all
    cue_tokens = default_rules().tokens
    others = uses.keys() - set(cue_tokens)
    tokens = (*cue_tokens, *sorted(others, key=lambda token: (-uses[token], token)))
    characters = {token: character(number) for number, token in enumerate(tokens)}
    return tokens, ["".join([characters[token] for token in key]) for key in keys]


def _text(value: Any) -> str | None:
    return None if value is None else str(value).strip() or None
