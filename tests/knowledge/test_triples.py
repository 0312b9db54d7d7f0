"""The index of triples against plain sets, and the usual types against counting by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogstage.triples import USUAL_SHARE, TripleIndex, Triples, UsualTypes

NODES, RELATIONS = 6, 3
FACTS = st.lists(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, RELATIONS - 1), st.integers(0, NODES - 1)), max_size=25
)


def triples_of(facts: list[tuple[int, int, int]]) -> Triples:
    rows = np.array(facts, np.int64).reshape(-1, 3)
    return Triples(rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int16), rows[:, 2].astype(np.int32))


def fold_of(head: int, tail: int) -> int:
    return (min(head, tail) * 7 + max(head, tail)) % 3


@given(FACTS, st.sampled_from([None, 0, 1, 2]))
def test_membership_equals_a_set_with_and_without_a_hidden_fold(
    facts: list[tuple[int, int, int]], hidden: int | None
) -> None:
    folds = np.array([fold_of(h, t) for h, _, t in facts], np.int64)
    index = TripleIndex(triples_of(facts), RELATIONS, NODES, folds)
    seen = [(h, r, t) for h, r, t in facts if hidden is None or fold_of(h, t) != hidden]
    known = {(h, r, t) for h, r, t in seen} | {(t, r + RELATIONS, h) for h, r, t in seen}
    head, relation, tail = np.meshgrid(np.arange(NODES), np.arange(2 * RELATIONS), np.arange(NODES), indexing="ij")
    expected = np.vectorize(lambda h, r, t: (h, r, t) in known)(head, relation, tail)
    np.testing.assert_array_equal(index.contains(head, relation, tail, hidden), expected)
    np.testing.assert_array_equal(index.relations_of(head[:, 0], tail[:, 0], hidden), np.moveaxis(expected, 1, 2))
    if hidden is None:
        np.testing.assert_array_equal(index.has_relation(head[:, 0], tail[:, 0]), expected.any(axis=1))
        assert len(index) == len(set(facts))


@given(FACTS)
def test_the_arrays_for_kernels_list_each_node_s_pairs_in_order(facts: list[tuple[int, int, int]]) -> None:
    index = TripleIndex(triples_of(facts), RELATIONS, NODES)
    joined = sorted({(h, t) for h, _, t in facts} | {(t, h) for h, _, t in facts})
    listed = [
        (node, int(other)) for node in range(NODES) for other in index.other[index.start[node] : index.start[node + 1]]
    ]
    assert listed == joined
    assert not index.table[-1].any()
    assert index.folds.tolist() == [-1] * (len(joined) + 1)


@given(FACTS, st.sampled_from([None, 0, 1, 2]), st.integers(0, 2 * RELATIONS - 1))
def test_tails_of_a_relation_and_who_holds_it_with_them(
    facts: list[tuple[int, int, int]], hidden: int | None, relation: int
) -> None:
    folds = np.array([fold_of(h, t) for h, _, t in facts], np.int64)
    index = TripleIndex(triples_of(facts), RELATIONS, NODES, folds)
    both = {(h, r, t) for h, r, t in facts} | {(t, r + RELATIONS, h) for h, r, t in facts}
    known = {(h, t) for h, r, t in both if r == relation and fold_of(h, t) != hidden}
    tails = index.tails(relation, hidden)
    assert sorted(tails.tolist()) == sorted(t for _, t in known)
    asked = np.append(tails, [0, 0])
    heads, position = index.heads_of(relation, asked, hidden)
    found = sorted(zip(heads.tolist(), position.tolist(), strict=True))
    assert found == sorted((h, n) for n, t in enumerate(asked.tolist()) for h, other in known if other == t)


def test_asking_does_not_change_the_index() -> None:
    index = TripleIndex(triples_of([(0, 0, 1)]), RELATIONS, NODES, np.array([1]))
    index.relations_of(np.array([0]), np.array([1]), hidden=1)
    assert index.contains(np.array([0]), np.array([0]), np.array([1])).all()


def test_facts_of_two_nodes_share_a_fold() -> None:
    with pytest.raises(ValueError, match="fold"):
        TripleIndex(triples_of([(0, 0, 1), (1, 2, 0)]), RELATIONS, NODES, np.array([0, 1]))


@given(FACTS)
def test_keys_are_distinct(facts: list[tuple[int, int, int]]) -> None:
    triples = triples_of(facts)
    assert len(set(triples.keys(NODES).tolist())) == len(set(facts))
    assert len(Triples.join([triples, triples])) == 2 * len(facts)
    assert len(Triples.join([])) == 0


def test_a_pair_of_types_is_usual_from_one_in_a_hundred_on() -> None:
    assert USUAL_SHARE == 0.01
    types = ["drug", "disorder", "symptom", ""]
    once = UsualTypes(types, triples_of([(0, 0, 1)] * 99 + [(0, 0, 2)]), 1)
    assert once.fit(0, 0, 2) is True
    rarer = UsualTypes(types, triples_of([(0, 0, 1)] * 100 + [(0, 0, 2)]), 1)
    assert rarer.fit(0, 0, 2) is False


def test_usual_types_of_heads_and_tails_have_their_share_of_the_facts() -> None:
    types = ["drug", "disorder", "symptom", "gene", ""]
    facts = [(0, 0, 1)] * 60 + [(0, 0, 2)] * 30 + [(3, 0, 1)] + [(0, 0, 4)] * 9 + [(2, 1, 1)]
    usual = UsualTypes(types, triples_of(facts), 3)
    assert usual.of_heads(0) == {"drug": 0.99, "gene": 0.01}
    assert usual.of_heads(0 + 3) == {"disorder": 0.61, "symptom": 0.3}
    assert list(usual.of_heads(3)) == ["disorder", "symptom"]  # the commonest first
    assert (usual.of_heads(1), usual.of_heads(4)) == ({"symptom": 1.0}, {"disorder": 1.0})
    assert (usual.of_heads(2), usual.of_heads(5)) == ({}, {})  # a relation without facts
    rarer = UsualTypes(types, triples_of([*facts[:100], facts[0]]), 3)
    assert rarer.of_heads(0) == {"drug": 100 / 101}


def test_types_are_read_backwards_for_inverses_and_unknown_ones_allow_all() -> None:
    usual = UsualTypes(["drug", "disorder", ""], triples_of([(0, 0, 1)]), 1)
    assert (usual.fit(0, 0, 1), usual.fit(1, 0, 0), usual.fit(1, 1, 0), usual.fit(2, 0, 1)) == (True, False, True, None)
    head, tail = np.meshgrid(np.arange(3), np.arange(3), indexing="ij")
    allowed = usual.allowed(head, tail)
    assert allowed.shape == (3, 3, 2)
    assert allowed[0, 1].tolist() == [True, False]
    assert allowed[1, 0].tolist() == [False, True]
    assert not allowed[0, 0].any()
    assert allowed[2].all()
    assert allowed[:, 2].all()
