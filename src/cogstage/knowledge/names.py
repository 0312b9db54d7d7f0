"""Compare names, ignoring case, suffixes, hyphens, British and American spelling, plurals and word order.

Each step adds to the one before it, so the first step at which two names agree says what sets them apart.
``name_rules.tsv`` holds the suffixes, spellings, salts and code systems.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from enum import Enum
from functools import cache
from pathlib import Path

from cogstage.corpus.tokens import casefold_text
from cogstage.tables import read_rows

_FILE = Path(__file__).parent / "name_rules.tsv"
_ROMAN = re.compile(r"(ix|iv|v?i{1,3}|x{1,2})")
_AT_END = frozenset({"our", "tre", "bre"})  # elsewhere in a word these are no matter of spelling


class NameStep(str, Enum):
    """Up to which difference two names agree."""

    CASE = "case and spaces"
    SUFFIX = "suffixes like (substance)"
    HYPHENS = "hyphens and punctuation"
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


def without_suffix(name: str) -> str:
    """A name as text writes it: "Headache (finding)" without its tag."""
    found = _patterns()[0].search(name.casefold())
    return name[: found.start()] if found and found.start() and len(name.casefold()) == len(name) else name


def forms(name: str) -> tuple[str, ...]:
    """The form of a name after each :class:`NameStep`, in their order; two names agree at a step if these are equal."""
    tags, endings, spelling = _patterns()
    case = casefold_text(name)
    short = endings.sub("", tags.sub("", case))
    american = spelling.sub(lambda found: _rules("spelling")[found.group()], short)
    singular = [_singular(word) for word in _words(american)]
    squeezed = map(_squeezed, (_words(short), _words(american), singular))
    return (case, short, *squeezed, " ".join(sorted(_movable(american))))


def similarity(one: str, other: str) -> tuple[float, float]:
    """Similarity of two names: first ignoring word order, then as written; larger is more similar."""
    turned = [" ".join(sorted(_words(name))) for name in (one, other)]
    return SequenceMatcher(None, turned[0], turned[1]).ratio(), SequenceMatcher(None, one, other).ratio()


def without_salt(name: str) -> str:
    """A drug's name without its salt, ester or hydrate, in one order: "Mometasone furoate" and "mometasone" agree.

    A name of nothing but such words ("sodium chloride") keeps them all.
    """
    words = _words(_patterns()[2].sub(lambda found: _rules("spelling")[found.group()], casefold_text(name)))
    kept = [word for word in words if word not in _rules("salt")] or words
    return " ".join(sorted(_singular(word) for word in kept))


def _words(name: str) -> list[str]:
    return re.findall(r"[^\W_]+", name.replace("'s", "s").replace("’s", "s"))


def _movable(name: str) -> list[str]:
    """The parts of a name whose order says nothing, in the singular.

    A number or letter stays with the word before it ("type 2", "factor VIII", "vitamin B"), and the pieces of a
    systematic name ("2-amino-3-chlorophenol") stay together: moved, they would make another substance of it.
    """
    parts: list[str] = []
    for chunk in name.split():
        words = [_singular(word) for word in _words(chunk)]
        whole = any(c.isdigit() for c in chunk)
        for piece in filter(None, [_squeezed(words)] if whole else words):
            if parts and (len(piece) == 1 or piece.isdigit() or _ROMAN.fullmatch(piece)):
                parts[-1] += piece
            elif piece not in ("of", "the", "and"):
                parts.append(piece)
    return parts


def _squeezed(words: list[str]) -> str:
    """Words written together, with a point between two digits: 1,2 is not 12."""
    return re.sub(r"(?<=\d) (?=\d)", ".", " ".join(words)).replace(" ", "")


def _singular(word: str) -> str:
    """One form for singular and plural; not always a word (disease and diseases become diseas)."""
    if len(word) < 4:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith("itides"):
        return word[:-4] + "is"
    if word.endswith(("ses", "xes", "zes", "ches", "shes", "sis", "xis", "omata")):
        return word[:-2]
    if word.endswith(("ss", "us", "is")):
        return word
    if len(word) > 5 and word.endswith("i") and word[-2] not in "aeiou":
        return word[:-1] + "us"  # calculi
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


_DRUGS = (  # also as OMOP, FHIR and annotated corpora write it
    *("drug", "chemical", "agent", "chemicalentity", "immunization"),
    *("medicationrequest", "medicationstatement", "medicationadministration"),
)
_CONDITIONS = (
    *("disorder", "symptom", "finding", "disease"),
    *("condition", "observation", "measurement", "diseaseorphenotypicfeature"),
)
_ALIKE = (frozenset(_DRUGS), frozenset({*_CONDITIONS, "reaction", "indication"}))
_TREATED = (frozenset(_DRUGS), frozenset({*_CONDITIONS, "indication"}))
_END_TYPES: dict[str, tuple[frozenset[str], frozenset[str]]] = {  # types that the heads and the tails should have
    **dict.fromkeys(("may_treat", "may_prevent", "contraindicates"), _TREATED),
    "causes": (frozenset(), frozenset({*_CONDITIONS, "reaction"})),
    "symptom_of": (frozenset({*_CONDITIONS, "reaction"}), frozenset({*_CONDITIONS, "reaction"})),
}


def types_agree(ours: str, theirs: frozenset[str]) -> bool:
    """Whether a node of type ``ours`` may be a concept of the types ``theirs``; what is not known agrees with all."""
    ours = ours.lower()
    if not ours or not theirs or ours in theirs:
        return True
    return any(ours in group and theirs & group for group in _ALIKE)


def end_rank(relation: str, end: int, type: str) -> int:
    """How well a node of this type fits as head (``end`` 0) or tail (1) of a relation: 0 well, 1 perhaps, 2 not.

    What a drug was given for is no effect of it: an indication is never an end of *causes* or *symptom_of*.
    """
    wanted, type = _END_TYPES.get(relation, (frozenset(), frozenset()))[end], type.lower()
    if not wanted or type in wanted:
        return 0
    return 2 if type == "indication" else 1
