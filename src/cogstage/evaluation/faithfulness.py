"""Faithfulness of reasons: removal tests on the assumptions of each pair, with controls.

Two counterfactuals are reported, never mixed. *Not recognised*: a triple's value is gone and the next reason steps in.
*Not recalled*: an association is gone with all triples through it, and the weights of the others are taken again.
Every figure is a mean over pairs that the model predicts positive, with a 95 % bootstrap interval over whole heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from cogstage.errors import UsageError
from cogstage.knowledge.dataset import Dataset
from cogstage.progress import SILENT, Progress
from cogstage.rationale.removal import Removable
from cogstage.statistics import interval, replicate, sigmoid
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex, Triples

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

KS = (1, 3, 5, 10)
NO_EFFECT = 1e-9  # changes of the logit below it are rounding
AOPC_STEPS = 5  # assumptions removed one after the other for NAOPC
AOPC_POOL = 24  # among so many of the strongest for and against
BATCH = 64


@dataclass
class Faithfulness:
    """Named figures: a value for each pair, reduced to mean and interval."""

    relation: str
    pairs: int  # predicted positive, and so measured
    head: np.ndarray  # (pairs,) clusters of the bootstrap
    values: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (pairs,), NaN if undefined
    restated: int = 0  # reasons that restate their target or its inverse, over the whole split
    examined: int = 0  # reasons looked at for that

    def mean(self, name: str) -> float:
        return float(np.nanmean(self.values[name])) if np.isfinite(self.values[name]).any() else float("nan")

    def interval(self, name: str, replicates: int = 1000, seed: int = 0) -> tuple[float, float]:
        """95 % interval, whole heads drawn."""
        value = self.values[name]
        defined = np.isfinite(value)
        if not defined.any():
            return float("nan"), float("nan")
        value, head = value[defined], self.head[defined]
        means = replicate(lambda w: {"mean": (w @ value) / np.maximum(w.sum(1), 1e-12)}, head, replicates, seed)
        return interval(means["mean"])

    def to_dict(self) -> dict[str, object]:
        figures = {name: {"mean": self.mean(name), "interval": list(self.interval(name))} for name in self.values}
        return {
            "relation": self.relation,
            "pairs": self.pairs,
            "restated": self.restated,
            "examined": self.examined,
            "figures": figures,
        }


def measure_faithfulness(
    model: CogStage,
    data: Dataset,
    relation: str,
    pairs: int = 512,
    seed: int = 0,
    ks: Sequence[int] = KS,
    split: str = "test",
    progress: Progress = SILENT,
) -> Faithfulness:
    """All figures of one model on pairs of one relation; ``pairs`` are sampled with ``seed``."""
    given, target = data.pairs(relation, split), model.all_relations.index(relation)
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(len(given), min(pairs, len(given)), replace=False))
    held_out, calibration = held_out_facts(data), model.calibration[relation]
    collected: dict[str, list[np.ndarray]] = {}
    heads: list[np.ndarray] = []
    progress.start(f"Removal tests of {relation}", len(chosen))
    for rows in _batches(chosen):
        head, tail = given.head[rows], given.tail[rows]
        positive = model.logits(head, tail, relation) >= 0
        if positive.any():
            assumptions = model.predictor.removable(head[positive], tail[positive], target)
            heads.append(head[positive])
            for name, value in _measure(model, assumptions, calibration, held_out, ks, generator).items():
                collected.setdefault(name, []).append(value)
        progress.advance(len(rows))
    progress.done()
    if not heads:
        raise UsageError(
            f"the model predicts none of the {len(chosen)} pairs of {relation} positive; nothing to measure"
        )
    values = {name: np.concatenate(parts) for name, parts in collected.items()}
    restated, examined = count_restated(model, data, relation, split)
    head = np.concatenate(heads)
    return Faithfulness(relation, len(head), head, values, restated, examined)


def _batches(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def _measure(
    model: CogStage,
    assumptions: Removable,
    calibration: Calibration,
    held_out: TripleIndex,
    ks: Sequence[int],
    generator: np.random.Generator,
) -> dict[str, np.ndarray]:
    """Every figure of a batch, one value per pair."""

    def p(logit: np.ndarray) -> np.ndarray:
        return sigmoid(calibration.logits(logit))

    score = assumptions.score
    everything = np.ones(score.shape, bool)
    whole = p(assumptions.decide(everything))
    reason = score > 0
    orders = {
        "top": np.argsort(-score, axis=1, kind="stable"),
        "random": np.argsort(np.where(reason, generator.random(score.shape), 2.0), axis=1),
        "lowest": np.argsort(np.where(reason, score, np.inf), axis=1, kind="stable"),
    }
    found: dict[str, np.ndarray] = {}
    for k in ks:
        for control, order in orders.items():
            mask = _first(order, k, score.shape) & reason
            without, alone = p(assumptions.decide(everything & ~mask)), p(assumptions.decide(mask))
            found[f"comprehensiveness@{k}, {control}"] = whole - without
            found[f"sufficiency@{k}, {control}"] = whole - alone
            found[f"decision kept by {control}@{k} alone"] = (alone >= 0.5).astype(float)
            found[f"decision turned without {control}@{k}"] = (without < 0.5).astype(float)
    found["effective reasons"] = _effective(assumptions)
    found |= _one_at_a_time(assumptions, orders["top"], ks)
    found |= _not_recalled(assumptions, ks)
    found["NAOPC"] = _naopc(assumptions, orders["top"])
    return found | _held_out_precision(model, assumptions, orders, held_out, ks)


def _effective(assumptions: Removable) -> np.ndarray:
    """Effective number of assumptions in the decision: exp of the entropy of |share| among those that make it."""
    size = np.abs(assumptions.share)
    p = size / np.maximum(size.sum(1, keepdims=True), 1e-30)
    effective: np.ndarray = np.exp(-(p * np.log(np.where(p > 0, p, 1.0))).sum(1))
    return effective


def _first(order: np.ndarray, k: int, shape: tuple[int, ...]) -> np.ndarray:
    mask = np.zeros(shape, bool)
    np.put_along_axis(mask, order[:, :k], True, axis=1)
    return mask


def leave_one_out(assumptions: Removable, chosen: np.ndarray) -> np.ndarray:
    """The logits (B, M) when each of ``chosen`` (B, M) assumptions alone is not recognised."""
    rows = np.arange(len(chosen))
    logits = []
    for column in range(chosen.shape[1]):
        keep = np.ones(assumptions.score.shape, bool)
        keep[rows, chosen[:, column]] = False
        logits.append(assumptions.decide(keep))
    return np.stack(logits, 1)


def _one_at_a_time(assumptions: Removable, top: np.ndarray, ks: Sequence[int]) -> dict[str, np.ndarray]:
    """Rank agreement of scores with leave-one-out effects, and how often a removal raises p."""
    chosen = top[:, : max(ks)]
    score = np.take_along_axis(assumptions.score, chosen, 1)
    before = assumptions.decide(np.ones(assumptions.score.shape, bool))
    fall = before[:, None] - leave_one_out(assumptions, chosen)
    found = _both_taus(score, fall, "not recognised")
    for k in ks:
        shown = score[:, :k] > 0
        raised = ((fall[:, :k] < -1e-9) & shown).sum(1)
        found[f"removal raises p, top@{k}, not recognised"] = _share(raised, shown.sum(1))
    return found


def _not_recalled(assumptions: Removable, ks: Sequence[int]) -> dict[str, np.ndarray]:
    """The same for associations: what each contributes against what its removal does."""
    number, count = assumptions.associations()
    order = np.argsort(-assumptions.score, axis=1, kind="stable")[:, : max(ks)]
    rows = np.arange(len(order))[:, None]
    kept = np.zeros_like(assumptions.score)
    kept[rows, order] = np.maximum(assumptions.score[rows, order], 0.0)
    kept = np.broadcast_to(kept[..., None], number.shape)
    shares = np.stack(
        [np.bincount(n.ravel(), weights=s.ravel(), minlength=count) for n, s in zip(number, kept, strict=True)]
    )
    strongest = np.argsort(-shares, axis=1, kind="stable")[:, : max(ks)]
    before = assumptions.decide(np.ones(assumptions.score.shape, bool))
    fall = np.stack([before - assumptions.decide_without_association(column) for column in strongest.T], 1)
    share = np.take_along_axis(shares, strongest, 1)
    found = _both_taus(share, fall, "not recalled")
    for k in ks:
        shown = share[:, :k] > 0
        found[f"removal raises p, top@{k}, not recalled"] = _share(((fall[:, :k] < -1e-9) & shown).sum(1), shown.sum(1))
    return found


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    share: np.ndarray = np.divide(part, whole, out=np.full(len(whole), np.nan), where=whole > 0)
    return share


def _both_taus(score: np.ndarray, effect: np.ndarray, removal: str) -> dict[str, np.ndarray]:
    """Kendall's τ-b over the reasons whose removal changes the logit, and over all of them.

    Ties at no effect exist because a decision counts its strongest reasons only: an assumption below them has a
    positive score, but removing it changes nothing.
    """
    changing = (score > 0) & (np.abs(effect) > NO_EFFECT)
    return {
        f"Kendall's τ, {removal}": _taus(score, effect, changing),
        f"Kendall's τ with ties, {removal}": _taus(score, np.where(changing, effect, 0.0), score > 0),
    }


def _taus(score: np.ndarray, effect: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """Kendall's τ-b of each row over the chosen entries; NaN with fewer than two, or if all effects are equal."""
    from scipy.stats import kendalltau

    taus = np.full(len(score), np.nan)
    for row in range(len(score)):
        held = chosen[row]
        if np.count_nonzero(held) > 1:
            taus[row] = kendalltau(score[row][held], effect[row][held]).statistic
    return taus


