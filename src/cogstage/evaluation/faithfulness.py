"""Do the rationales carry the decision? Removal tests against controls, over the assumptions of each pair.

An assumption is a pair of associations; its score is that of its strongest triple, max_k p_ij·p(k|i,j). Removal means
g = -∞ and the attention taken again. Every figure is a mean over pairs that the model predicts positive, with a 95 %
bootstrap interval over whole heads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import torch

from cogstage.errors import UsageError
from cogstage.evaluation.significance import interval, replicate
from cogstage.knowledge.dataset import Dataset
from cogstage.model.decision import effective_number
from cogstage.progress import SILENT, Progress
from cogstage.triples import TripleIndex, Triples

if TYPE_CHECKING:
    from cogstage.model.cogstage import Assumptions, Network
    from cogstage.rationale.cogstage import CogStage

KS = (1, 3, 5, 10, 20)
LEAVE_ONE_OUT = 30  # Kendall's tau is taken over this many of the highest-scored assumptions
BATCH = 64


@dataclass
class Faithfulness:
    """Named figures: a value for each pair, reduced to mean and interval by :meth:`rows`."""

    relation: str
    pairs: int  # predicted positive, and so measured
    head: np.ndarray  # (pairs,) clusters of the bootstrap
    values: dict[str, np.ndarray] = field(default_factory=dict)  # name -> (pairs,), NaN where undefined
    restated: int = 0  # top-K triples that restate their target or its inverse, over the whole test set
    examined: int = 0  # triples looked at for that

    def mean(self, name: str) -> float:
        """The figure itself."""
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
        """Plain values for JSON."""
        figures = {name: {"mean": self.mean(name), "interval": list(self.interval(name))} for name in self.values}
        return {
            "relation": self.relation,
            "pairs": self.pairs,
            "restated": self.restated,
            "examined": self.examined,
            "figures": figures,
        }


@torch.no_grad()
def measure_faithfulness(
    model: CogStage,
    data: Dataset,
    relation: str,
    pairs: int = 512,
    seed: int = 0,
    ks: Sequence[int] = KS,
    progress: Progress = SILENT,
) -> Faithfulness:
    """Everything that one model and the test pairs of one relation can say; ``pairs`` are drawn by ``seed``."""
    test = data.pairs(relation, "test")
    generator = np.random.default_rng(seed)
    chosen = np.sort(generator.choice(len(test), min(pairs, len(test)), replace=False))
    held_out = held_out_facts(data)
    collected: dict[str, list[np.ndarray]] = {}
    heads: list[np.ndarray] = []
    progress.start(f"removal tests of {relation}", len(chosen))
    for rows in _batches(chosen):
        assumptions = model.assumptions(test.head[rows], test.tail[rows], relation)
        positive = (assumptions.logit >= 0).numpy()
        heads.append(test.head[rows][positive])
        for name, value in _measure(model, assumptions, held_out, ks, generator).items():
            collected.setdefault(name, []).append(value[positive])
        progress.advance(len(rows))
    progress.done()
    head = np.concatenate(heads)
    if not len(head):
        raise UsageError(
            f"the model predicts none of the {len(chosen)} pairs of {relation} positive; nothing to measure"
        )
    values = {name: np.concatenate(parts) for name, parts in collected.items()}
    restated, examined = count_restated(model, data, relation, max(ks))
    return Faithfulness(relation, len(head), head, values, restated, examined)


def _batches(rows: np.ndarray) -> Iterator[np.ndarray]:
    for start in range(0, len(rows), BATCH):
        yield rows[start : start + BATCH]


def scores_of(assumptions: Assumptions) -> torch.Tensor:
    """(B, P) score of each assumption: that of its strongest triple."""
    return assumptions.attention * assumptions.best_probability


def _measure(
    model: CogStage, assumptions: Assumptions, held_out: TripleIndex, ks: Sequence[int], generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Every figure of a batch, one value a pair."""
    network = model.network
    valid = assumptions.formed  # what can be shown; removal tests choose among these
    score = scores_of(assumptions).masked_fill(~valid, -1.0)
    whole = assumptions.logit.sigmoid()
    order = {
        "top": score.argsort(dim=1, descending=True, stable=True),
        "random": _shuffled(valid, generator),
        "lowest": score.masked_fill(~valid, 2.0).argsort(dim=1, stable=True),
    }
    attention = assumptions.attention
    found = {
        "effective assumptions": effective_number(attention * valid),
        "effective pairs, unrecognised ones too": effective_number(attention),
        "attention on unrecognised pairs": (attention * (assumptions.relation_probability.sum(2) == 0)).sum(1),
    }
    for k in ks:
        top = torch.zeros_like(valid).scatter(1, order["top"][:, :k], True)
        found[f"attention of top@{k}"] = (attention * top).sum(1)
        for control, ranked in order.items():
            mask = torch.zeros_like(valid).scatter(1, ranked[:, :k], True) & valid
            without, alone = (network.decide(assumptions, keep).sigmoid() for keep in (~mask, mask))
            found[f"comprehensiveness@{k}, {control}"] = whole - without
            found[f"sufficiency@{k}, {control}"] = whole - alone
            found[f"decision kept by {control}@{k} alone"] = (alone >= 0.5).to(whole.dtype)
            found[f"decision turned without {control}@{k}"] = (without < 0.5).to(whole.dtype)
    effect = leave_one_out(network, assumptions, order["top"][:, :LEAVE_ONE_OUT])
    ranked = score.gather(1, order["top"][:, :LEAVE_ONE_OUT])
    result = {name: value.numpy() for name, value in found.items()}
    result["Kendall's τ with leave-one-out"] = _taus(ranked.numpy(), effect.numpy())
    for k in ks:
        if k <= LEAVE_ONE_OUT:
            result[f"removal raises p, top@{k}"] = (effect[:, :k] < 0).float().mean(1).numpy()
    result |= _held_out_precision(model, assumptions, held_out, ks, generator)
    return result


