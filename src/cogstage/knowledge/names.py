"""One way to compare names: over case, hyphens, suffixes, British and American spelling, plurals and word order.

Each step adds to the one before it, so the first step at which two names agree says what sets them apart.
``name_rules.tsv`` holds the suffixes, spellings and code systems.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import cache
from pathlib import Path

from cogstage.corpus.tokens import casefold_text
from cogstage.tables import read_rows

_FILE = Path(__file__).parent / "name_rules.tsv"
_AT_END = frozenset({"our", "tre", "bre", "yse"})  # elsewhere in a word these are no matter of spelling


class NameStep(str, Enum):
    """Up to which difference two names agree."""

    CASE = "case and spaces"
    HYPHENS = "hyphens and punctuation"
    SUFFIX = "suffixes like (substance)"
    SPELLING = "British or American spelling"
    PLURAL = "plurals"
    ORDER = "word order"


@cache
def _rules(kind: str) -> dict[str, str]:
    rows = read_rows(_FILE, ["kind", "find"], ["replace"])
    return {str(row["find"]): str(row["replace"] or "") for row in rows if row["kind"] == kind}


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    tags, endings = ("|".join(map(re.escape, _rules(kind))) for kind in ("suffix", "ending"))
    found = sorted(_rules("spelling"), key=len, reverse=True)
    words = "|".join(rf"{re.escape(one)}(?=s?\b)" if one in _AT_END else re.escape(one) for one in found)
    return re.compile(rf"\s*[\(\[](?:{tags})[\)\]]$"), re.compile(rf"(?<=.)[\s,]+(?:{endings})$"), re.compile(words)


def forms(name: str) -> tuple[str, ...]:
    """The form of a name after each :class:`NameStep`, in their order; two names agree at a step if these are equal."""
    tags, endings, spelling = _patterns()
    case = casefold_text(name)
    short = endings.sub("", tags.sub("", case))
    american = spelling.sub(lambda found: _rules("spelling")[found.group()], short)
    words = [_singular(word) for word in _words(american)]
    # Sorting the pieces of a systematic name ("2-amino-3-chloro...") would make another substance of it.
    ordered = sorted(words) if not any(c.isdigit() for word in words for c in word) else words
    ordered = [word for word in ordered if word not in ("of", "the", "and")] or ordered
    spaced = (_words(case), _words(short), _words(american), words)
    return (case, *map(_squeezed, spaced), " ".join(ordered))


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.replace("'s", "s").replace("’s", "s"))


def _squeezed(words: list[str]) -> str:
    """Words written together, with a point between two digits: 1,2 is not 12."""
    return re.sub(r"(?<=\d) (?=\d)", ".", " ".join(words)).replace(" ", "")


def _singular(word: str) -> str:
    """One form for singular and plural; not always a word (disease and diseases become diseas)."""
    if len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("ses", "xes", "zes", "ches", "shes", "sis")):
        return word[:-2]
    if word.endswith(("ss", "us", "is")):
        return word
    return word.removesuffix("s").removesuffix("e")


def code_key(concept: str) -> str | None:
    """``SYSTEM:code`` of a concept that is written as a code of a known system ("mesh:D003", "SNOMED|22298006")."""
    system, separator, code = concept.replace("|", ":").rpartition(":")
    known = _rules("code_system").get(re.sub(r"[\W_]", "", system).lower())
    return f"{known}:{code.strip().upper()}" if separator and known and code.strip() else None


def system_code(system: str, code: str) -> str:
    """The same key from a knowledge base's own columns (SAB and CODE, vocabulary_id and concept_code)."""
    plain = re.sub(r"[\W_]", "", system)
    return f"{_rules('code_system').get(plain.lower(), plain.upper())}:{code.strip().upper()}"


_ALIKE = (frozenset({"drug", "chemical"}), frozenset({"disorder", "symptom", "finding", "disease"}))


def types_agree(ours: str, theirs: frozenset[str]) -> bool:
    """Whether a node of type ``ours`` may be a concept of the types ``theirs``; what is not known agrees with all."""
    if not ours or not theirs or ours in theirs:
        return True
    return any(ours in group and theirs & group for group in _ALIKE)
