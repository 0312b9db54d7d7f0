"""Finding terms as people type them: first letters, words in any order, common other names, typing errors."""

from __future__ import annotations

import csv
import re
from bisect import bisect_left
from functools import cache
from pathlib import Path

import numpy as np

from cogstage.corpus.tokens import casefold_text
from cogstage.graph.vocabulary import UnknownTerm, Vocabulary

LAST = "\U0010ffff"
WORD = re.compile(r"[^\W_]+")
NEAR = 6  # how many names of like spelling are offered


@cache
def other_names() -> dict[str, tuple[str, ...]]:
    """What people say for what vocabularies write, from ``other_names.tsv``; casefolded, in both directions."""
    found: dict[str, list[str]] = {}
    with (Path(__file__).parent / "other_names.tsv").open(encoding="utf-8", newline="") as handle:
        for row in csv.reader(handle, delimiter="\t"):
            names = [casefold_text(name) for name in row if name]
            for name in names:
                found.setdefault(name, []).extend(other for other in names if other != name)
    return {name: tuple(others) for name, others in found.items()}


def words(text: str) -> tuple[str, ...]:
    """The words of a name, casefolded, without punctuation."""
    return tuple(WORD.findall(casefold_text(text)))


class TermSearch:
    """Every name from each of its words on, sorted, so that a prefix is one range; and the names by their words."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        entries: list[tuple[str, int, bool]] = []
        by_word: dict[str, set[int]] = {}
        names = [(name, node) for node, name in enumerate(vocabulary.name)]
        self._names: list[tuple[frozenset[str], int]] = []
        for name, node in [*names, *vocabulary.synonyms]:
            casefolded = casefold_text(name)
            entries.append((casefolded, node, True))
            for at, letter in enumerate(casefolded):
                if letter in " -/(" and at + 1 < len(casefolded):
                    entries.append((casefolded[at + 1 :], node, False))
            number, parts = len(self._names), frozenset(words(name))
            self._names.append((parts, node))
            for part in parts:
                by_word.setdefault(part, set()).add(number)
        entries.sort()
        self._texts = [text for text, _, _ in entries]
        self._nodes = np.array([node for _, node, _ in entries], np.int64)
        whole = np.array([first for _, _, first in entries], bool)
        # Commoner terms first; a name that begins with the letters goes before one that only has a word that does.
        self._rank = np.log1p(vocabulary.count[self._nodes]) + 20.0 * whole if entries else np.empty(0)
        self._by_word = by_word
        self._words = sorted(by_word)

    def find(self, text: str, most: int = 10) -> list[int]:
        """Nodes for ``text``, best first: exact, beginning so, with these words in any order, spelt alike."""
        wanted = casefold_text(text)
        if not wanted:
            return []
        found: dict[int, None] = {}
        for node in (*self._exact(wanted), *self._beginning(wanted, most), *self._with_words(wanted, most)):
            found.setdefault(node)
        if not found:
            names = self._vocabulary.suggest(text, NEAR)
            found = dict.fromkeys(self._vocabulary.casefolded[casefold_text(name)] for name in names)
        return list(found)[:most]

    def resolve(self, text: str) -> int:
        """The one node that ``text`` stands for; raises with the nearest names unless it is beyond doubt."""
        if text in self._vocabulary.index:
            return self._vocabulary.index[text]
        if exact := self._exact(casefold_text(text)):
            return exact[0]
        wanted = frozenset(words(text))
        holding = (self._names[number] for number in self._holding(words(text), whole=True))
        same = {node for parts, node in holding if parts == wanted}
        if len(same) == 1:
            return same.pop()
        names = [self._vocabulary.name[node] for node in self.find(text, 5)]
        near = [name for name in self._vocabulary.suggest(text) if name not in names]
        raise UnknownTerm(text, [*names, *near][:6])

    def _exact(self, wanted: str) -> list[int]:
        casefolded = self._vocabulary.casefolded
        return [casefolded[name] for name in (wanted, *other_names().get(wanted, ())) if name in casefolded]

    def _beginning(self, wanted: str, most: int) -> list[int]:
        begin, end = bisect_left(self._texts, wanted), bisect_left(self._texts, wanted + LAST)
        order = np.argsort(-self._rank[begin:end], kind="stable")[: 4 * most]
        return [int(self._nodes[begin + place]) for place in order.tolist()]

    def _with_words(self, wanted: str, most: int) -> list[int]:
        """Names that have all words, the last one perhaps unfinished, in any order; the shortest names first."""
        parts = words(wanted)
        texts = [parts, *(words(other) for other in other_names().get(wanted, ()))]
        found = {number for part in texts for number in self._holding(part)}
        ranked = sorted(
            found, key=lambda n: (len(self._names[n][0]), -int(self._vocabulary.count[self._names[n][1]]), n)
        )
        return [self._names[number][1] for number in ranked[: 4 * most]]

    def _holding(self, parts: tuple[str, ...], whole: bool = False) -> set[int]:
        """Numbers of the names that hold all of ``parts``; the last may be the beginning of a word."""
        if not parts:
            return set()
        found: set[int] | None = None
        for part in parts[:-1] if not whole else parts:
            numbers = self._by_word.get(part, set())
            found = set(numbers) if found is None else found & numbers
            if not found:
                return set()
        if whole:
            return found or set()
        begin, end = bisect_left(self._words, parts[-1]), bisect_left(self._words, parts[-1] + LAST)
        last: set[int] = set().union(*(self._by_word[word] for word in self._words[begin:end][:200]))
        return last if found is None else found & last
