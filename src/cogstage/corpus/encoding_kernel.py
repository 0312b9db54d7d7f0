"""Texts into private characters in one compiled pass: tokens split, casefolded and looked up, lines separated.

Tokens with other than ASCII characters, which are few, are marked on the way and looked up one by one behind it. It
says exactly what ``Annotator._encode`` says of a normalised text, apart from where sentences begin (a test compares
the two).
"""

from __future__ import annotations

from collections.abc import Mapping

import numba
import numpy as np

from cogstage.corpus.lexicon import BREAK, LONGEST_EXACT, UNKNOWN
from cogstage.corpus.tokens import FULL_LINE, WRAP_LINES, WRAP_WIDTH, casefold_token

WORD, SPACE, SYMBOL, UNSEEN = 0, 1, 2, 3
LOWER = 4  # added to the kind of small letters
CODE_POINTS = 0x110000
_UNKNOWN, _BREAK = ord(UNKNOWN), ord(BREAK)
_OFFSET, _PRIME = np.uint64(14695981039346656037), np.uint64(1099511628211)  # FNV-1a
_MIXER = np.uint64(0x9E3779B97F4A7C15)


def _kind(character: str) -> int:
    """Word, space or symbol, as the pattern of tokens sees it; and whether it is a small letter."""
    kind = SPACE if character.isspace() else WORD if character.isalnum() or character == "_" else SYMBOL
    return kind + (LOWER if character.islower() else 0)


FOLDED = np.array([ord("'") if chr(b) == "`" else ord(chr(b).lower()) for b in range(128)], np.uint8)


AS_WRITTEN = np.arange(128).astype(np.uint8)


