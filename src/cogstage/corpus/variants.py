"""Other ways to write a term: its plural or singular, and hyphens for spaces or spaces for hyphens."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

MOST_GAPS = 3  # a term with more gaps between words gets the all-hyphens and the all-spaces form only
SHORTEST = 4  # shorter words (gas, MS) are left as they are, and no singular is that short (AIDS)


def variants_of(tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Token sequences that stand for the same term; may hold repetitions and the term itself."""
    for spaced in _hyphens(tokens):
        yield spaced
        for last in _numbers(spaced[-1]):
            yield (*spaced[:-1], last)


def _hyphens(tokens: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    words = [token for token in tokens if token != "-"]
    gaps = len(words) - 1
    inner = tokens[0] != "-" and tokens[-1] != "-" and "--" not in "".join(token[0] for token in tokens)
    if not inner or gaps < 1 or not all(word.isalnum() for word in words):
        yield tokens
        return
    choices = product((False, True), repeat=gaps) if gaps <= MOST_GAPS else [(False,) * gaps, (True,) * gaps]
    for hyphens in choices:
        written = [words[0]]
        for hyphen, word in zip(hyphens, words[1:], strict=True):
            written.extend(["-", word] if hyphen else [word])
        yield tuple(written)
    yield tokens


def _numbers(word: str) -> Iterator[str]:
    """Plural of a singular and singular of a plural, by English and Latin endings."""
    if len(word) < SHORTEST or not word.isalpha():
        return
    if word.endswith("sis"):
        yield word[:-2] + "es"
    elif word.endswith("ses"):
        yield word[:-2] + "is"
        yield word[:-1]
    elif word.endswith("ies") and len(word) > SHORTEST:
        yield word[:-3] + "y"
    elif word.endswith(("ches", "shes", "xes", "sses")):
        yield word[:-2]
        yield word[:-1]
    elif word.endswith("s") and not word.endswith(("ss", "us", "is")):
        if len(word) > SHORTEST:
            yield word[:-1]
    elif word.endswith(("s", "x", "ch", "sh")):
        yield word + "es"
    elif word.endswith("y") and word[-2] not in "aeiou":
        yield word[:-1] + "ies"
    else:
        yield word + "s"
