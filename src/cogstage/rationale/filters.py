"""Choosing among the rationales of a prediction: through a term, by relation, known facts only, folded by pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cogstage.graph.vocabulary import fold
from cogstage.rationale.record import Rationale
from cogstage.relations import inverse


@dataclass(frozen=True)
class Filter:
    """What a rationale must satisfy to be shown. The defaults let everything through.

    through: key or name of a term that must be one end of the triple; relation: only triples of this relation, in
    either direction; known_only: only triples that are training facts; fold_pairs: of several rationales about the
    same two associations only the strongest is shown, with the scores added up.
    """

    through: str | None = None
    relation: str | None = None
    known_only: bool = False
    fold_pairs: bool = False

    def __bool__(self) -> bool:
        return self != Filter()

    def apply(self, rationales: Sequence[Rationale]) -> list[Rationale]:
        """The rationales that pass, strongest first."""
        passed = [rationale for rationale in rationales if self.passes(rationale)]
        return folded(passed) if self.fold_pairs else passed

    def passes(self, rationale: Rationale) -> bool:
        """Whether one rationale satisfies all but the folding."""
        if self.known_only and not rationale.known_fact:
            return False
        if self.relation is not None and self.relation not in (rationale.relation, inverse(rationale.relation)):
            return False
        if self.through is not None:
            wanted = fold(self.through)
            names = {fold(name) for term in (rationale.head, rationale.tail) for name in (term.key, term.name)}
            return wanted in names
        return True


def folded(rationales: Sequence[Rationale]) -> list[Rationale]:
    """One rationale for each pair of associations: its strongest relation, with score and probability of all."""
    strongest: dict[tuple[str, str], Rationale] = {}
    for rationale in rationales:
        pair = (rationale.head.key, rationale.tail.key)
        first = strongest.get(pair)
        if first is None:
            strongest[pair] = rationale
            continue
        stronger, weaker = (first, rationale) if first.score >= rationale.score else (rationale, first)
        strongest[pair] = replace(
            stronger,
            score=stronger.score + weaker.score,
            contribution=stronger.contribution + weaker.contribution,
            relation_probability=stronger.relation_probability + weaker.relation_probability,
            known_fact=stronger.known_fact or weaker.known_fact,
        )
    return sorted(strongest.values(), key=lambda rationale: -rationale.score)
