"""All figures of one scorer on one split: classification, calibration and ranking, each with its interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cogstage.evaluation.metrics import METRICS, score
from cogstage.evaluation.ranking import RANKING, Scorer, ranks, summarise
from cogstage.evaluation.significance import interval, replicate, replicate_metrics
from cogstage.knowledge.dataset import Dataset, RankingQuestions


@dataclass(frozen=True)
class Measurement:
    """Metrics of :func:`measure`, with the probabilities and bootstrap values behind them."""

    metrics: dict[str, Any]
    """By name: ``{"value": ..., "interval": [low, high]}``."""
    probability: np.ndarray
    """Of each pair of the split, (M,)."""
    replicates: dict[str, np.ndarray]
    """The bootstrap values behind each interval, (B,)."""


def measure(data: Dataset, relation: str, scorer: Scorer, split: str = "test", ranking_heads: int = 0) -> Measurement:
    """Metrics of a scorer on the pairs of a split; ``ranking_heads`` heads at most are ranked (0: none)."""
    pairs = data.pairs(relation, split)
    probability = np.asarray(scorer(pairs.head, pairs.tail), np.float64)
    values = score(pairs.label, probability)
    replicates = replicate_metrics(pairs.head, pairs.label, probability)
    questions = data.ranking(relation, split) if ranking_heads else None
    if questions is not None and len(questions.head):
        questions = sample_questions(questions, ranking_heads)
        rank = ranks(questions, scorer)
        values |= {name: float(value[0]) for name, value in summarise(rank).items()}
        replicates |= replicate(lambda weights: summarise(rank, weights), questions.head)
    metrics = {
        name: {"value": values[name], "interval": list(interval(replicates[name]))}
        for name in (*METRICS, *RANKING)
        if name in values
    }
    return Measurement(metrics, probability, replicates)


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
