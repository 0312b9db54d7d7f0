"""Finding terms as people type them: plurals, salts, brand and lay names, abbreviations, first letters, typing errors.

A name is resolved to one term only by rules that cannot mean another one; everything else is offered as a suggestion.
"""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cogstage.corpus.tokens import casefold_text
from cogstage.graph.nearest import NearNames

if TYPE_CHECKING:
    from cogstage.graph.vocabulary import Vocabulary

LAST = "\U0010ffff"
WORD = re.compile(r"[^\W_]+")
POSSESSIVE = re.compile(r"['’]s\b")
NEAR = 6  # how many names of like spelling are offered
COMMON = 0.015  # of the logarithm of a term's count, beside a similarity of spelling between 0 and 1
SHORTEST_BASE = 6  # letters of a drug's name without its salt

SALTS = frozenset(
    [
        "acetate",
        "besylate",
        "bromide",
        "calcium",
        "citrate",
        "dihydrate",
        "dihydrochloride",
        "disodium",
        "fumarate",
        "hcl",
        "hydrobromide",
        "hydrochloride",
        "magnesium",
        "maleate",
        "mesylate",
        "monohydrate",
        "phosphate",
        "potassium",
        "sodium",
        "succinate",
        "sulfate",
        "tartrate",
    ]
)
NO_BASES = frozenset(  # what remains of these names without a salt is another substance
    [
        "adenosine",
        "aluminum",
        "ammonium",
        "antimony",
        "arsenic",
        "barium",
        "bismuth",
        "cadmium",
        "calcium",
        "carbamoyl",
        "cesium",
        "choline",
        "chromium",
        "cobalt",
        "copper",
        "creatine",
        "dextran",
        "ferric",
        "ferrous",
        "fructose",
        "galactose",
        "glucose",
        "glycerol",
        "guanosine",
        "hydrogen",
        "indoxyl",
        "inositol",
        "lithium",
        "magnesium",
        "manganese",
        "mannose",
        "mercuric",
        "mercury",
        "nickel",
        "platinum",
        "potassium",
        "pyridoxal",
        "ribose",
        "selenium",
        "silver",
        "sodium",
        "sphingosine",
        "strontium",
        "thallium",
        "thiamine",
        "uranium",
        "uridine",
        "zinc",
    ]
)
GENERIC = frozenset(["disease", "disorder", "infection", "syndrome"])  # "Crohn" is Crohn Disease
SPELLINGS = (  # British to American
    (re.compile(r"oe(?=dema|str|soph|coli|liac)"), "e"),
    (re.compile(r"(?<=[rn])hoea"), "hea"),
    (re.compile(r"(?<=[chklnprt])ae(?=m|st|di|li|c|sth)"), "e"),
    (re.compile(r"coeli"), "celi"),
    (re.compile(r"noea\b"), "nea"),
    (re.compile(r"sulph"), "sulf"),
    (re.compile(r"tumour"), "tumor"),
    (re.compile(r"goitre"), "goiter"),
    (re.compile(r"fibre"), "fiber"),
    (re.compile(r"aluminium"), "aluminum"),
)
SAME = {"ii": "2", "iii": "3", "cancer": "neoplasm", "tumor": "neoplasm"}
LITTLE = frozenset(("of", "the", "in"))  # words left out of comparisons


@dataclass(frozen=True)
class Match:
    """A term, and the name or synonym by which it was found."""

    node: int
    name: str


@cache
def other_names() -> dict[str, tuple[str, ...]]:
    """What people say for what vocabularies write, and the other way round; casefolded.

    In ``other_names.tsv`` the first name of a row is what people say, the others are what vocabularies write.
    """
    named: dict[str, list[str]] = {}
    with (Path(__file__).parent / "other_names.tsv").open(encoding="utf-8", newline="") as handle:
        for row in csv.reader(handle, delimiter="\t"):
            names = [casefold_text(name) for name in row if name]
            named.setdefault(names[0], []).extend(names[1:])
            for name in names[1:]:
                named.setdefault(name, []).append(names[0])
    return {name: tuple(dict.fromkeys(others)) for name, others in named.items()}


def words(text: str) -> tuple[str, ...]:
    """The words of a name, casefolded, without punctuation."""
    return tuple(WORD.findall(casefold_text(text)))


def stems(text: str) -> tuple[str, ...]:
    """The words of a name as they are compared: American spelling, no plural or possessive, one word for cancers."""
    spelled = POSSESSIVE.sub("", casefold_text(text))
    for pattern, american in SPELLINGS:
        spelled = pattern.sub(american, spelled)
    stemmed = (_stem(word) for word in WORD.findall(spelled) if word not in LITTLE)
    return tuple(SAME.get(word, word) for word in stemmed)