class TokenTable:
    """The characters of ASCII tokens in a hash table that compiled code can read.

    A token of up to 16 bytes is its own key, in two words of 8; of a longer one the second word is a digest, and its
    bytes are compared.
    """

    def __init__(self, characters: Mapping[str, str]) -> None:
        self.characters = characters
        self.kinds = np.full(CODE_POINTS, UNSEEN, np.uint8)  # filled as characters are met
        self.kinds[:128] = [_kind(chr(point)) for point in range(128)]
        tokens = [token for token in characters if token.isascii()]
        self.pool = np.frombuffer("".join(tokens).encode() or b"\0", np.uint8)
        self.starts = np.concatenate([[0], np.cumsum([len(token) for token in tokens])]).astype(np.int64)
        codes = np.array([ord(characters[token]) for token in tokens], np.uint32)
        size = 1 << max(4, (2 * len(tokens)).bit_length())
        self.keys = np.zeros((size, 2), np.uint64)
        self.codes = np.zeros(size, np.uint32)  # 0: nothing stands here
        self.tokens = np.zeros(size, np.int32)
        _fill(self.keys, self.codes, self.tokens, self.pool, self.starts, codes)

    def encode(self, text: str, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The private characters of normalised texts laid end to end, ``starts`` (T + 1,) apart, a wall behind each.

        Returns the characters, uint32, and where each text's begin, int64 (T,).
        """
        if text.isascii():
            raw, n_odd = np.frombuffer(text.encode() or b"\0", np.uint8), 0
        else:
            raw = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
            n_odd = self._meet(raw)
        out = np.empty(len(text) + len(starts) + 1, np.uint32)
        begins = np.empty(len(starts) - 1, np.int64)
        odd = np.empty((n_odd, 3), np.int64)
        table = (self.keys, self.codes, self.tokens, self.pool, self.starts)
        length, found = _encode(raw, starts, table, self.kinds, FOLDED, out, begins, odd)
        for position, start, end in odd[:found].tolist():
            token = text[start:end]
            out[position] = ord(self.characters.get(token) or self.characters.get(casefold_token(token), UNKNOWN))
        return out[:length], begins

    def _meet(self, raw: np.ndarray) -> int:
        """Learn the kinds of characters that were not met before; says how many of the text are not ASCII."""
        other = raw[raw > 127]
        for point in np.unique(other[self.kinds[other] == UNSEEN]).tolist():
            self.kinds[point] = _kind(chr(point))
        return len(other)


@numba.njit(inline="always")
def _slot(low, high, mask):  # type: ignore[no-untyped-def]
    mixed = (low ^ (high * _PRIME)) * _MIXER
    return np.int64(mixed >> np.uint64(32)) & mask


@numba.njit(cache=True)
def _key(raw, start, end, casefolded):  # type: ignore[no-untyped-def]
    """The two words of a token: its bytes, or (beyond 16) its first 8 and a digest of the others."""
    low, high = np.uint64(0), np.uint64(0)
    for position in range(start, min(end, start + 8)):
        low |= np.uint64(casefolded[raw[position]]) << np.uint64(8 * (position - start))
    if end - start > 16:
        high = _OFFSET
        for position in range(start + 8, end):
            high = (high ^ np.uint64(casefolded[raw[position]])) * _PRIME
    else:
        for position in range(start + 8, end):
            high |= np.uint64(casefolded[raw[position]]) << np.uint64(8 * (position - start - 8))
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
def _code(raw, start, end, low, high, table, casefolded):  # type: ignore[no-untyped-def]
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
                        if casefolded[raw[start + offset]] != pool[first + offset]:
                            same = False
                            break
            if same:
                found = codes[slot]
                break
        slot = (slot + 1) & mask
    return found


@numba.njit(inline="always")
def _has_capital(raw, start, end):  # type: ignore[no-untyped-def]
    capital = False
    for position in range(start, end):
        capital = capital or 65 <= raw[position] <= 90
    return capital


@numba.njit(cache=True)
def _is_wrapped(raw, start, end):  # type: ignore[no-untyped-def]
    lines, begun = 0, start
    for position in range(start, end):
        if raw[position] == 10:
            if position - begun > WRAP_WIDTH:
                return False
            lines += 1
            begun = position + 1
    return lines >= WRAP_LINES and end - begun <= WRAP_WIDTH


@numba.njit(inline="always")
def _breaks(raw, begin, line_start, line_end, wrapped):  # type: ignore[no-untyped-def]
    """Whether a sentence ends with the line ``raw[line_start:line_end]``: a full line of wrapped text runs on."""
    before = raw[line_end - 1] if line_end > begin else 0
    return not (wrapped and line_end - line_start + 1 > FULL_LINE and before != 58 and before != 59)  # : ;


@numba.njit(inline="always")
def _start_of_line(raw, begin, position, line_start):  # type: ignore[no-untyped-def]
    """Where the line of ``position`` starts; ``line_start`` if there is no line end before it."""
    for back in range(position - 1, begin - 1, -1):
        if raw[back] == 10:
            line_start = back + 1
            break
    return line_start


@numba.njit(inline="always")
def _token_code(raw, start, end, table, casefolded):  # type: ignore[no-untyped-def]
    """The character of an ASCII token: as written if it is a known abbreviation in capitals, else casefolded."""
    code = np.uint32(_UNKNOWN)
    if end - start <= LONGEST_EXACT and _has_capital(raw, start, end):
        low, high = _key(raw, start, end, AS_WRITTEN)
        code = _code(raw, start, end, low, high, table, AS_WRITTEN)
    if code == _UNKNOWN:
        low, high = _key(raw, start, end, casefolded)
        code = _code(raw, start, end, low, high, table, casefolded)
    return code


@numba.njit(cache=True)
def _encode(raw, texts, table, kinds, casefolded, out, begins, odd):  # type: ignore[no-untyped-def]
    length, n_odd = 0, 0
    for text in range(len(texts) - 1):
        begin, end = texts[text], texts[text + 1]
        begins[text] = length
        wrapped = _is_wrapped(raw, begin, end)
        line_start, first_line_end = begin, -1  # of the line under way; where the gap's first line end stands
        lines = 0  # line ends in the gap
        marked, gap_marked = False, False  # an end mark stands before (closers between); before this gap
        position = begin
        while position < end:
            byte = raw[position]
            kind = kinds[byte] & 3
            if kind == SPACE:
                if marked:
                    gap_marked, marked = True, False
                if byte == 10:
                    if lines == 0:
                        first_line_end = position
                    lines += 1
                position += 1
                continue
            if lines > 0:
                wall = lines > 1
                if lines == 1 and not gap_marked and kinds[byte] < LOWER:
                    wall = _breaks(raw, begin, line_start, first_line_end, wrapped)
                if wall and length > begins[text]:
                    out[length] = _BREAK
                    length += 1
                line_start = _start_of_line(raw, begin, position, line_start)
                lines = 0
            gap_marked = False
            token_start = position
            ascii_alone = byte < 128
            position += 1
            if kind == WORD:
                marked = False
                while position < end and kinds[raw[position]] & 3 == WORD:
                    ascii_alone = ascii_alone and raw[position] < 128
                    position += 1
            elif byte == 46 or byte == 33 or byte == 63:  # . ! ?
                marked = True
            elif not (byte == 34 or byte == 39 or byte == 41 or byte == 93 or byte == 0x201D or byte == 0x2019):
                marked = False  # " ' ) ] ” ’ may stand behind the mark
            if ascii_alone:
                out[length] = _token_code(raw, token_start, position, table, casefolded)
            else:
                odd[n_odd, 0], odd[n_odd, 1], odd[n_odd, 2] = length, token_start, position
                n_odd += 1
            length += 1
        out[length] = _BREAK
        length += 1
    return length, n_odd
