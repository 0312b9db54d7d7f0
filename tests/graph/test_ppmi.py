"""PPMI against the formula written out for dense matrices."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.ppmi import Ppmi, symmetric
from cogstage.graph.vocabulary import Vocabulary


@st.composite
def counts(draw: st.DrawFn) -> np.ndarray:
    size = draw(st.integers(1, 7))
    values = draw(st.lists(st.integers(0, 30), min_size=size * size, max_size=size * size))
    upper = np.triu(np.array(values).reshape(size, size), 1)
    return upper + upper.T


@settings(max_examples=150, deadline=None)
@given(counts(), st.floats(0, 2), st.sampled_from([1.0, 0.75, 0.5]))
def test_ppmi_equals_the_formula(n: np.ndarray, shift: float, smoothing: float) -> None:
    total = n.sum()
    marginal = n.sum(axis=1)
    context = marginal.astype(float) ** smoothing
    expected = np.zeros(n.shape)
    for i, j in zip(*np.nonzero(n), strict=True):
        p_context = context[j] / context.sum()
        expected[i, j] = max(0.0, math.log(n[i, j] / total / (marginal[i] / total * p_context)) - shift)
    source, target = (ends.astype(np.int32) for ends in np.nonzero(np.triu(n)))
    found = Ppmi.from_counts(source, target, n[source, target], len(n), shift, smoothing).csr()
    assert found.has_sorted_indices
    matrix = symmetric(source, target, n[source, target], len(n))
    assert np.array_equal(matrix.toarray(), n)
    assert np.array_equal(matrix.indices, sp.csr_matrix(n).indices)
    assert np.allclose(found.toarray(), expected, atol=1e-9)
    assert (found.data > 0).all()
    if smoothing == 1.0:
        assert np.allclose(found.toarray(), found.toarray().T)


def test_no_counts_no_ppmi() -> None:
    none = np.empty(0, np.int32)
    nothing = Ppmi.from_counts(none, none, none, 4)
    assert nothing.csr().nnz == 0
    assert [len(part) for part in nothing.shares()] == [5, 0, 0]
    assert not (nothing @ np.ones((4, 2))).any()


def test_counts_beyond_32_bits_stay_exact() -> None:
    source, target = np.array([0, 0], np.int32), np.array([1, 2], np.int32)
    matrix = symmetric(source, target, np.array([2**40, 3]), 3)
    assert matrix.dtype == np.int64
    assert matrix[1, 0] == 2**40


@pytest.mark.parametrize(("most", "kind"), [(2**31 - 1, np.int32), (2**31, np.int64)])
def test_counts_are_read_with_as_many_bits_as_they_need(most: int, kind: type, tmp_path: Path) -> None:
    source, target = np.array([0, 0], np.int32), np.array([1, 2], np.int32)
    Graph(Vocabulary.from_terms(["a", "b", "c"]), source, target, np.array([most, 3])).save(tmp_path / "graph")
    count = Graph.load(tmp_path / "graph").count
    assert count.dtype == kind
    assert count.tolist() == [most, 3]


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n = np.triu(rng.integers(0, 4, (40, 40)), 1)
    source, target = (ends.astype(np.int32) for ends in np.nonzero(n))
    lazy, dense = Ppmi.from_counts(source, target, n[source, target], 40, 0.1, 0.75), rng.normal(size=(40, 3))
    whole, product, shares = lazy.csr(), lazy @ dense, lazy.shares()
    monkeypatch.setattr("cogstage.graph.ppmi.CHUNK", 7)
    assert (whole != lazy.csr()).nnz == 0
    assert np.array_equal(product, lazy @ dense)
    assert all(map(np.array_equal, shares, lazy.shares()))


@settings(max_examples=100, deadline=None)
@given(counts(), st.floats(0, 1), st.sampled_from([1.0, 0.75]), st.sampled_from([0.0, 3.0]))
def test_what_is_never_held_equals_what_is(n: np.ndarray, shift: float, smoothing: float, scale: float) -> None:
    """Products and shares computed from half the counts, against the matrix itself: the same bits."""
    source, target = (ends.astype(np.int32) for ends in np.nonzero(np.triu(n)))
    half = source, target, n[source, target], len(n)
    lazy = Ppmi.from_values(*half, scale, shift) if scale else Ppmi.from_counts(*half, shift, smoothing)
    matrix = lazy.csr()
    if scale:
        assert np.array_equal(matrix.toarray(), np.maximum(n / scale - shift, 0) * (n > 0))
    dense = np.random.default_rng(0).normal(size=(len(n), 3))
    assert np.array_equal(lazy @ dense, matrix @ dense)
    assert np.array_equal(lazy.T @ dense, matrix.T @ dense)
    total = np.asarray(matrix.sum(axis=1)).ravel()
    expected = (matrix.data * np.repeat(1 / np.where(total > 0, total, 1), np.diff(matrix.indptr))).astype("f4")
    pointer, columns, values = lazy.shares()
    assert np.array_equal(pointer, matrix.indptr)
    assert np.array_equal(columns, matrix.indices)
    assert np.array_equal(values, expected)
