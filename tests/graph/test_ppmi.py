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
from cogstage.graph.ppmi import ppmi_from_counts, ppmi_from_values, symmetric
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
    matrix = symmetric(source, target, n[source, target], len(n))
    found = ppmi_from_counts(matrix, shift, smoothing)
    assert found.has_sorted_indices
    assert np.array_equal(matrix.toarray(), n)
    assert np.array_equal(matrix.indices, sp.csr_matrix(n).indices)
    assert np.allclose(found.toarray(), expected, atol=1e-9)
    assert (found.data > 0).all()
    if smoothing == 1.0:
        assert np.allclose(found.toarray(), found.toarray().T)


def test_no_counts_no_ppmi() -> None:
    none = np.empty(0, np.int32)
    assert ppmi_from_counts(symmetric(none, none, none, 4)).nnz == 0


def test_given_values_are_scaled_and_shifted() -> None:
    values = symmetric(np.array([0, 1], np.int32), np.array([1, 2], np.int32), np.array([300, 50]), 3)
    dense = ppmi_from_values(values, 100.0, 1.0).toarray()
    assert np.allclose(dense, [[0, 2, 0], [2, 0, 0], [0, 0, 0]])


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
