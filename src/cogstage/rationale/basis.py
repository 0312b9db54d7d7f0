"""How far predictions about a term can be relied on: how many terms it co-occurs with, and how many facts are known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cogstage.graph.pair_counts import PairCounts
from cogstage.triples import Triples

WEAK, FAIR = 20, 3  # fewer co-occurring terms are a weak basis, fewer facts a fair one


@dataclass(frozen=True)
class Basis:
    """What predictions about a term rest on."""

    neighbours: int | None  # terms that it co-occurs with; None if counts are hidden
    facts: int  # training facts about it

    @property
    def level(self) -> str:
        """ "no basis", "weak basis", "fair basis" or "good basis"."""
        if self.neighbours is not None and self.neighbours < WEAK:
            return "weak basis" if self.neighbours or self.facts else "no basis"
        return "fair basis" if self.facts < FAIR else "good basis"

    @property
    def words(self) -> str:
        """Why the level is what it is, in a sentence."""
        if self.neighbours is not None and self.neighbours < WEAK:
            return "It co-occurs with few other terms, so similar terms cannot be determined reliably."
        if self.facts < FAIR:
            return "It has few known facts, so most reasons are assumptions."
        counted = "" if self.neighbours is None else "enough counts and "
        return f"It has {counted}several known facts."

    @property
    def warning(self) -> str:
        """What to say beside a candidate: "2 co-occurring terms: weak basis"; empty if there is nothing to warn of."""
        if self.neighbours is None or self.neighbours >= WEAK:
            return ""
        terms = "1 co-occurring term" if self.neighbours == 1 else f"{self.neighbours} co-occurring terms"
        return f"{terms}: {self.level}"


class Bases:
    """The basis of every term of a model."""

    def __init__(self, counts: PairCounts, facts: Triples, hidden: bool = False) -> None:
        size = len(counts.start) - 1
        self._neighbours = np.diff(counts.start) + np.bincount(counts.other, minlength=size)
        self._facts = np.bincount(facts.head, minlength=size) + np.bincount(facts.tail, minlength=size)
        self._hidden = hidden

    def of(self, node: int) -> Basis:
        """The basis of one term."""
        return Basis(None if self._hidden else int(self._neighbours[node]), int(self._facts[node]))
