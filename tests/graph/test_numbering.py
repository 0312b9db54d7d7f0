"""Index arrays against plain loops."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cogstage.numbering import every_pair, new_numbers, within_groups


@given(st.lists(st.integers(0, 4), max_size=8))
def test_numbers_within_groups(lengths: list[int]) -> None:
    expected = [number for length in lengths for number in range(length)]
    assert within_groups(np.array(lengths, np.int64)).tolist() == expected


@given(st.sets(st.integers(0, 9)))
def test_new_numbers_of_what_is_kept(kept: set[int]) -> None:
    order = sorted(kept)
    expected = [order.index(number) if number in kept else -1 for number in range(10)]
    assert new_numbers(np.array(order, np.int64), 10).tolist() == expected


@given(st.lists(st.lists(st.integers(0, 9), max_size=3), min_size=1, max_size=5), st.data())
def test_every_member_of_one_list_with_every_member_of_another(lists: list[list[int]], data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.tuples(*[st.integers(0, len(lists) - 1)] * 2), max_size=4))
    starts = np.cumsum([0, *map(len, lists)])
    flat = np.array([member for members in lists for member in members], np.int64)
    source, target = np.array(asked, np.int64).reshape(-1, 2).T
    expected = [(row, a, b) for row, (s, t) in enumerate(asked) for a in lists[s] for b in lists[t]]
    found = every_pair(starts, flat, source, target)
    assert list(zip(*(column.tolist() for column in found), strict=True)) == expected
