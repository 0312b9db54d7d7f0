"""Rank candidates: the tails of a head, or the heads of a tail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cogstage.errors import UsageError
from cogstage.progress import SILENT, Progress
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction
from cogstage.rationale.verdict import Profiles
from cogstage.relations import phrase

if TYPE_CHECKING:
    from cogstage.trained_model import TrainedModel

BATCH = 1024


def discover(
    model: TrainedModel,
    relation: str | None = None,
    head: int | None = None,
    tail: int | None = None,
    top: int = 20,
    new_only: bool = False,
    with_facts: bool = False,
    drop_contradicted: bool = False,
    k: int | None = 0,
    choose: Filter | None = None,
    base_rate: float = 0.5,
    progress: Progress = SILENT,
) -> list[Prediction]:
    """Rank the most probable tails of a head, or heads of a tail; see :meth:`cogstage.CogStage.discover`.

    The given term is a node id. Without a relation, there is one list after the other.
    """
    if (head is None) == (tail is None):
        raise UsageError("discover needs a head or a tail, not both")
    if top < 1:
        raise UsageError(f"top must be at least 1, not {top}")
    if relation is None:
        return [
            prediction
            for name in fitting_relations(model, head, tail)
            for prediction in discover(
                model, name, head, tail, top, new_only, with_facts, drop_contradicted, k, choose, base_rate, progress
            )
        ]
    best, _ = rank_candidates(model, relation, head, tail, top, new_only, with_facts, drop_contradicted, progress)
    return ranked_records(model, relation, head, tail, best, k, choose, base_rate)


def rank_candidates(
    model: TrainedModel,
    relation: str,
    head: int | None,
    tail: int | None,
    top: int,
    new_only: bool = False,
    with_facts: bool = False,
    drop_contradicted: bool = False,
    progress: Progress = SILENT,
    leave_out: Callable[[Profiles], np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The nodes of the first ``top`` candidates, and of those left out that have the log-odds of the last one or more.

    ``leave_out`` says which pairs to leave out, given their profiles.
    """
    pool = candidates(model, relation, head, tail, with_facts)
    best, omitted = _Best(top), _Best(top)
    progress.start(f"Ranking {len(pool):,} candidates", len(pool))
    for start in range(0, len(pool), BATCH):
        part = pool[start : start + BATCH]
        profiles = model.profiles(*_pairs(head, tail, part))
        contradicted, column = profiles.contradicted(relation), profiles.relations.index(relation)
        logit, keep = profiles.logit[:, column], np.ones(len(part), bool)
        if new_only:
            keep &= ~profiles.known[:, column]
        if drop_contradicted:
            keep &= ~contradicted
        if leave_out is not None:
            out = keep & leave_out(profiles)
            keep &= ~out
            omitted.add(part[out], logit[out], np.zeros(int(out.sum()), bool))
        best.add(part[keep], logit[keep], contradicted[keep])
        progress.advance(len(part))
    progress.done()
    least = best.logit[~best.below].min(initial=np.inf) if len(best.node) == top else -np.inf
    return best.node, omitted.node[omitted.logit >= least]


def candidates(
    model: TrainedModel, relation: str, head: int | None, tail: int | None, with_facts: bool = False
) -> np.ndarray:
    """The terms whose type fits at the other end of a relation, or only those with training facts. int64 (n,)."""
    model.check_relation(relation)
    given, side, other = (head, "head", "tail") if head is not None else (tail, "tail", "head")
    assert given is not None
    pool: np.ndarray = model.ends(relation, other) if with_facts else np.arange(len(model.vocabulary))
    pool = pool[pool != given]
    number, types = model.all_relations.index(relation), model.explainer.types
    if types is None or not len(pool):
        return pool
    inverse_number = number if other == "head" else number + len(model.all_relations)
    fits = types.allowed(*_pairs(head, tail, pool))[:, number]
    fits &= np.isin(types.kind[pool], types.kinds(types.of_heads(inverse_number)))
    if not fits.any():
        name, kind = model.vocabulary.name[given], model.vocabulary.type[given]
        raise UsageError(
            f"{name} is a {kind}, and no known fact of {relation} has a {kind} as {side}; give it as `{other}` instead"
        )
    fitting: np.ndarray = pool[fits]
    return fitting


def left_out_text(model: TrainedModel, relation: str, ranked: int, with_facts: bool = False) -> str:
    """How many terms a list ranks, and how many it leaves out and why."""
    others = len(model.vocabulary) - ranked - 1
    why = "they have no known fact of the relation" if with_facts else "their types do not fit the relation"
    return f"{phrase(relation)}: {ranked:,} terms ranked" + (f"; {others:,} left out, because {why}" if others else "")


def ranked_records(
    model: TrainedModel,
    relation: str,
    head: int | None,
    tail: int | None,
    nodes: np.ndarray,
    k: int | None,
    choose: Filter | None,
    base_rate: float,
) -> list[Prediction]:
    """The predictions of candidates in their order, each with its rank."""
    predictions = model.predict_batch(*_pairs(head, tail, nodes), relation, k, choose)
    return [replace(p.with_base_rate(base_rate), rank=rank) for rank, p in enumerate(predictions, start=1)]


class _Best:
    """The first candidates so far: by log-odds, contradicted ones below the others."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.node, self.logit, self.below = np.empty(0, np.int64), np.empty(0), np.empty(0, bool)

    def add(self, node: np.ndarray, logit: np.ndarray, below: np.ndarray) -> None:
        node, logit = np.concatenate([self.node, node]), np.concatenate([self.logit, logit])
        below = np.concatenate([self.below, below])
        first = np.lexsort((node, -logit, below))[: self.top]
        self.node, self.logit, self.below = node[first], logit[first], below[first]


def fitting_relations(model: TrainedModel, head: int | None = None, tail: int | None = None) -> tuple[str, ...]:
    """The relations of the model that have terms of the given one's type at its side; all for a term without type."""
    node, inverted = (head, False) if head is not None else (tail, True)
    assert node is not None
    types, kind, size = model.explainer.types, model.vocabulary.type[node], len(model.all_relations)
    if types is None or not kind:
        return model.relations
    numbers = {name: model.all_relations.index(name) + inverted * size for name in model.relations}
    fitting = tuple(name for name, number in numbers.items() if kind in types.of_heads(number))
    if not fitting:
        side, other = ("head", "tail") if head is not None else ("tail", "head")
        raise UsageError(
            f"{model.vocabulary.name[node]} is a {kind}, and no relation of the model has a {kind} as {side};"
            f" give it as `{other}` instead"
        )
    return fitting


def _pairs(head: int | None, tail: int | None, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    given = np.full(len(others), head if head is not None else tail, np.int64)
    return (given, others) if head is not None else (others, given)
