"""Ranking candidates: which tails does a head hold a relation to (or which heads a tail)?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cogstage.errors import UsageError
from cogstage.progress import SILENT, Progress
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction

if TYPE_CHECKING:
    from cogstage.rationale.cogstage import CogStage

BATCH = 1024


def discover(
    model: CogStage,
    relation: str,
    head: int | None = None,
    tail: int | None = None,
    top: int = 20,
    new_only: bool = False,
    everywhere: bool = False,
    k: int = 0,
    choose: Filter | None = None,
    progress: Progress = SILENT,
) -> list[Prediction]:
    """The ``top`` likeliest partners of ``head`` (or of ``tail``), likeliest first, each with ``k`` rationales.

    Candidates are the terms that stand on that side of the relation in some training fact; ``everywhere`` takes every
    node of the graph. ``new_only`` leaves training facts out. Memory grows with ``top``, not with the candidates.
    """
    if (head is None) == (tail is None):
        raise UsageError("discover needs a head or a tail, and not both")
    if top < 1:
        raise UsageError(f"--top must be at least 1, not {top}")
    model.check_relation(relation)
    given = head if head is not None else tail
    assert given is not None
    pool = np.arange(len(model.vocabulary)) if everywhere else model.ends(relation, "tail" if tail is None else "head")
    pool = pool[pool != given]
    if new_only:
        pool = pool[~_known(model, relation, head, tail, pool)]
    best, chance = np.empty(0, np.int64), np.empty(0)
    progress.start(f"ranking {len(pool):,} candidates", len(pool))
    for start in range(0, len(pool), BATCH):
        part = pool[start : start + BATCH]
        heads, tails = _pairs(head, tail, part)
        best = np.concatenate([best, part])
        chance = np.concatenate([chance, model.probabilities(heads, tails, relation)])
        kept = np.lexsort((best, -chance))[:top]
        best, chance = best[kept], chance[kept]
        progress.advance(len(part))
    progress.done()
    heads, tails = _pairs(head, tail, best)
    return model.predict_batch(heads, tails, relation, k, choose)


def _pairs(head: int | None, tail: int | None, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    given = np.full(len(others), head if head is not None else tail, np.int64)
    return (given, others) if head is not None else (others, given)


def _known(model: CogStage, relation: str, head: int | None, tail: int | None, pool: np.ndarray) -> np.ndarray:
    heads, tails = _pairs(head, tail, pool)
    return model.evidence.is_fact(heads, np.full(len(pool), model.evidence.relations.index(relation)), tails)
