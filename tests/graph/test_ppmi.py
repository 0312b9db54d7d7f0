"""PPMI against the formula written out for dense matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.graph.ppmi import ppmi, symmetric


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
    found = ppmi(source, target, n[source, target], len(n), shift, smoothing)
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
    assert ppmi(none, none, none, 4).nnz == 0


def test_counts_beyond_32_bits_stay_exact() -> None:
    source, target = np.array([0, 0], np.int32), np.array([1, 2], np.int32)
    matrix = symmetric(source, target, np.array([2**40, 3]), 3)
    assert matrix.dtype == np.int64
    assert matrix[1, 0] == 2**40


def test_chunks_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n = np.triu(rng.integers(0, 4, (40, 40)), 1)
    source, target = (ends.astype(np.int32) for ends in np.nonzero(n))
    whole = ppmi(source, target, n[source, target], 40, 0.1, 0.75)
    monkeypatch.setattr("cogstage.graph.ppmi.CHUNK", 7)
    parts = ppmi(source, target, n[source, target], 40, 0.1, 0.75)
    assert (whole != parts).nnz == 0
