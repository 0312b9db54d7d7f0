"""Filtered ranking: the rank of the true tail among the tails of the relation, without other true tails."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cogstage.errors import CogstageError
from cogstage.knowledge.dataset import RankingQuestions
from cogstage.progress import SILENT, Progress

Scorer = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""(head ids, tail ids) -> a score for each pair, higher for likelier."""

HITS = (1, 3, 10)
RANKING = ("mrr", *(f"hits@{k}" for k in HITS))
BATCH_PAIRS = 65_536


def ranks(
    questions: RankingQuestions, scorer: Scorer, batch_pairs: int = BATCH_PAIRS, progress: Progress = SILENT
) -> np.ndarray:
    """The rank of each true tail, (Q,) float64: 1 is best, ties share their mean rank.

    Each head is scored once against all candidates, at most ``batch_pairs`` pairs (or one head) in a call.
    """
    result = np.empty(len(questions.head), np.float64)
    heads, belongs = np.unique(questions.head, return_inverse=True)
    by_head = np.split(np.argsort(belongs, kind="stable"), np.cumsum(np.bincount(belongs))[:-1]) if len(heads) else []
    width = len(questions.candidates)
    at_once = max(1, batch_pairs // max(width, 1))
    for start in range(0, len(heads), at_once):
        block = heads[start : start + at_once]
        flat = np.asarray(scorer(np.repeat(block, width), np.tile(questions.candidates, len(block))), np.float64)
        if flat.shape != (len(block) * width,) or np.isnan(flat).any():
            raise CogstageError("a method returned NaN for a pair of the ranking")
        for scores, asked in zip(flat.reshape(len(block), width), by_head[start : start + at_once], strict=True):
            for question in asked.tolist():
                result[question] = _rank(scores, int(questions.answer[question]), questions.known[question])
        progress.advance(len(block))
    return result


def _rank(scores: np.ndarray, answer: int, known: np.ndarray) -> float:
    """1 + those above + half of those equal, the other true tails not counted."""
    own = scores[answer]
    above = np.count_nonzero(scores > own) - np.count_nonzero(scores[known] > own)
    equal = np.count_nonzero(scores == own) - 1 - np.count_nonzero(scores[known] == own)
    return float(1.0 + above + equal / 2.0)


def summarise(rank: np.ndarray, weights: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """MRR and Hits@1/3/10 for each row of ``weights`` (B, Q); without weights one row of ones."""
    weights = np.ones((1, len(rank))) if weights is None else np.asarray(weights, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        total = weights.sum(axis=1)
        values = {"mrr": weights @ (1.0 / rank) / total}
        for k in HITS:
            values[f"hits@{k}"] = weights @ (rank <= k).astype(np.float64) / total
    return values
