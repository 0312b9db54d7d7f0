"""Text into tokens and sentences: what the lexicon, the annotator and the context rules agree on.

A token is a run of letters and digits or a single symbol, folded for comparison. In the raw token list two things are
kept that folding takes away, so that sentences can be told without a second pass over the text: a symbol that may end a
sentence carries the white space behind it, and a line end that separates sentences is a token of its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from importlib.resources import files

_SYMBOLS = r"[.!?]\s+(?=\S)|(?<=[.!?])[\"')\]”’]\s+(?=\S)|[^\w\s]"
_PLAIN = re.compile(rf"\w+|\n\s*\n\s*|\n\s*(?=[^a-z\s])|{_SYMBOLS}")
# Text wrapped by hand: a long line without an end mark runs on, whatever letter the next one begins with.
_WRAPPED = re.compile(rf"\w+|\n\s*\n\s*|(?<![^\n]{{45}})\n\s*(?=[^a-z\s])|(?<=[:;])\n\s*(?=[^a-z\s])|{_SYMBOLS}")
_WRAP_WIDTH = 100
_WRAP_LINES = 4

_SAME_SYMBOL = {
    **dict.fromkeys("‐‑‒–—―−﹣-", "-"),
    **dict.fromkeys("‘’‛´`ʼ", "'"),
    **dict.fromkeys("“”„‟", '"'),
}
ENDERS = ".!?\"')]"  # folded symbols that can carry the white space of a sentence's end


def normalise(text: str) -> str:
    """Compatibility normalisation (NFKC); most text is in that form already."""
    if text.isascii() or unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", text)


def fold_token(token: str) -> str:
    """The form in which tokens are compared: case folded; dashes, quotes and apostrophes made one."""
    token = token.rstrip()
    if token.isascii():
        return token.lower()
    return _SAME_SYMBOL.get(token) or unicodedata.normalize("NFKC", token.casefold())


def pattern_for(text: str) -> re.Pattern[str]:
    """The token pattern for a normalised text: one for running text, one for lines wrapped by hand."""
    if text.count("\n") >= _WRAP_LINES and max(map(len, text.split("\n"))) <= _WRAP_WIDTH:
        return _WRAPPED
    return _PLAIN


def raw_tokens(text: str) -> list[str]:
    """The tokens of a normalised text, as :mod:`cogstage.corpus.tokens` says."""
    return pattern_for(text).findall(text)


def folded_tokens(text: str) -> tuple[str, ...]:
    """The comparable tokens of a term or a cue: a single line, no sentence marks."""
    return tuple(fold_token(token) for token in raw_tokens(" ".join(normalise(text).split())))


def fold(text: str) -> str:
    """A term as compared for duplicates: normalised, case folded, single spaces."""
    return " ".join(normalise(text).casefold().split())


def _abbreviations() -> dict[str, frozenset[str]]:
    lines = files("cogstage.corpus").joinpath("abbreviations.txt").read_text(encoding="utf-8").splitlines()
    words: dict[str, set[str]] = {"binding": set(), "open": set(), "opener": set()}
    for line in lines:
        if not line.startswith("#"):
            kind, *listed = line.split()
            words[kind].update(listed)
    return {kind: frozenset(listed) for kind, listed in words.items()}


ABBREVIATIONS = _abbreviations()
_OPENERS = ABBREVIATIONS["opener"]


def ends_sentence(tokens: Sequence[str], place: int) -> bool:
    """Whether the raw token at ``place`` (a line end, or an ender with white space behind it) ends a sentence."""
    token = tokens[place]
    if token[0] == "\n" or token[0] in "!?" or token.count("\n") > 1:
        return True
    if place == 0 or place + 1 == len(tokens):
        return False
    before, behind = tokens[place - 1], tokens[place + 1]
    if token[0] != ".":  # a closing quote or bracket: the mark stands before it
        return not behind[0].islower()
    word = before.lower()
    if word in ABBREVIATIONS["binding"]:
        return False
    if word in ABBREVIATIONS["open"]:
        return behind[0].isupper()
    if len(before) == 1 and before.isalpha():  # an initial, or the end of "hepatitis C."
        return behind[0].isupper() and behind.lower() in _OPENERS
    if behind[0].islower():
        return "\n" in token or (len(before) > 1 and before.isalnum())
    return behind[0] not in ",;:)%"
