"""Stability of reasons over seeds, and ablations of the association weights.

Stability is the mean Jaccard overlap of the top-K triples over pairs of models that differ in their seed, next to the
overlap of K triples drawn at random from those that each recognised. The ablations give all associations the same
weight, and shuffle the entries of every parameter of stages 2 and 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from cogstage.errors import UsageError
from cogstage.evaluation.measure import sample_pairs
from cogstage.evaluation.metrics import score as score_metrics
from cogstage.knowledge.dataset import Dataset, Pairs
from cogstage.rationale.predictor import Predictor
from cogstage.statistics import sigmoid

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

BATCH = 64
TOP = 5


@dataclass(frozen=True)
class Stability:
    """Mean Jaccard@K over models and pairs, and what chance would give."""

    k: int
    pairs: int
    models: int
    jaccard: float
    chance: float


@dataclass(frozen=True)
class Ablation:
    """A variant of the model on the same pairs: its figures, and how many of the top reasons stay the same."""

    name: str
    f1: float
    auroc: float
    comprehensiveness: float  # of the top 5, over pairs predicted positive
    overlap: float  # Jaccard of the top 5 with the model's own


def stability(
    models: Sequence[CogStage],
    data: Dataset,
    relation: str,
    k: int = TOP,
    pairs: int = 512,
    seed: int = 0,
    split: str = "test",
) -> Stability:
    """Overlap of the top ``k`` triples between models of different seeds, on pairs drawn by ``seed``."""
    if len(models) < 2:
        raise UsageError("stability needs at least two models, trained with different seeds")
    chosen = sample_pairs(data, relation, split, pairs, np.random.default_rng(seed))
    generator = np.random.default_rng(seed)
    tops, chances = [], []
    for model in models:
        found = _top_triples(model.predictor, model, chosen, relation, k, generator)
        tops.append(found[0])
        chances.append(found[1])
    return Stability(k, len(chosen), len(models), _overlap(tops), _overlap(chances))


def ablations(
    model: CogStage, data: Dataset, relation: str, pairs: int = 512, seed: int = 0, split: str = "test"
) -> list[Ablation]:
    """The model as it is, with uniform weights of associations, and with shuffled parameters."""
    chosen = sample_pairs(data, relation, split, pairs, np.random.default_rng(seed))
    variants = {
        "as trained": model.predictor,
        "uniform weights": model.predictor.uniform(),
        "shuffled parameters": model.predictor.shuffled(seed),
    }
    target, calibration = model.all_relations.index(relation), model.calibration[relation]
    found: list[Ablation] = []
    reference: list[frozenset[int]] = []
    for name, predictor in variants.items():
        probability, falls = [], []
        for start in range(0, len(chosen), BATCH):
            rows = slice(start, start + BATCH)
            assumptions = predictor.removable(chosen.head[rows], chosen.tail[rows], target)
            score = assumptions.score
            keep = np.ones(score.shape, bool)
            whole = sigmoid(calibration.logits(assumptions.decide(keep)))
            np.put_along_axis(keep, np.argsort(-score, axis=1, kind="stable")[:, :TOP], False, axis=1)
            without = sigmoid(calibration.logits(assumptions.decide(keep)))
            probability.append(whole)
            falls.append((whole - without)[whole >= 0.5])
        tops, _ = _top_triples(predictor, model, chosen, relation, TOP, np.random.default_rng(seed))
        reference = reference or tops
        figures = score_metrics(chosen.label, np.concatenate(probability))
        fall = np.concatenate(falls)
        overlap = float(np.mean([jaccard(a, b) for a, b in zip(reference, tops, strict=True)]))
        mean_fall = float(fall.mean()) if len(fall) else float("nan")
        found.append(Ablation(name, figures["f1"], figures["auroc"], mean_fall, overlap))
    return found


def _top_triples(
    predictor: Predictor, model: CogStage, pairs: Pairs, relation: str, k: int, generator: np.random.Generator
) -> tuple[list[frozenset[int]], list[frozenset[int]]]:
    """For each pair the keys of its ``k`` strongest triples, and of ``k`` random ones among those recognised."""
    nodes, target = np.int64(len(model.vocabulary)), model.all_relations.index(relation)
    top: list[frozenset[int]] = []
    chance: list[frozenset[int]] = []
    for start in range(0, len(pairs), BATCH):
        rows = slice(start, start + BATCH)
        assumptions = predictor.removable(pairs.head[rows], pairs.tail[rows], target)
        keys = (assumptions.relation * nodes + assumptions.head) * nodes + assumptions.tail
        noise = np.where(assumptions.recognised, generator.random(keys.shape), -1.0)
        for ranked, collected in ((np.abs(assumptions.score), top), (noise, chance)):
            best = np.argsort(-ranked, axis=1, kind="stable")[:, :k]
            held = np.take_along_axis(ranked, best, 1) > 0
            chosen = np.take_along_axis(keys, best, 1)
            collected += [frozenset(row[kept].tolist()) for row, kept in zip(chosen, held, strict=True)]
    return top, chance


def _overlap(sets: Sequence[Sequence[frozenset[int]]]) -> float:
    values = [jaccard(a, b) for one, other in combinations(sets, 2) for a, b in zip(one, other, strict=True)]
    return float(np.mean(values))


def jaccard(one: frozenset[int], other: frozenset[int]) -> float:
    """Size of the intersection over that of the union; two empty sets are the same."""
    union = len(one | other)
    return len(one & other) / union if union else 1.0
