"""Text into tokens and sentences: what the lexicon, the annotator and the context rules agree on.

A token is a run of letters, digits and underscores, or a single symbol; it is folded for comparison. Tokens never reach
over white space, so a word between spaces can be cut and folded once and remembered (see annotate.py).
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

TOKEN = re.compile(r"\w+|[^\w\s]")
MOST_MARKS = 30
_POSSIBLE_END = re.compile(r"[.!?\n](?:(?<=\n)|[\"')\]”’]*\s)\s*(?=\S)")
WRAP_WIDTH = 100  # text of at least so many lines, none of them longer, was wrapped by hand:
WRAP_LINES = 4
FULL_LINE = 45  # there, a line of this length without an end mark runs on, whatever letter the next begins with

_SAME_SYMBOL = {
    **dict.fromkeys("‐‑‒–—―−﹣-", "-"),
    **dict.fromkeys("‘’‛´`ʼ", "'"),
    **dict.fromkeys("“”„‟", '"'),
}


def normalise(text: str) -> str:
    """Compatibility normalisation (NFKC); most text is in that form already.

    Of a run of combining marks the first few are kept (as in Unicode's stream-safe text), for putting them into order
    takes time that is quadratic in the length of the run.
    """
    if text.isascii():
        return text
    text = _long_runs().sub(r"\1", text)
    if unicodedata.is_normalized("NFKC", text):
        return text
    return unicodedata.normalize("NFKC", text)


@cache
def _long_runs() -> re.Pattern[str]:
    """Runs of more combining marks than any writing has; group 1 is what is kept of one."""
    marks = [point for point in range(sys.maxunicode + 1) if unicodedata.combining(chr(point))]
    several = "".join(re.escape(chr(point)) for point in marks)
    return re.compile(f"([{several}]{{{MOST_MARKS}}})[{several}]+")


def fold_token(token: str) -> str:
    """The form in which tokens are compared: case folded; dashes, quotes and apostrophes made one."""
    if token.isascii():
        return "'" if token == "`" else token.lower()
    return _SAME_SYMBOL.get(token) or unicodedata.normalize("NFKC", token.casefold())


def folded_tokens(text: str) -> tuple[str, ...]:
    """The comparable tokens of a text, a term or a cue."""
    return tuple(fold_token(token) for token in TOKEN.findall(normalise(text)))


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


def sentence_breaks(text: str) -> Iterator[tuple[int, bool]]:
    """Where the second and later sentences of a normalised text begin; True where a line end separates them.

    A line is a sentence or several; a line that goes on in small letters, or that was wrapped by hand, is not an end.
    """
    wrapped: bool | None = None
    # white space at the end is left out: at each of its lines the search would run to the end of the text in vain
    for found in _POSSIBLE_END.finditer(text, 0, len(text.rstrip())):
        start, end = found.span()
        if text[start] != "\n":
            # a capital behind a word longer than any abbreviation needs no second look
            if start >= 7 and end == start + 2 and text[end].isupper() and text[start - 7 : start].isalpha():
                yield end, False
            elif _ends_sentence(text, start, end):
                yield end, text.count("\n", start, end) > 1
            continue
        if text.count("\n", start, end) == 1:
            if text[end].islower():
                continue
            if wrapped is None:
                wrapped = text.count("\n") >= WRAP_LINES and max(map(len, text.split("\n"))) <= WRAP_WIDTH
            if wrapped and start - text.rfind("\n", 0, start) > FULL_LINE and text[start - 1] not in ":;":
                continue
        yield end, True


def _ends_sentence(text: str, start: int, end: int) -> bool:
    """Whether the mark at ``start`` ends a sentence, the next word beginning at ``end``."""
    behind = text[end]
    if text[start] != "." or text.count("\n", start, end) > 1:
        return True
    if not text[start + 1].isspace():  # a closing quote or bracket
        return not behind.islower()
    before = text[max(0, start - 16) : start].rpartition(" ")[2].rpartition("\n")[2].rpartition(".")[2].lstrip("([\"'")
    word = before.lower()
    if word in ABBREVIATIONS["binding"]:
        return False
    if word in ABBREVIATIONS["open"]:
        return behind.isupper()
    if len(before) == 1 and before.isalpha():  # an initial, or the end of "hepatitis C."
        return behind.isupper() and text[end : end + 12].split(None, 1)[0].lower() in _OPENERS
    if behind.islower():
        return "\n" in text[start:end] or (len(before) > 1 and before.isalnum())
    return behind not in ",;:)%"
