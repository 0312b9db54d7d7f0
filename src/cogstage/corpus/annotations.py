"""Concept identifiers of annotations, as PubTator and BioC write them: one, or several where the type allows it."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NOTHING = {"", "-", "-1", "none", "null", "nan"}
_SEVERAL = re.compile(r"[;,]")
# Types whose mentions may stand for several concepts ("3630;3643"). Identifiers of variants ("c|SUB|G|181|A") and of
# types that are not known here are whole, whatever marks they hold.
_LISTED = ("gene", "protein", "disease", "disorder", "phenotyp", "chemical", "drug", "species", "taxon", "cellline")
_WHOLE = ("mutation", "variant", "variation", "snp", "acidchange", "allele")


def identifiers(value: str, type: str, parts: str = "", composite: bool = False) -> list[str]:
    """The identifiers in ``value`` of an annotation of ``type``, each once, in order.

    ``;`` and ``,`` separate them where the type says that several may be meant. ``|`` does only in a ``composite``
    mention, or in one that lists its ``parts`` with the same mark ("D014786|D006311", "visual|auditory impairment").
    """
    kind = "".join(filter(str.isalnum, type.lower()))
    pieces = [value]
    if any(word in kind for word in _LISTED) and not any(word in kind for word in _WHOLE):
        pieces = _SEVERAL.split(value)
    if composite or kind == "compositemention" or (parts and parts.count("|") == value.count("|")):
        pieces = [each for piece in pieces for each in piece.split("|")]
    return _distinct(piece.strip() for piece in pieces)


def _distinct(pieces: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(piece for piece in pieces if piece.lower() not in _NOTHING))
