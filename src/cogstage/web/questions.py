"""Questions in words: what discover asks about a term, by relation and by the side at which the term stands."""

from __future__ import annotations

from cogstage.relations import phrase

NAMED = 0.05  # a usual type is named if at least this share of the facts has it
_ASKED = {  # the term as head, the term as tail
    "may_treat": ("What might {} treat?", "What might treat {}?"),
    "may_prevent": ("What might {} prevent?", "What might prevent {}?"),
    "contraindicates": ("In what might {} be contraindicated?", "What might be contraindicated in {}?"),
    "causes": ("What might {} cause?", "What might cause {}?"),
    "symptom_of": ("Of what might {} be a symptom?", "What might be a symptom of {}?"),
}


def question_text(relation: str, side: str, term: str = "___") -> str:
    """What is asked about ``term`` at one side of a relation."""
    words = _ASKED.get(relation, (f"{{}} {phrase(relation)} what?", f"What {phrase(relation)} {{}}?"))
    return words[0 if side == "head" else 1].format(term)


def joined_types(usual: tuple[dict[str, float], dict[str, float]]) -> str:
    """Which types a relation joins, in words: the commonest of its heads and of its tails."""
    parts = [" or ".join([kind for kind, share in shares.items() if share >= NAMED][:3]) for shares in usual]
    return f"{parts[0] or 'any term'} with {parts[1] or 'any term'}"
