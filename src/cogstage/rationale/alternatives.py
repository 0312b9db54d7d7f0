"""Terms that a reader may have meant: those whose names begin with the name that was given, or the other way round."""

from __future__ import annotations

from functools import cached_property

from cogstage.corpus.tokens import casefold_text
from cogstage.graph.vocabulary import Vocabulary


class Siblings:
    """Finds terms such as "HIV Infections" for "HIV", the most counted first."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary

    @cached_property
    def _by_first_word(self) -> dict[str, list[tuple[str, int]]]:
        """Names and nodes by the first word of the name, in lower case."""
        index: dict[str, list[tuple[str, int]]] = {}
        for node, name in enumerate(self.vocabulary.name):
            words = _words(name)
            if words:
                index.setdefault(words[0], []).append((" ".join(words), node))
        return index

    def of(self, node: int) -> list[int]:
        """Other nodes whose name begins with the words of this one, or whose words this one begins with."""
        words = _words(self.vocabulary.name[node])
        if not words:
            return []
        name = " ".join(words) + " "
        alike = [
            other
            for text, other in self._by_first_word[words[0]]
            if other != node and (f"{text} ".startswith(name) or name.startswith(f"{text} "))
        ]
        return sorted(alike, key=lambda other: -int(self.vocabulary.count[other]))


def _words(name: str) -> list[str]:
    return casefold_text(name).replace(",", " ").split()