def _naopc(assumptions: Removable, top: np.ndarray) -> np.ndarray:
    """Area over the removal curve, normalised by the best and the worst order of removal that a greedy search finds."""
    half = AOPC_POOL // 2
    pool = top if top.shape[1] <= AOPC_POOL else np.concatenate([top[:, :half], top[:, -half:]], 1)
    shown = _curve(assumptions, top[:, :AOPC_STEPS])
    best, worst = (_curve(assumptions, _greedy(assumptions, pool, sign)) for sign in (1.0, -1.0))
    spread = best - worst
    return np.where(spread > 1e-9, (shown - worst) / np.maximum(spread, 1e-9), np.nan)


def _curve(assumptions: Removable, order: np.ndarray) -> np.ndarray:
    """Mean fall of the logit over the steps of a removal order (B, steps)."""
    keep = np.ones(assumptions.score.shape, bool)
    before, falls, rows = assumptions.decide(keep), [], np.arange(len(order))
    for column in order.T:
        keep[rows, column] = False
        falls.append(before - assumptions.decide(keep))
    mean: np.ndarray = np.mean(falls, axis=0)
    return mean


def _greedy(assumptions: Removable, pool: np.ndarray, sign: float) -> np.ndarray:
    """The order that removes, at each step, what lowers the logit most (or raises it most, for sign -1)."""
    keep, rows, order = np.ones(assumptions.score.shape, bool), np.arange(len(pool)), []
    left = np.ones(pool.shape, bool)
    for _ in range(min(AOPC_STEPS, pool.shape[1])):
        after = []
        for column in pool.T:
            trial = keep.copy()
            trial[rows, column] = False
            after.append(sign * assumptions.decide(trial))
        best = np.argmin(np.where(left, np.stack(after, 1), np.inf), axis=1)
        left[rows, best] = False
        keep[rows, pool[rows, best]] = False
        order.append(pool[rows, best])
    return np.stack(order, 1)


