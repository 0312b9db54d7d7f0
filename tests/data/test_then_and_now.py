"""The example that looks from 1979 to today: its split by time and its ranks, against counting by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from load_script import load_script

from cogstage.data import embedded
from cogstage.knowledge.facts import Facts

example = load_script("examples/then_and_now.py")


def test_nothing_of_today_reaches_the_training_facts() -> None:
    facts = Facts.from_statements(
        [
            ("a", "may_treat", "x", embedded.THEN),
            ("b", "may_treat", "x", f"NDF-RT;{embedded.THEN}"),
            ("b", "may_treat", "y", "NDF-RT"),
            ("x", "causes", "a", "BC5CDR"),  # the pair was stated then, the other way round
            ("new", "may_treat", "x", "NDF-RT"),  # a term that nobody counted then
        ]
    )
    then, today = example.split_by_time(facts, ["a", "b", "x", "y"])
    assert list(zip(then.head, then.tail, strict=True)) == [("a", "x"), ("b", "x")]
    assert today == {"may_treat": {("b", "y")}}


def test_the_embedded_set_has_enough_of_both_times() -> None:
    graph = embedded.graph_1977_1979()
    then, today = example.split_by_time(embedded.facts(), graph.vocabulary.term)
    for relation in example.RELATIONS:
        assert then.relations[relation] >= 100
        assert len(today[relation]) >= example.MOST


@given(st.floats(0, 1), st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_position_is_the_share_that_ranks_lower(score: float, others: list[float]) -> None:
    lower, same = sum(other < score for other in others), sum(other == score for other in others)
    assert example.position(score, np.array(others)) == pytest.approx((lower + same / 2) / len(others))


def test_ranks_leave_out_other_true_tails() -> None:
    chance = {10: 0.9, 11: 0.8, 12: 0.3, 13: 0.1}
    ranked = example.rank(
        [(1, 11), (1, 13)],
        {(1, 10), (1, 11), (1, 13)},
        np.array([10, 11, 12, 13]),
        Counter({12: 5, 13: 9}),
        lambda head, tail: np.array([chance[t] for t in tail.tolist()]),
    )
    # only tail 12 is false of head 1: 11 ranks above it, 13 below; by popularity it is the other way round
    assert [(r.tail, r.position, r.popularity, r.probability) for r in ranked] == [
        (11, 1.0, 0.0, 0.8),
        (13, 0.0, 1.0, 0.1),
    ]
