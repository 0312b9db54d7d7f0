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
_MIXER = np.uint64(0x9E3779B97F4A7C15)


def _classes() -> tuple[np.ndarray, np.ndarray]:
    """For each byte below 128: word, space or symbol; and its folded form."""
    kinds = [SPACE if chr(b).isspace() else WORD if chr(b).isalnum() or b == ord("_") else SYMBOL for b in range(128)]
    folded = [ord("'") if chr(b) == "`" else ord(chr(b).lower()) for b in range(128)]
    return np.array(kinds, np.uint8), np.array(folded, np.uint8)


KINDS, FOLDED = _classes()


class TokenTable:
    """The characters of ASCII tokens in a hash table that compiled code can read.

    A token of up to 16 bytes is its own key, in two words of 8; of a longer one the second word is a digest, and its
    bytes are compared.
    """

    def __init__(self, characters: Mapping[str, str]) -> None:
        tokens = [token for token in characters if token.isascii()]
        self.pool = np.frombuffer("".join(tokens).encode() or b"\0", np.uint8)
        self.starts = np.concatenate([[0], np.cumsum([len(token) for token in tokens])]).astype(np.int64)
        codes = np.array([ord(characters[token]) for token in tokens], np.uint32)
        size = 1 << max(4, (2 * len(tokens)).bit_length())
        self.keys = np.zeros((size, 2), np.uint64)
        self.codes = np.zeros(size, np.uint32)  # 0: nothing stands here
        self.tokens = np.zeros(size, np.int32)
        _fill(self.keys, self.codes, self.tokens, self.pool, self.starts, codes)

    def encode(self, text: bytes, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The private characters of texts laid end to end, ``starts`` (T + 1,) apart, a wall behind each text.

        Returns the characters, uint32, and where each text's begin, int64 (T,).
        """
        raw = np.frombuffer(text or b"\0", np.uint8)
        out = np.empty(len(text) + len(starts) + 1, np.uint32)
        begins = np.empty(len(starts) - 1, np.int64)
        table = (self.keys, self.codes, self.tokens, self.pool, self.starts)
        length = _encode(raw, starts, table, KINDS, FOLDED, out, begins)
        return out[:length], begins


@numba.njit(inline="always")
def _slot(low, high, mask):  # type: ignore[no-untyped-def]
    mixed = (low ^ (high * _PRIME)) * _MIXER
    return np.int64(mixed >> np.uint64(32)) & mask


@numba.njit(cache=True)
def _key(raw, start, end, folded):  # type: ignore[no-untyped-def]
    """The two words of a token: its bytes, or (beyond 16) its first 8 and a digest of the others."""
    low, high = np.uint64(0), np.uint64(0)
    for place in range(start, min(end, start + 8)):
        low |= np.uint64(folded[raw[place]]) << np.uint64(8 * (place - start))
    if end - start > 16:
        high = _OFFSET
        for place in range(start + 8, end):
            high = (high ^ np.uint64(folded[raw[place]])) * _PRIME
    else:
        for place in range(start + 8, end):
            high |= np.uint64(folded[raw[place]]) << np.uint64(8 * (place - start - 8))
    return low, high


@numba.njit(cache=True)
def _fill(keys, slot_codes, slot_tokens, pool, starts, codes):  # type: ignore[no-untyped-def]
    mask = len(keys) - 1
    same = np.arange(128).astype(np.uint8)
    for token in range(len(starts) - 1):
        low, high = _key(pool, starts[token], starts[token + 1], same)
        slot = _slot(low, high, mask)
        while slot_codes[slot] != 0:
            slot = (slot + 1) & mask
        keys[slot, 0], keys[slot, 1] = low, high
        slot_codes[slot], slot_tokens[slot] = codes[token], token


@numba.njit(inline="always")
def _code(raw, start, end, low, high, table, folded):  # type: ignore[no-untyped-def]
    """The character of the token ``raw[start:end]``, whose key is given."""
    keys, codes, tokens, pool, starts = table
    mask = len(keys) - 1
    slot = _slot(low, high, mask)
    found = np.uint32(_UNKNOWN)
    while codes[slot] != 0:
        if keys[slot, 0] == low and keys[slot, 1] == high:
            same = True
            if end - start > 16 or starts[tokens[slot] + 1] - starts[tokens[slot]] > 16:
                first = starts[tokens[slot]]
                same = starts[tokens[slot] + 1] - first == end - start
                if same:
                    for offset in range(end - start):
                        if folded[raw[start + offset]] != pool[first + offset]:
                            same = False
                            break
            if same:
                found = codes[slot]
                break
        slot = (slot + 1) & mask
    return found


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
def _encode(raw, texts, table, kinds, folded, out, begins):  # type: ignore[no-untyped-def]
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
            token_start = place
            place += 1
            if kind == WORD:
                marked = False
                while place < end and kinds[raw[place]] == WORD:
                    place += 1
            elif byte == 46 or byte == 33 or byte == 63:  # . ! ?
                marked = True
            elif not (byte == 34 or byte == 39 or byte == 41 or byte == 93):  # " ' ) ] may stand behind the mark
                marked = False
            low, high = _key(raw, token_start, place, folded)
            out[length] = _code(raw, token_start, place, low, high, table, folded)
            length += 1
        out[length] = _BREAK
        length += 1
    return length
