"""Filtered ranks against scipy's average ranks of the candidates that remain."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from cogstage.errors import CogstageError
from cogstage.evaluation import ranking
from cogstage.knowledge.dataset import RankingQuestions


@st.composite
def questions(draw: st.DrawFn) -> tuple[RankingQuestions, np.ndarray]:
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    n_heads, n_tails = draw(st.integers(1, 5)), draw(st.integers(1, 12))
    holds = rng.random((n_heads, n_tails)) < 0.4
    holds[0, 0] = True
    heads, answers = np.nonzero(holds)
    known = tuple(
        np.array([t for t in range(n_tails) if holds[h, t] and t != a], np.int32)
        for h, a in zip(heads, answers, strict=True)
    )
    scores = rng.integers(0, draw(st.integers(1, 6)), size=(n_heads, n_tails)).astype(float)
    candidates = np.arange(100, 100 + n_tails, dtype=np.int32)
    return RankingQuestions(heads.astype(np.int32), candidates, answers.astype(np.int32), known), scores


@given(questions(), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_ranks_agree_with_rankdata(asked: tuple[RankingQuestions, np.ndarray], batch: int) -> None:
    question, scores = asked
    sizes: list[int] = []

    def scorer(head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        sizes.append(len(head))
        return scores[head, tail - 100]

    found = ranking.ranks(question, scorer, batch_pairs=batch)
    assert max(sizes) <= max(batch, len(question.candidates))
    assert sum(sizes) == len(np.unique(question.head)) * len(question.candidates)
    for i in range(len(question.head)):
        left = np.setdiff1d(np.arange(len(question.candidates)), question.known[i])
        average = rankdata(-scores[question.head[i], left], method="average")
        assert found[i] == average[np.flatnonzero(left == question.answer[i])[0]]
    values = ranking.summarise(ranking.ranks(question, scorer))
    assert values["mrr"][0] == pytest.approx(np.mean(1 / found))
    assert values["hits@3"][0] == pytest.approx(np.mean(found <= 3))


def test_a_constant_scorer_gains_nothing() -> None:
    question = RankingQuestions(
        np.zeros(1, np.int32), np.arange(11, dtype=np.int32), np.array([3], np.int32), (np.array([5]),)
    )
    values = ranking.summarise(ranking.ranks(question, lambda head, tail: np.zeros(len(head))))
    assert values["mrr"][0] == pytest.approx(1 / 5.5)  # the middle of the ten that remain
    assert values["hits@1"][0] == 0.0


def test_a_score_that_is_no_number_is_an_error() -> None:
    question = RankingQuestions(
        np.zeros(1, np.int32), np.arange(3, dtype=np.int32), np.array([0], np.int32), (np.array([1]),)
    )
    with pytest.raises(CogstageError, match="returned NaN"):
        ranking.ranks(question, lambda head, tail: np.full(len(head), np.nan))
