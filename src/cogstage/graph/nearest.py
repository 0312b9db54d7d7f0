"""Names similar to a mistyped one, found by shared trigrams and ranked by similarity."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

import numpy as np

SHORTLIST = 60
CUTOFF = 0.6
PART = 0.9  # what a part of a name counts, where the whole counts 1


class NearNames:
    """An index of names by their trigrams, built in one pass over all of their letters."""

    def __init__(self, names: Sequence[str], bonus: np.ndarray | None = None) -> None:
        """``bonus`` is added to the similarity of each name, to rank common ones higher."""
        self.names = names
        self._bonus = np.zeros(len(names)) if bonus is None else bonus
        padded = [f"\x01{name}\x01" for name in names]
        lengths = np.fromiter((len(name) for name in padded), np.int64, len(padded))
        owner = np.repeat(np.arange(len(padded), dtype=np.int32), np.maximum(lengths - 2, 0))
        starts = np.cumsum(lengths) - lengths
        first = np.repeat(starts - (np.cumsum(np.maximum(lengths - 2, 0)) - np.maximum(lengths - 2, 0)), lengths - 2)
        codes = _codes("".join(padded))
        position = first + np.arange(len(owner))
        grams = _hash(codes[position], codes[position + 1], codes[position + 2])
        order = np.argsort(grams, kind="stable")
        self._grams, self._owner = grams[order], owner[order]
        self._size = lengths - 2

    def nearest(self, text: str, most: int = 5) -> list[str]:
        """At most ``most`` names, most similar first; none if nothing is similar."""
        codes = _codes(f"\x01{text}\x01")
        if len(codes) < 3 or not len(self._grams):
            return []
        wanted = np.unique(_hash(codes[:-2], codes[1:-1], codes[2:]))
        begin = np.searchsorted(self._grams, wanted, "left")
        end = np.searchsorted(self._grams, wanted, "right")
        owners = np.concatenate([self._owner[b:e] for b, e in zip(begin.tolist(), end.tolist(), strict=True)])
        if not len(owners):
            return []
        shared = np.bincount(owners, minlength=len(self.names))
        similarity = 2 * shared / (self._size + len(wanted))
        best = [np.argsort(-score, kind="stable")[:SHORTLIST] for score in (similarity, shared)]
        shortlist = np.unique(np.concatenate(best))
        rated = ((*_distance(text, self.names[i]), i) for i in shortlist[shared[shortlist] > 0].tolist())
        near = [entry for entry in rated if entry[0] <= 1 - CUTOFF]
        near.sort(key=lambda entry: (entry[0] - self._bonus[entry[2]], entry[1], self.names[entry[2]]))
        return [self.names[i] for _, _, i in near][:most]


def _distance(text: str, name: str) -> tuple[float, float]:
    """How far the text is from the name or from as many neighbouring words of it, and from the whole name."""
    words, count = name.split(), len(text.split())
    parts = (" ".join(words[at : at + count]) for at in range(len(words) - count + 1))
    matcher = difflib.SequenceMatcher(b=text)
    ratios = []
    for part in (name, *parts):
        matcher.set_seq1(part)
        ratios.append(matcher.ratio())
    return 1 - max([ratios[0], *(PART * ratio for ratio in ratios[1:])]), 1 - ratios[0]


def _codes(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(np.uint64)


def _hash(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Three code points (21 bits each) side by side in one number."""
    packed: np.ndarray = (a << np.uint64(42)) | (b << np.uint64(21)) | c
    return packed
