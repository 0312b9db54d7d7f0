"""ASCII texts into private characters in one compiled pass: tokens cut, folded and looked up, lines told apart.

Says exactly what ``Annotator._encode`` says of such texts, apart from where sentences begin (a test compares the two).
"""

from __future__ import annotations

from collections.abc import Mapping

import numba
import numpy as np

from cogstage.corpus.lexicon import BREAK, UNKNOWN
from cogstage.corpus.tokens import FULL_LINE, WRAP_LINES, WRAP_WIDTH

WORD, SPACE, SYMBOL = 0, 1, 2
_UNKNOWN, _BREAK = ord(UNKNOWN), ord(BREAK)
_OFFSET, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a


def _classes() -> tuple[np.ndarray, np.ndarray]:
    """For each byte below 128: word, space or symbol; and its folded form."""
    kinds = [SPACE if chr(b).isspace() else WORD if chr(b).isalnum() or b == ord("_") else SYMBOL for b in range(128)]
    folded = [ord("'") if chr(b) == "`" else ord(chr(b).lower()) for b in range(128)]
    return np.array(kinds, np.uint8), np.array(folded, np.uint8)


KINDS, FOLDED = _classes()


class TokenTable:
    """The characters of ASCII tokens in a hash table that compiled code can read; equality is checked byte by byte."""

    def __init__(self, characters: Mapping[str, str]) -> None:
        tokens = [token for token in characters if token.isascii()]
        self.pool = np.frombuffer("".join(tokens).encode() or b"\0", np.uint8)
        self.starts = np.concatenate([[0], np.cumsum([len(token) for token in tokens])]).astype(np.int64)
        self.codes = np.array([ord(characters[token]) for token in tokens], np.uint32)
        size = 1 << max(4, (2 * len(tokens)).bit_length())
        self.slots = np.full(size, -1, np.int32)
        _fill(self.slots, self.pool, self.starts)

    def encode(self, text: bytes, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The private characters of texts laid end to end, ``starts`` (T + 1,) apart, a wall behind each text.

        Returns the characters, uint32, and where each text's begin, int64 (T,).
        """
        raw = np.frombuffer(text or b"\0", np.uint8)
        out = np.empty(len(text) + len(starts) + 1, np.uint32)
        begins = np.empty(len(starts) - 1, np.int64)
        length = _encode(
            raw, starts, self.slots, self.pool, self.starts, self.codes, KINDS, FOLDED, out, begins
        )  # fmt: skip
        return out[:length], begins


@numba.njit(cache=True)
def _fill(slots, pool, starts):  # type: ignore[no-untyped-def]
    mask = len(slots) - 1
    for token in range(len(starts) - 1):
        digest = _OFFSET
        for place in range(starts[token], starts[token + 1]):
            digest = (digest ^ np.uint64(pool[place])) * _PRIME
        slot = np.int64(digest >> np.uint64(20)) & mask
        while slots[slot] >= 0:
            slot = (slot + 1) & mask
        slots[slot] = token


@numba.njit(cache=True)
def _code(raw, start, end, digest, slots, pool, starts, codes, folded):  # type: ignore[no-untyped-def]
    """The character of the token ``raw[start:end]`` whose folded form has this digest."""
    mask = len(slots) - 1
    slot = np.int64(digest >> np.uint64(20)) & mask
    while slots[slot] >= 0:
        token = slots[slot]
        first = starts[token]
        if starts[token + 1] - first == end - start:
            same = True
            for offset in range(end - start):
                if folded[raw[start + offset]] != pool[first + offset]:
                    same = False
                    break
            if same:
                return codes[token]
        slot = (slot + 1) & mask
    return np.uint32(_UNKNOWN)


@numba.njit(cache=True)
def _is_wrapped(raw, start, end):  # type: ignore[no-untyped-def]
    lines, begun = 0, start
    for place in range(start, end):
        if raw[place] == 10:
            if place - begun > WRAP_WIDTH:
                return False
            lines += 1
            begun = place + 1
    return lines >= WRAP_LINES and end - begun <= WRAP_WIDTH


@numba.njit(cache=True)
def _encode(raw, texts, slots, pool, starts, codes, kinds, folded, out, begins):  # type: ignore[no-untyped-def]
    length = 0
    for text in range(len(texts) - 1):
        begin, end = texts[text], texts[text + 1]
        begins[text] = length
        wrapped = _is_wrapped(raw, begin, end)
        line_start, first_line_end = begin, -1  # of the line under way; where the gap's first line end stands
        lines = 0  # line ends in the gap
        marked, gap_marked = False, False  # an end mark stands before (closers between); before this gap
        place = begin
        while place < end:
            byte = raw[place]
            kind = kinds[byte]
            if kind == SPACE:
                if marked:
                    gap_marked, marked = True, False
                if byte == 10:
                    if lines == 0:
                        first_line_end = place
                    lines += 1
                place += 1
                continue
            if lines > 0:
                wall = lines > 1
                if lines == 1 and not gap_marked and not (97 <= byte <= 122):
                    before = raw[first_line_end - 1] if first_line_end > begin else 0
                    runs_on = wrapped and first_line_end - line_start + 1 > FULL_LINE and before != 58 and before != 59
                    wall = not runs_on
                if wall and length > begins[text]:
                    out[length] = _BREAK
                    length += 1
                for back in range(place - 1, begin - 1, -1):
                    if raw[back] == 10:
                        line_start = back + 1
                        break
                lines = 0
            gap_marked = False
            digest = (_OFFSET ^ np.uint64(folded[byte])) * _PRIME
            token_start = place
            place += 1
            if kind == WORD:
                marked = False
                while place < end and kinds[raw[place]] == WORD:
                    digest = (digest ^ np.uint64(folded[raw[place]])) * _PRIME
                    place += 1
            elif byte == 46 or byte == 33 or byte == 63:  # . ! ?
                marked = True
            elif not (byte == 34 or byte == 39 or byte == 41 or byte == 93):  # " ' ) ] may stand behind the mark
                marked = False
            out[length] = _code(raw, token_start, place, digest, slots, pool, starts, codes, folded)
            length += 1
        out[length] = _BREAK
        length += 1
    return length
