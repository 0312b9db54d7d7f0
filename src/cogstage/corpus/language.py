"""Recognise the language of texts: by script, or by frequent function words (``languages.tsv``)."""

from __future__ import annotations

import csv
import re
from functools import cache
from importlib.resources import files

SAMPLED = 5_000  # characters of a text that are looked at
FEWEST_WORDS = 5  # function words that a language must have in a text
FEWEST_LETTERS = 20
SCRIPTS = {
    "Chinese or Japanese": "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff",
    "Korean": "\uac00-\ud7af",
    "Thai": "\u0e00-\u0e7f",
    "Greek": "\u0370-\u03ff",
    "Cyrillic": "\u0400-\u04ff",
    "Hebrew": "\u0590-\u05ff",
    "Arabic": "\u0600-\u06ff",
    "an Indian script": "\u0900-\u0dff",
}
_WORD = re.compile(r"[^\W\d_]+")


def language_of(text: str) -> str | None:
    """Return the language of a text (``English``), or its script (``Cyrillic``); None if it cannot be told."""
    text = text[:SAMPLED]
    if not text.isascii():
        letters = sum(map(str.isalpha, text))
        for script, pattern in _scripts().items():
            found = len(pattern.findall(text))
            if found >= FEWEST_LETTERS and 2 * found > letters:
                return script
    words = _WORD.findall(text.lower())
    counts = {name: sum(word in listed for word in words) for name, listed in _function_words().items()}
    first, second = sorted(counts, key=lambda name: -counts[name])[:2]
    return first if counts[first] >= FEWEST_WORDS and counts[first] >= 1.2 * counts[second] else None


def language_named(code: str) -> str | None:
    """The language of an ISO code that context rules are named by (``es``); None for anything else."""
    return {row["code"]: row["language"] for row in _rows()}.get(code)


@cache
def _rows() -> tuple[dict[str, str], ...]:
    text = files("cogstage.corpus").joinpath("languages.tsv").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return tuple(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE))


@cache
def _function_words() -> dict[str, frozenset[str]]:
    return {row["language"]: frozenset(row["words"].split()) for row in _rows()}


@cache
def _scripts() -> dict[str, re.Pattern[str]]:
    return {script: re.compile(f"[{letters}]") for script, letters in SCRIPTS.items()}