def held_out_facts(data: Dataset) -> TripleIndex:
    """The dev and test facts: what no model was fitted on, and so a fair check of its triples."""
    return TripleIndex(Triples.join([data.facts("dev"), data.facts("test")]), len(data.relations), data.n_nodes)


def _held_out_precision(
    model: CogStage,
    assumptions: Removable,
    orders: dict[str, np.ndarray],
    held_out: TripleIndex,
    ks: Sequence[int],
) -> dict[str, np.ndarray]:
    """Of the recognised triples that are no training facts, strongest first, the share that are held-out facts."""
    found = {}
    recognised = assumptions.recognised & (assumptions.score > 0)
    for control in ("top", "random"):
        order = orders[control][:, : 8 * max(ks)]
        head, relation, tail = (
            np.take_along_axis(values, order, 1)
            for values in (assumptions.head, assumptions.relation, assumptions.tail)
        )
        unseen = np.take_along_axis(recognised, order, 1) & ~model.facts.contains(head, relation, tail)
        true = held_out.contains(head, relation, tail) & unseen
        position = np.cumsum(unseen, axis=1)
        for k in ks:
            first = unseen & (position <= k)
            found[f"precision@{k} on held-out facts, {control}"] = _share((true & first).sum(1), first.sum(1))
    return found


def count_restated(model: CogStage, data: Dataset, relation: str, split: str = "test") -> tuple[int, int]:
    """How many reasons of a whole split restate their target or its inverse, and of how many."""
    pairs, index = data.pairs(relation, split), model.all_relations.index(relation)
    backwards, restated, examined = index + len(model.all_relations), 0, 0
    for rows in _batches(np.arange(len(pairs))):
        head, tail = pairs.head[rows], pairs.tail[rows]
        a = model.predictor.reasons(model.predictor.view(head, tail), index, model.calibration[relation])
        shown = a.share != 0
        h, t = head[:, None], tail[:, None]
        same = (a.head == h) & (a.tail == t) & (a.relation == index)
        turned = (a.head == t) & (a.tail == h) & (a.relation == backwards)
        restated += int(((same | turned) & shown).sum())
        examined += int(shown.sum())
    return restated, examined
