"""Rank candidates: the tails of a head, or the heads of a tail."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cogstage.errors import UsageError
from cogstage.progress import SILENT, Progress
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

BATCH = 1024


def discover(
    model: CogStage,
    relation: str,
    head: int | None = None,
    tail: int | None = None,
    top: int = 20,
    new_only: bool = False,
    everywhere: bool = False,
    k: int | None = 0,
    choose: Filter | None = None,
    progress: Progress = SILENT,
) -> list[Prediction]:
    """Rank the most probable tails of a head, or heads of a tail.

    Parameters
    ----------
    model
        A trained model.
    relation
        The relation to rank by.
    head, tail
        Node id of the given term; give exactly one of the two.
    top
        Number of candidates to return.
    new_only
        Whether to leave out training facts.
    everywhere
        Whether to rank all nodes, not only those with training facts of the relation.
    k, choose
        Number of reasons per prediction (None for all), and a filter for them.
    progress
        Receiver of progress reports.

    Returns
    -------
    list of Prediction
        One prediction per candidate, most probable first.

    Examples
    --------
    >>> model = cs.CogStage.load("model")
    >>> drug = model.vocabulary.find("Drug number 4")
    >>> found = cs.discover(model, "may_treat", head=drug, top=3, new_only=True)
    >>> [prediction.known_fact for prediction in found]
    [False, False, False]
    >>> found[0].logit >= found[1].logit >= found[2].logit
    True
    """
    if (head is None) == (tail is None):
        raise UsageError("discover needs a head or a tail, not both")
    if top < 1:
        raise UsageError(f"top must be at least 1, not {top}")
    model.check_relation(relation)
    given = head if head is not None else tail
    assert given is not None
    pool = np.arange(len(model.vocabulary)) if everywhere else model.ends(relation, "tail" if tail is None else "head")
    pool = pool[pool != given]
    heads, tails = _pairs(head, tail, pool)
    number, types = model.all_relations.index(relation), model.explainer.types
    if types is not None and len(pool) and not types.allowed(heads, tails)[:, number].any():
        name, kind = model.vocabulary.name[given], model.vocabulary.type[given]
        side, other = ("head", "tail") if tail is None else ("tail", "head")
        raise UsageError(
            f"{name} is a {kind}, and no known fact of {relation} has a {kind} as {side}; give it as `{other}` instead"
        )
    if new_only:
        pool = pool[~model.facts.contains(heads, np.full(len(pool), number), tails)]
    best, logit = np.empty(0, np.int64), np.empty(0)
    progress.start(f"Ranking {len(pool):,} candidates", len(pool))
    for start in range(0, len(pool), BATCH):
        part = pool[start : start + BATCH]
        best = np.concatenate([best, part])
        logit = np.concatenate([logit, model.logits(*_pairs(head, tail, part), relation)])
        kept = np.lexsort((best, -logit))[:top]
        best, logit = best[kept], logit[kept]
        progress.advance(len(part))
    progress.done()
    return model.predict_batch(*_pairs(head, tail, best), relation, k, choose)


def _pairs(head: int | None, tail: int | None, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    given = np.full(len(others), head if head is not None else tail, np.int64)
    return (given, others) if head is not None else (others, given)
