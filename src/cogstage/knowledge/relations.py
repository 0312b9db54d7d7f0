"""The relations: names, inverses, and how they read in a sentence."""

from __future__ import annotations

RELATIONS = ("may_treat", "may_prevent", "contraindicates", "causes", "symptom_of")
NA = "NA"

_PHRASES = {
    "may_treat": ("may treat", "may be treated by"),
    "may_prevent": ("may prevent", "may be prevented by"),
    "contraindicates": ("is contraindicated in", "contraindicates the use of"),
    "causes": ("causes", "is caused by"),
    "symptom_of": ("is a symptom of", "has the symptom"),
}
_INVERSE = "_inverse"


def inverse(relation: str) -> str:
    """The name of r⁻¹; the inverse of an inverse is the relation again."""
    return relation.removesuffix(_INVERSE) if relation.endswith(_INVERSE) else relation + _INVERSE


def phrase(relation: str) -> str:
    """How a relation reads between its two terms; relations we do not know read as their name."""
    base = relation.removesuffix(_INVERSE)
    forward, backward = _PHRASES.get(base, (base.replace("_", " "), f"(inverse of) {base.replace('_', ' ')}"))
    return backward if relation.endswith(_INVERSE) else forward
