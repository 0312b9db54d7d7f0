"""All figures of one scorer on one split: classification, calibration, ranking and populations, with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cogstage.evaluation.metrics import (
    BALANCED,
    METRICS,
    POPULATIONS,
    balanced_threshold,
    f1_at,
    replicate_metrics,
    score,
)
from cogstage.evaluation.population_figures import kind_auroc
from cogstage.evaluation.populations import KINDS, PopulationLogits, Populations, score_populations
from cogstage.evaluation.ranking import RANKING, Scorer, ranks, summarise
from cogstage.knowledge.dataset import Dataset, Pairs, RankingQuestions
from cogstage.statistics import interval, log_odds, replicate

ALL_METRICS = (METRICS[0], BALANCED, *METRICS[1:], *RANKING, *POPULATIONS)
"""Every metric of :func:`measure`, in the order of tables."""


@dataclass(frozen=True)
class Measurement:
    """Metrics of :func:`measure`, with the probabilities and bootstrap values behind them."""

    metrics: dict[str, Any]
    """By name: ``{"value": ..., "interval": [low, high]}``."""
    probability: np.ndarray
    """Of each pair of the split, (M,)."""
    replicates: dict[str, np.ndarray]
    """The bootstrap values behind each interval, (B,)."""
    logits: PopulationLogits | None = None
    """Log-odds of the populations, if they were given."""


def measure(
    data: Dataset,
    relation: str,
    scorer: Scorer,
    split: str = "test",
    ranking_heads: int = 0,
    populations: Populations | None = None,
) -> Measurement:
    """Metrics of a scorer on the pairs of a split; ``ranking_heads`` heads at most are ranked (0: none).

    The threshold of the balanced F1 is the one at which as many dev pairs are said yes as are true.
    """
    pairs = data.pairs(relation, split)
    probability = np.asarray(scorer(pairs.head, pairs.tail), np.float64)
    values = score(pairs.label, probability)
    replicates = replicate_metrics(pairs.head, pairs.label, probability)
    dev = data.pairs(relation, "dev")
    on_dev = probability if split == "dev" else np.asarray(scorer(dev.head, dev.tail), np.float64)
    threshold = balanced_threshold(dev.label, on_dev)
    values[BALANCED] = float(f1_at(pairs.label, probability, threshold, np.ones((1, len(pairs))))[0])
    replicates |= replicate(lambda w: {BALANCED: f1_at(pairs.label, probability, threshold, w)}, pairs.head)
    questions = data.ranking(relation, split) if ranking_heads else None
    if questions is not None and len(questions.head):
        questions = sample_questions(questions, ranking_heads)
        rank = ranks(questions, scorer)
        values |= {name: float(value[0]) for name, value in summarise(rank).items()}
        replicates |= replicate(lambda weights: summarise(rank, weights), questions.head)
    logits = None
    if populations is not None:
        logits = score_populations(lambda head, tail, _: log_odds(scorer(head, tail)), populations, relation)
        for kind, name in zip(KINDS, POPULATIONS, strict=True):
            values[name], replicates[name] = kind_auroc(populations, logits, kind, relation)
    metrics = {
        name: {"value": values[name], "interval": list(interval(replicates[name]))}
        for name in ALL_METRICS
        if name in values
    }
    return Measurement(metrics, probability, replicates, logits)


def sample_pairs(data: Dataset, relation: str, split: str, most: int, rng: np.random.Generator) -> Pairs:
    """At most ``most`` labelled pairs of a split, in their order."""
    given = data.pairs(relation, split)
    rows = np.sort(rng.choice(len(given), min(most, len(given)), replace=False))
    return Pairs(given.head[rows], given.tail[rows], given.label[rows])


def sample_questions(questions: RankingQuestions, heads: int, seed: int = 0) -> RankingQuestions:
    """The questions of at most ``heads`` heads, the same for every method."""
    distinct = np.unique(questions.head)
    if len(distinct) <= heads:
        return questions
    kept = np.random.default_rng(seed).choice(distinct, heads, replace=False)
    rows = np.flatnonzero(np.isin(questions.head, kept))
    return RankingQuestions(
        questions.head[rows], questions.candidates, questions.answer[rows], tuple(questions.known[i] for i in rows)
    )
