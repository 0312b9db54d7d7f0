"""Hit rates: how often a candidate at a rank is a fact, measured on held-out facts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np

from cogstage.knowledge.dataset import FittingView

BANDS = ((1, 1), (2, 3), (4, 10), (11, 30), (31, 100), (101, 300))


class RelationScorer(Protocol):
    """What a model must provide."""

    def probabilities(self, head: np.ndarray, tail: np.ndarray, relation: str) -> np.ndarray:
        """Scores of pairs, higher is likelier."""

    def ends(self, relation: str, side: str) -> np.ndarray:
        """Return the node ids of the candidates for one side of a relation."""


def hit_rate(
    model: RelationScorer,
    relation: str,
    held_out: tuple[np.ndarray, np.ndarray],
    training: tuple[np.ndarray, np.ndarray],
    most: int = 150,
    seed: int = 0,
) -> dict[str, list[dict[str, float]]]:
    """For terms with held-out facts, the share of candidates at each rank that are held-out facts.

    Every term at one side of ``held_out`` (at most ``most``, drawn with ``seed``) gets its candidates ranked; training
    facts are left out of the list. Held-out facts are not all there is to know, so the true rate is higher.

    Parameters
    ----------
    held_out, training
        Heads and tails of the relation's facts that the model never saw, and of those it was trained on.

    Returns
    -------
    For "head" and "tail", the side at which the given term stands, bands of ranks: ``from``, ``to``, ``rate``, ``of``
    (how many candidates stood there).
    """
    return {side: _bands(model, relation, side, held_out, training, most, seed) for side in ("head", "tail")}


def hit_rates(
    model: RelationScorer, view: FittingView, relations: Iterable[str], most: int = 30
) -> dict[str, dict[str, list[dict[str, float]]]]:
    """The hit rates of several relations, measured on dev facts; stored with a model as ``metrics["hit_rate"]``."""
    facts, found = view.train_facts(), {}
    for relation in relations:
        dev, mine = view.pairs(relation, "dev"), facts.relation == view.relations.index(relation)
        true = dev.label == 1
        held_out, training = (dev.head[true], dev.tail[true]), (facts.head[mine], facts.tail[mine])
        found[relation] = hit_rate(model, relation, held_out, training, most)
    return found


def _bands(
    model: RelationScorer,
    relation: str,
    side: str,
    held_out: tuple[np.ndarray, np.ndarray],
    training: tuple[np.ndarray, np.ndarray],
    most: int,
    seed: int,
) -> list[dict[str, float]]:
    at = 0 if side == "head" else 1
    wanted, known = (_partners(pairs[at], pairs[1 - at]) for pairs in (held_out, training))
    given = np.array(sorted(wanted), np.int64)
    if len(given) > most:
        given = np.sort(np.random.default_rng(seed).choice(given, most, replace=False))
    pool = np.asarray(model.ends(relation, "tail" if side == "head" else "head"), np.int64)
    hits, shown = np.zeros(BANDS[-1][1]), np.zeros(BANDS[-1][1])
    for node in given.tolist():
        left_out = known.get(node, set()) | {node}
        others = pool[~np.isin(pool, list(left_out))]
        same = np.full(len(others), node, np.int64)
        heads, tails = (same, others) if side == "head" else (others, same)
        best = np.lexsort((others, -model.probabilities(heads, tails, relation)))[: len(hits)]
        hits[: len(best)] += np.isin(others[best], list(wanted[node]))
        shown[: len(best)] += 1
    found: list[dict[str, float]] = []
    for first, last in BANDS:
        of = float(shown[first - 1 : last].sum())
        if of:
            rate = float(hits[first - 1 : last].sum()) / of
            found.append({"from": first, "to": last, "rate": rate, "of": of})
    return found


def _partners(one: Any, other: Any) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for a, b in zip(np.asarray(one).tolist(), np.asarray(other).tolist(), strict=True):
        found.setdefault(a, set()).add(b)
    return found


def rate_at(bands: list[dict[str, float]], rank: int) -> dict[str, float] | None:
    """The band that a rank lies in."""
    return next((band for band in bands if band["from"] <= rank <= band["to"]), None)
