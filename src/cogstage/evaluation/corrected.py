"""Corrections in an evaluation: a verdict on a held-out pair reveals part of the answer, and is reported."""

from __future__ import annotations

from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.corrections import Corrections


def correction_warnings(corrections: Corrections, vocabulary: Vocabulary, data: Dataset, split: str) -> list[str]:
    """A line if some verdicts are about pairs of the split that is measured, in either direction."""
    held_out = {
        frozenset(pair)
        for relation in data.relations
        for pairs in [data.pairs(relation, split)]
        for pair in zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)
    }
    judged = {frozenset((vocabulary.find(entry.head), vocabulary.find(entry.tail))) for entry in corrections.entries}
    both = len(judged & held_out)
    if not both:
        return []
    return [f"{both} of {len(judged)} corrected pairs are {split} pairs: the model was told about what it is asked"]