def _stem(word: str) -> str:
    """A form that singular and plural share; not always a word."""
    if len(word) < 4 or not word.isalpha() or word.endswith(("ss", "us")):
        return word
    if word.endswith("sis"):
        return word[:-2] + "e"
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("ches", "shes", "xes", "sses")):
        return word[:-2]
    if word.endswith(("che", "she", "xe")):
        return word[:-1]
    return word[:-1] if word.endswith("s") and not word.endswith("is") else word


def without_salt(stemmed: tuple[str, ...]) -> tuple[str, ...] | None:
    """The name of a drug without its salts; None if it has none, or means another substance without it."""
    base = stemmed
    while len(base) > 1 and base[-1] in SALTS:
        base = base[:-1]
    if base == stemmed or base[0] in NO_BASES or len("".join(base)) < SHORTEST_BASE:
        return None
    return base


class TermSearch:
    """Every name from each of its words on, sorted, so that a prefix is one range; and the names by their words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        entries: list[tuple[str, int, bool]] = []  # text, number of the name, whether it is the whole name
        by_word: dict[str, set[int]] = {}
        self._names: list[tuple[str, frozenset[str], int]] = []
        for name, node in [*((name, node) for node, name in enumerate(vocabulary.name)), *vocabulary.synonyms]:
            number, parts = len(self._names), frozenset(words(name))
            casefolded = casefold_text(name)
            entries.append((casefolded, number, True))
            for at, letter in enumerate(casefolded):
                if letter in " -/(" and at + 1 < len(casefolded):
                    entries.append((casefolded[at + 1 :], number, False))
            self._names.append((name, parts, node))
            for part in parts:
                by_word.setdefault(part, set()).add(number)
        entries.sort()
        self._texts = [text for text, _, _ in entries]
        self._numbers = np.array([number for _, number, _ in entries], np.int64)
        whole = np.array([first for _, _, first in entries], bool)
        count = vocabulary.count[[self._names[number][2] for _, number, _ in entries]] if entries else np.empty(0)
        # Commoner terms first; a name that begins with the letters goes before one that only has a word that does.
        self._rank = np.log1p(count) + 20.0 * whole if entries else np.empty(0)
        self._by_word = by_word
        self._words = sorted(by_word)

    def find(self, text: str, most: int = 10) -> list[Match]:
        """Terms for ``text``, best first: the one it stands for, beginning so, with these words, spelt alike."""
        wanted = casefold_text(text)
        if not wanted:
            return []
        matches: dict[int, Match] = {}
        for match in (*self._meant(text), *self._beginning(wanted, most), *self._with_words(wanted, most)):
            matches.setdefault(match.node, match)
        if not matches:
            for match in self.spelt_alike(text):
                matches.setdefault(match.node, match)
        return list(matches.values())[:most]

    def resolve(self, text: str) -> Match | None:
        """The one term that ``text`` stands for; None unless it is beyond doubt."""
        return next(self._meant(text), None)

    def suggestions(self, text: str, most: int = 6) -> list[str]:
        """Names that may have been meant, best first."""
        matches = [*self.find(text, most - 1), *self.spelt_alike(text)]
        return list(dict.fromkeys(self._vocabulary.name[match.node] for match in matches))[:most]

    def spelt_alike(self, text: str, most: int = NEAR) -> list[Match]:
        """Terms with a name of like spelling, common ones before rare ones."""
        matches: dict[int, Match] = {}
        for name in self._near.nearest(casefold_text(text)[:200], 3 * most):
            node = self._vocabulary.casefolded[name]
            matches.setdefault(node, Match(node, name))
        return list(matches.values())[:most]

    @cached_property
    def _near(self) -> NearNames:
        casefolded = self._vocabulary.casefolded
        return NearNames(list(casefolded), COMMON * np.log1p(self._vocabulary.count[list(casefolded.values())]))

    def _meant(self, text: str) -> Iterator[Match]:
        """The term that ``text`` stands for by each rule, the surest rule first."""
        casefolded, wanted = self._vocabulary.casefolded, casefold_text(text)
        if text in self._vocabulary.index:
            yield Match(self._vocabulary.index[text], text)
        said = (wanted, *other_names().get(wanted, ()))
        yield from (Match(casefolded[name], name) for name in said if name in casefolded)
        stemmed = stems(text)
        if not stemmed:
            return
        further = tuple(other for key in self._said_as(stemmed) for other in (key, *other_names()[key]))
        yield from (Match(casefolded[name], name) for name in further if name in casefolded)
        for key in (stemmed, *(stems(name) for name in dict.fromkeys((*said[1:], *further)))):
            yield from self._one(self._by_stems.get(tuple(sorted(key)), ()))
        base = without_salt(stemmed)
        if base is not None:
            yield from self._one(self._by_stems.get(tuple(sorted(base)), ()))
            yield from (
                Match(casefolded[name], name)
                for key in self._said_as(base)
                for name in (key, *other_names()[key])
                if name in casefolded
            )
        for index in (self._by_base, self._by_head):
            yield from self._one(index.get(tuple(sorted(stemmed)), ()))

    def _one(self, numbers: Iterable[int]) -> Iterator[Match]:
        """The term of these names if it is one term alone, or the only one that has such a name as its own."""
        named = [self._names[number] for number in numbers]
        own = [(name, parts, node) for name, parts, node in named if name == self._vocabulary.name[node]]
        for group in (own, named):
            if len({node for _, _, node in group}) == 1:
                yield Match(group[0][2], group[0][0])
                return
            if group:
                return

    @staticmethod
    def _said_as(stemmed: tuple[str, ...]) -> tuple[str, ...]:
        return _said_by_stems().get(stemmed, ())

    @cached_property
    def _by_stems(self) -> dict[tuple[str, ...], list[int]]:
        """Numbers of names by their words, in any order and number."""
        return self._indexed(lambda stemmed: stemmed)

    @cached_property
    def _by_base(self) -> dict[tuple[str, ...], list[int]]:
        """Numbers of names of salts by the name without the salt."""
        return self._indexed(without_salt)

    @cached_property
    def _by_head(self) -> dict[tuple[str, ...], list[int]]:
        """Numbers of names such as "Crohn Disease" by the word before "Disease"."""
        return self._indexed(lambda stemmed: stemmed[:-1] if len(stemmed) > 1 and stemmed[-1] in GENERIC else None)

    def _indexed(self, key_of: object) -> dict[tuple[str, ...], list[int]]:
        assert callable(key_of)
        index: dict[tuple[str, ...], list[int]] = {}
        for number, stemmed in enumerate(self._stemmed):
            if key := key_of(stemmed):
                index.setdefault(tuple(sorted(key)), []).append(number)
        return index

    @cached_property
    def _stemmed(self) -> list[tuple[str, ...]]:
        return [stems(name) for name, _, _ in self._names]

    def _beginning(self, wanted: str, most: int) -> list[Match]:
        begin, end = bisect_left(self._texts, wanted), bisect_left(self._texts, wanted + LAST)
        order = np.argsort(-self._rank[begin:end], kind="stable")[: 4 * most]
        return [self._match(int(self._numbers[begin + at])) for at in order.tolist()]

    def _match(self, number: int) -> Match:
        name, _, node = self._names[number]
        return Match(node, name)

    def _with_words(self, wanted: str, most: int) -> list[Match]:
        """Names that have all words, the last one perhaps unfinished, in any order; the shortest names first."""
        parts = words(wanted)
        texts = [parts, *(words(other) for other in other_names().get(wanted, ()))]
        numbers = {number for part in texts for number in self._holding(part)}
        count = self._vocabulary.count
        ranked = sorted(numbers, key=lambda n: (len(self._names[n][1]), -int(count[self._names[n][2]]), n))
        return [self._match(number) for number in ranked[: 4 * most]]

    def _holding(self, parts: tuple[str, ...]) -> set[int]:
        """Numbers of the names that hold all of ``parts``; the last may be the beginning of a word."""
        if not parts:
            return set()
        common: set[int] | None = None
        for part in parts[:-1]:
            numbers = self._by_word.get(part, set())
            common = set(numbers) if common is None else common & numbers
            if not common:
                return set()
        begin, end = bisect_left(self._words, parts[-1]), bisect_left(self._words, parts[-1] + LAST)
        last: set[int] = set().union(*(self._by_word[word] for word in self._words[begin:end][:200]))
        return last if common is None else common & last


@cache
def _said_by_stems() -> dict[tuple[str, ...], tuple[str, ...]]:
    """The names of ``other_names.tsv`` by their words as they are compared."""
    index: dict[tuple[str, ...], list[str]] = {}
    for name in other_names():
        index.setdefault(stems(name), []).append(name)
    return {key: tuple(names) for key, names in index.items()}
