"""PPMI against the formula written out for dense matrices."""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.graph.ppmi import ppmi


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
    found = ppmi(sp.csr_matrix(n), shift, smoothing)
    assert np.allclose(found.toarray(), expected, atol=1e-9)
    assert (found.data > 0).all()
    if smoothing == 1.0:
        assert np.allclose(found.toarray(), found.toarray().T)


def test_no_counts_no_ppmi() -> None:
    assert ppmi(sp.csr_matrix((4, 4))).nnz == 0
