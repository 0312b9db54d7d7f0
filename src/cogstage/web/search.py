"""Type-ahead over names and synonyms: what begins with the typed letters, at the start of any word."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np

from cogstage.graph.vocabulary import Vocabulary, fold

LAST = "\U0010ffff"


class TypeAhead:
    """Every name from each of its words on, sorted; a prefix is then one range of it."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        entries: list[tuple[str, int, bool]] = []
        names = [(name, node) for node, name in enumerate(vocabulary.name)]
        for name, node in [*names, *vocabulary.synonyms]:
            folded = fold(name)
            entries.append((folded, node, True))
            for place, letter in enumerate(folded):
                if letter in " -/(" and place + 1 < len(folded):
                    entries.append((folded[place + 1 :], node, False))
        entries.sort()
        self._texts = [text for text, _, _ in entries]
        self._nodes = np.array([node for _, node, _ in entries], np.int64)
        whole = np.array([first for _, _, first in entries], bool)
        # Commoner terms first; a name that begins with the letters goes before one that only has a word that does.
        self._rank = np.log1p(vocabulary.count[self._nodes]) + 20.0 * whole if entries else np.empty(0)

    def find(self, text: str, most: int = 10) -> list[int]:
        """Nodes with a name, or a word of a name, that begins with ``text``; an exact name comes first."""
        wanted = fold(text)
        if not wanted:
            return []
        begin, end = bisect_left(self._texts, wanted), bisect_left(self._texts, wanted + LAST)
        rank = self._rank[begin:end]
        found = [node for node in [self._vocabulary.folded.get(wanted)] if node is not None]
        for place in np.argsort(-rank, kind="stable")[: 4 * most].tolist():
            node = int(self._nodes[begin + place])
            if node not in found:
                found.append(node)
        return found[:most]
