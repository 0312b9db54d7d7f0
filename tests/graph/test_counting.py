"""Counting against a count by hand, on random small corpora."""

from __future__ import annotations

from collections import Counter as Tally
from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.graph.counting import Counter, Rows, count_pairs

rows_of_terms = st.lists(st.tuples(st.integers(0, 6), st.integers(-3, 3), st.integers(0, 9)), max_size=80)


def by_hand(rows: list[tuple[int, int, int]]) -> tuple[Tally, Tally]:
    units: dict[tuple[int, int], set[int]] = {}
    for group, unit, term in rows:
        units.setdefault((group, unit), set()).add(term)
    in_units: Tally = Tally()
    in_groups: dict[tuple[int, int], set[int]] = {}
    for (group, _unit), terms in units.items():
        for pair in combinations(sorted(terms), 2):
            in_units[pair] += 1
            in_groups.setdefault(pair, set()).add(group)
    return in_units, Tally({pair: len(groups) for pair, groups in in_groups.items()})


def as_rows(rows: list[tuple[int, int, int]]) -> Rows:
    columns = np.array(rows, np.int64).reshape(-1, 3)
    return Rows.from_columns(columns[:, 0], columns[:, 1], columns[:, 2])


@settings(max_examples=150, deadline=None)
@given(rows_of_terms, st.integers(1, 40), st.integers(1, 3))
def test_counts_equal_a_count_by_hand(rows: list[tuple[int, int, int]], slots: int, threads: int) -> None:
    in_units, in_groups = by_hand(rows)
    counter = Counter(as_rows(rows).distinct(), 10, with_groups=True, threads=threads)
    found, groups, order = {}, {}, []
    for edges in counter.edges(slots):
        order += list(zip(edges.source.tolist(), edges.target.tolist(), strict=True))
        for source, target, count, of in zip(edges.source, edges.target, edges.count, edges.groups, strict=True):
            found[(int(source), int(target))], groups[(int(source), int(target))] = int(count), int(of)
    assert order == sorted(order)
    assert found == dict(in_units)
    assert groups == dict(in_groups)


@settings(max_examples=80, deadline=None)
@given(rows_of_terms)
def test_matrix_equals_a_dense_product(rows: list[tuple[int, int, int]]) -> None:
    dense = np.zeros((64, 10), np.int64)
    unit = np.array([group * 7 + unit + 3 for group, unit, _ in rows], np.int64)
    term = np.array([term for *_, term in rows], np.int64)
    dense[unit, term] = 1
    assert np.array_equal(count_pairs(unit, term, 10).toarray(), np.triu(dense.T @ dense, 1))


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2**64 - 1), st.integers(-5, 5), st.integers(0, 3)), max_size=200))
def test_rows_come_sorted_and_distinct(rows: list[tuple[int, int, int]]) -> None:
    rows = rows + rows[::3]
    group, unit, term = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    distinct = Rows.from_columns(np.array(group, np.uint64), np.array(unit), np.array(term)).distinct()
    there = list(zip(distinct.group.tolist(), distinct.unit.tolist(), distinct.term.tolist(), strict=True))
    assert there == sorted(set(rows))


def test_many_terms_need_more_than_one_block_of_the_bitmap() -> None:
    rng = np.random.default_rng(3)
    unit, term = rng.integers(0, 50, 3000), rng.integers(0, 20_000, 3000)
    dense = np.zeros((50, 20_000), np.int32)
    dense[unit, term] = 1
    matrix = count_pairs(unit, term, 20_000).tocoo()
    for row, column, count in list(zip(matrix.row, matrix.col, matrix.data, strict=True))[::997]:
        assert row < column
        assert count == int(dense[:, row] @ dense[:, column])
    sizes = dense.sum(axis=1).astype(np.int64)
    assert matrix.data.sum() == int((sizes * (sizes - 1) // 2).sum())
