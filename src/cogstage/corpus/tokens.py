"""Tokens and sentences of a text, as used by the lexicon, the annotator and the context rules.

A token is a run of letters, digits and underscores, or a single symbol, casefolded for comparison. In scripts that
write no spaces between words (Chinese, Japanese, Thai and others), each letter is a token, so that the longest terms of
the lexicon decide where words end. Tokens never reach over white space, so a word between spaces can be cut and
casefolded once and remembered (see annotate.py).
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterator
from functools import cache
from heapq import merge
from importlib.resources import files
from itertools import chain
from operator import itemgetter

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\U00020000-\U000323af"
)
TOKEN = re.compile(rf"[^\W{_UNSPACED}]+|[^\s]")
MOST_MARKS = 30
_UNSPACED_END = rf"。|[!?](?=[{_UNSPACED}])|(?<=[{_UNSPACED}])[!?]"
_POSSIBLE_END = re.compile(rf"""(?:[.!?\n](?:(?<=\n)|["')\]”’]*\s)|{_UNSPACED_END})\s*(?=\S)""")
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


def casefold_token(token: str) -> str:
    """The form in which tokens are compared: casefolded; dashes, quotes and apostrophes made one."""
    if token.isascii():
        return "'" if token == "`" else token.lower()
    return _SAME_SYMBOL.get(token) or unicodedata.normalize("NFKC", token.casefold())


def casefold_tokens(text: str) -> tuple[str, ...]:
    """The comparable tokens of a text, a term or a cue."""
    return tuple(casefold_token(token) for token in TOKEN.findall(normalise(text)))


def casefold_text(text: str) -> str:
    """A term as compared for duplicates: normalised, casefolded, single spaces."""
    return " ".join(normalise(text).casefold().split())


def _abbreviations() -> dict[str, frozenset[str]]:
    lines = files("cogstage.corpus").joinpath("abbreviations.txt").read_text(encoding="utf-8").splitlines()
    words: dict[str, set[str]] = {"binding": set(), "open": set(), "opener": set()}
    for line in lines:
        if not line.startswith("#"):
            kind, *listed = line.split()
            words[kind].update(listed)
    return {kind: frozenset(listed) for kind, listed in words.items()}


def _headings() -> frozenset[str]:
    lines = files("cogstage.corpus").joinpath("section_headings.txt").read_text(encoding="utf-8").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and not line.startswith("#"))


HEADINGS = _headings()
LONGEST_HEADING = 40  # characters
LONGEST_SENTENCE = 100_000  # characters
_HEADING_BEFORE = re.compile(
    rf"(?:^|\s)({'|'.join(map(re.escape, sorted(HEADINGS, key=len, reverse=True)))})\s?$", re.IGNORECASE
)
_LINE_HEADING = re.compile(rf"([^\W\d_][\w/&' -]{{1,{LONGEST_HEADING}}}):(?=\s|$)")
_ITEM = re.compile(r"(?:[-*•·]|\d{1,2}[.)]|[a-z]\))\s")
_NUMBERED = re.compile(r"(?<!\S)(\d{1,2})[.)]\s+(?=[^\W\d_])")
ABBREVIATIONS = _abbreviations()
_OPENERS = ABBREVIATIONS["opener"]


def sentence_breaks(text: str) -> Iterator[tuple[int, bool]]:
    """Where the second and later sentences of a normalised text begin; True where a line end separates them.

    A line is a sentence or several; a line that goes on in small letters, or that was wrapped by hand, is not an end.
    A section heading and an item of a list begin a sentence wherever they stand. A text without marks is cut into
    sentences of about 100,000 characters.
    """
    last = 0
    for position, line_end in chain(_breaks(text), ((len(text), False),)):
        while position - last > LONGEST_SENTENCE:
            last = text.find(" ", last + LONGEST_SENTENCE, position - 1) + 1
            if not last:
                break
            yield last, False
        if position < len(text):
            yield position, line_end
        last = position


def _breaks(text: str) -> Iterator[tuple[int, bool]]:
    inside = _inner_breaks(text)
    if not inside:
        yield from _plain_breaks(text)
        return
    last = 0
    for position, line_end in merge(_plain_breaks(text), ((index, False) for index in inside), key=itemgetter(0)):
        if position > last:  # one that both see comes from the plain breaks, which are merged first
            yield position, line_end
            last = position


def _inner_breaks(text: str) -> list[int]:
    """Where section headings ("... Plan: rest") and items ("1. rest 2. fluids") begin inside a line, in order."""
    breaks = []
    colon = text.find(":")
    while colon >= 0:
        before = text[max(0, colon - LONGEST_HEADING) : colon]
        if (heading := _HEADING_BEFORE.search(before)) is not None and heading[1][0].isupper():
            breaks.append(colon - len(before) + heading.start(1))
        colon = text.find(":", colon + 1)
    if "1. " in text or "1) " in text:
        expected = 0
        for item in _NUMBERED.finditer(text):
            number = int(item[1])
            if number == 1:
                expected = 2
            elif number == expected:
                breaks.append(item.start())
                expected += 1
    if "•" in text:
        breaks.extend(index.start() for index in re.finditer("•", text))
    return sorted(index for index in breaks if index > 0)


def _plain_breaks(text: str) -> Iterator[tuple[int, bool]]:
    """Sentences ended by a mark or by a line end."""
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
            runs_on = text[end].islower()
            if not runs_on:
                if wrapped is None:
                    wrapped = text.count("\n") >= WRAP_LINES and max(map(len, text.split("\n"))) <= WRAP_WIDTH
                full = start - text.rfind("\n", 0, start) > FULL_LINE
                runs_on = wrapped and full and text[start - 1] not in ":;"
            if runs_on:
                if _begins_item(text, end):
                    yield end, False
                continue
        yield end, True


def _begins_item(text: str, start: int) -> bool:
    """Whether the line that begins there is an item of a list, or begins with a section heading."""
    if _ITEM.match(text, start):
        return True
    heading = _LINE_HEADING.match(text, start)
    return heading is not None and (heading[1][0].isupper() or heading[1].lower() in HEADINGS)


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
