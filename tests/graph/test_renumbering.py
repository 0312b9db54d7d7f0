"""Keys under new numbers, against the plain meaning of the words."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cogstage.graph.edges import Edges
from cogstage.graph.renumbering import Renumbering

key = st.sampled_from("abcdef")
parent = st.sampled_from("abcxyz")


@given(st.lists(key), st.dictionaries(key, st.lists(parent, min_size=1, max_size=3, unique=True).map(tuple)), st.data())
def test_every_number_becomes_the_ranks_of_its_parents(
    keys: list[str], parents: dict[str, tuple[str, ...]], data: st.DataObject
) -> None:
    made = Renumbering.from_keys(keys, parents)
    meant = [parents.get(key, (key,)) for key in keys]
    assert made.keys == sorted({key for each in meant for key in each})
    assert made.one_to_one == all(len(each) == 1 for each in meant)
    numbers = data.draw(st.lists(st.integers(0, len(keys) - 1))) if keys else []
    place, new = made.spread(np.array(numbers, np.int64))
    expected = [(at, key) for at, number in enumerate(numbers) for key in meant[number]]
    assert [(at, made.keys[to]) for at, to in zip(place.tolist(), new.tolist(), strict=True)] == expected


def test_edges_turn_upward_and_their_order_with_them() -> None:
    edges = Edges(
        np.array([3, 1]), np.array([2, 4]), np.array([5, 6]), None, np.array([[1, 2, 3], [4, 5, 6]], np.int32)
    )
    turned = edges.upward()
    assert (turned.source.tolist(), turned.target.tolist(), turned.count.tolist()) == ([2, 1], [3, 4], [5, 6])
    assert turned.order is not None
    assert turned.order.tolist() == [[2, 1, 3], [4, 5, 6]]
