"""Pairs of a reference set, held out of a data set so that a model can be evaluated on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.errors import UsageError
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.located import Concepts, LocatedFacts
from cogstage.knowledge.matching import Names
from cogstage.tables import read_rows

OTHER_NAMES = {"drug": "head", "concept": "tail"}


@dataclass(frozen=True)
class HoldOut:
    """Pairs of names: every head with every concept of its outcome."""

    pairs: tuple[tuple[str, str], ...]
    files: tuple[str, ...]

    @classmethod
    def read(cls, path: Path | str, outcomes: Path | str | None = None) -> HoldOut:
        """Read a table with the columns head (or drug) and tail, outcome or both.

        An outcome stands for a set of concepts: those of ``outcomes`` (columns outcome and tail or concept), and all
        tails that the table itself gives it. A head is held out from the whole set.
        """
        members: dict[str, dict[str, None]] = {}
        if outcomes is not None:
            for row in read_rows(outcomes, ["outcome", "tail"], [], None, OTHER_NAMES):
                members.setdefault(str(row["outcome"]), {})[str(row["tail"])] = None
        rows = []
        for row in read_rows(path, ["head"], ["tail", "outcome"], None, OTHER_NAMES):
            outcome = str(row["outcome"] or row["tail"] or "")
            if not outcome:
                raise UsageError(f"{row.where()}: a pair needs a tail or an outcome")
            if row["tail"] or outcome not in members:
                members.setdefault(outcome, {})[str(row["tail"] or outcome)] = None
            rows.append((str(row["head"]), outcome))
        pairs = dict.fromkeys((head, tail) for head, outcome in rows for tail in members[outcome])
        return cls(tuple(pairs), tuple(Path(file).name for file in (path, outcomes) if file is not None))

    def numbers(
        self, vocabulary: Vocabulary, concepts: Concepts, matched: Mapping[str, str]
    ) -> tuple[np.ndarray, list[str]]:
        """The unordered pairs of concepts as :class:`Concepts` numbers them, sorted; and the names the graph lacks."""
        names = Names.from_vocabulary(vocabulary)
        number = {name: index for index, name in enumerate(concepts.names)}
        found: dict[str, list[int]] = {}
        for name in dict.fromkeys(name for pair in self.pairs for name in pair):
            own = (name,) if name in names.concepts else names.find_drug(name)
            found[name] = [number[matched.get(concept, concept)] for concept in own]
        n_concepts = len(concepts.names)
        held = {
            min(a, b) * n_concepts + max(a, b)
            for head, tail in self.pairs
            for a in found[head]
            for b in found[tail]
            if a != b
        }
        return np.array(sorted(held), np.int64), [name for name, numbers in found.items() if not numbers]


def taken_out(facts: LocatedFacts, held: np.ndarray) -> tuple[np.ndarray, dict[str, int]]:
    """Find the facts (of any relation and direction) between held-out pairs, and count them per relation."""
    mask: np.ndarray = np.isin(facts.pair, held)
    counts = Counter(facts.relations[index] for index in facts.relation[mask].tolist())
    return mask, dict(sorted(counts.items()))


def hold_out_report(hold_out: HoldOut, held: np.ndarray, missing: list[str], taken: dict[str, int]) -> dict[str, Any]:
    """How many facts were held out of each relation, and which names the graph does not have."""
    return {
        "files": list(hold_out.files),
        "pairs": len(hold_out.pairs),
        "pairs of concepts in the graph": len(held),
        "facts taken out": taken,
        "names not in the graph": missing,
    }