def leave_one_out(network: Network, assumptions: Assumptions, chosen: torch.Tensor) -> torch.Tensor:
    """How far p falls when each of ``chosen`` (B, M) assumptions alone is removed."""
    whole = assumptions.logit.sigmoid()
    falls = []
    for column in range(chosen.shape[1]):
        keep = torch.ones_like(assumptions.valid).scatter(1, chosen[:, column : column + 1], False)
        falls.append(whole - network.decide(assumptions, keep).sigmoid())
    return torch.stack(falls, 1)


def _shuffled(valid: torch.Tensor, generator: np.random.Generator) -> torch.Tensor:
    """The valid assumptions in random order, the others behind them."""
    noise = torch.from_numpy(generator.random(tuple(valid.shape)))
    return noise.masked_fill(~valid, 2.0).argsort(dim=1)


def _taus(score: np.ndarray, effect: np.ndarray) -> np.ndarray:
    from scipy.stats import kendalltau

    taus = np.full(len(score), np.nan)
    for row in range(len(score)):
        held = score[row] > 0
        if np.count_nonzero(held) > 1:
            taus[row] = kendalltau(score[row][held], effect[row][held]).statistic
    return taus


def held_out_facts(data: Dataset) -> TripleIndex:
    """The dev and test facts: what no model was fitted on, and so a fair check of its triples."""
    return TripleIndex(Triples.join([data.facts("dev"), data.facts("test")]), len(data.relations), data.n_nodes)


def _held_out_precision(
    model: CogStage, assumptions: Assumptions, held_out: TripleIndex, ks: Sequence[int], generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Of the top triples that are no training facts, the share that are held-out facts; and of random ones."""
    probability = assumptions.relation_probability.numpy()  # (B, P, K)
    batch, _, relations = probability.shape
    score = (assumptions.attention.numpy()[:, :, None] * probability).reshape(batch, -1)
    recognised = probability.reshape(batch, -1) > 0
    orders = {
        "top": np.argsort(-score, axis=1, kind="stable"),
        "random": np.argsort(np.where(recognised, generator.random(score.shape), 2.0), axis=1),
    }
    found = {}
    for control, order in orders.items():
        order = order[:, : 4 * max(ks)]  # enough to find K that are no training facts, in all but rare cases
        pair, relation = np.divmod(order, relations)
        head = np.take_along_axis(assumptions.pair_head.numpy(), pair, 1)
        tail = np.take_along_axis(assumptions.pair_tail.numpy(), pair, 1)
        unseen = np.take_along_axis(recognised, order, 1) & ~model.evidence.is_fact(head, relation, tail)
        true = held_out.contains(head, relation, tail) & unseen
        place = np.cumsum(unseen, axis=1)
        for k in ks:
            first = unseen & (place <= k)
            number = first.sum(1)
            share = np.divide((true & first).sum(1), number, out=np.full(batch, np.nan), where=number > 0)
            found[f"precision@{k} on held-out facts, {control}"] = share
    return found


@torch.no_grad()
def count_restated(model: CogStage, data: Dataset, relation: str, k: int) -> tuple[int, int]:
    """How many of the top ``k`` triples of the whole test set restate their target or its inverse, and of how many."""
    test = data.pairs(relation, "test")
    index = data.relations.index(relation)
    backwards = index + len(data.relations)
    restated = examined = 0
    for rows in _batches(np.arange(len(test))):
        assumptions = model.assumptions(test.head[rows], test.tail[rows], relation)
        score = (assumptions.attention[:, :, None] * assumptions.relation_probability).flatten(1)
        best = score.topk(min(k, score.shape[1]), dim=1)
        pair, number = (
            best.indices // assumptions.relation_probability.shape[2],
            best.indices % assumptions.relation_probability.shape[2],
        )
        a, b = assumptions.pair_head.gather(1, pair).numpy(), assumptions.pair_tail.gather(1, pair).numpy()
        h, t = test.head[rows][:, None], test.tail[rows][:, None]
        relations, shown = number.numpy(), best.values.numpy() > 0
        forward = (a == h) & (b == t) & (relations == index)
        inverse = (a == t) & (b == h) & (relations == backwards)
        restated += int(np.count_nonzero((forward | inverse) & shown))
        examined += int(np.count_nonzero(shown))
    return restated, examined
