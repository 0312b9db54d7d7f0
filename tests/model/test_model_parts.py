"""Parts of the default model and its training: the strongest, associations, counts, calibration."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.linear_model import LogisticRegression

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model import recall
from cogstage.model.fast import recall as fast_recall
from cogstage.model.fast.strongest import strongest
from cogstage.model.recall import Associations
from cogstage.training.calibration import Calibration, sigmoid

NODES = 7
EDGES = st.dictionaries(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(lambda pair: pair[0] < pair[1]),
    st.integers(1, 50),
)


VALUES = st.sampled_from([-np.inf, -2.0, -1.5, 0.0, 0.25, 1.0, 7.0])  # few, so that there are ties


@given(
    hnp.arrays(np.float64, hnp.array_shapes(min_dims=2, max_dims=2, max_side=12), elements=VALUES), st.integers(0, 14)
)
@settings(deadline=None)
def test_strongest_is_a_stable_sort(values: np.ndarray, count: int) -> None:
    expected = np.argsort(-values, axis=1, kind="stable")[:, :count]
    for given_values in (values, values.astype(np.float32)):
        positions = strongest(given_values, count)
        assert np.array_equal(positions, expected)
        assert positions.dtype == np.int64


@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.sampled_from([1, 30, 1 << 22]))
@settings(max_examples=30, deadline=None)
def test_associations_are_the_nearest_candidates_but_never_the_term(seed: int, count: int, chunk: int) -> None:
    rng = np.random.default_rng(seed)
    tower, candidates = rng.normal(size=(15, 4)), np.sort(rng.permutation(15)[:9])
    associations, nodes = Associations(tower, candidates, count), rng.integers(0, 15, 6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall, "CHUNK", chunk)
        ids, similarity = associations.nearest(nodes)
    mean = tower[candidates].mean(0)
    for row, node in enumerate(nodes.tolist()):
        others = [c for c in candidates.tolist() if c != node]
        a = tower[node] - mean
        cosine = {c: float(a @ (tower[c] - mean)) / np.linalg.norm(a) / np.linalg.norm(tower[c] - mean) for c in others}
        wanted = sorted(others, key=lambda c: -cosine[c])[: min(count, len(candidates) - 1)]
        assert ids[row].tolist() == wanted
        assert similarity[row].tolist() == pytest.approx([cosine[c] for c in wanted])
    everyone = associations.nearest(np.arange(15))  # some are computed, some are kept
    assert np.array_equal(everyone[0][nodes], ids)
    assert np.array_equal(everyone[1][nodes], similarity)
    again = Associations(tower, candidates, count).nearest(np.arange(15)[::-1])
    assert np.array_equal(again[0][::-1], everyone[0])


@pytest.mark.parametrize("candidates", [0, 1])
def test_without_other_candidates_there_are_no_associations(candidates: int) -> None:
    associations = Associations(np.ones((3, 2), np.float32), np.arange(candidates), 4)
    ids, similarity = associations.nearest(np.array([0, 2]))
    assert ids.shape == similarity.shape == (2, 0)


def test_threads_that_ask_together_get_the_same_associations() -> None:
    tower = np.random.default_rng(0).normal(size=(400, 8)).astype(np.float32)
    alone, shared = (Associations(tower, np.arange(0, 400, 2), 10) for _ in range(2))
    asked = [np.random.default_rng(seed).integers(0, 400, 50) for seed in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for nodes, (ids, similarity) in zip(asked, pool.map(shared.nearest, asked), strict=True):
            expected = alone.nearest(nodes)
            assert np.array_equal(ids, expected[0])
            np.testing.assert_allclose(similarity, expected[1], atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 40, 1 << 22])
def test_recall_loss_is_the_cross_entropy_of_the_equation(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """L_n of the published model and every gradient, against autograd on dense matrices."""
    monkeypatch.setattr(fast_recall, "CHUNK", chunk)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    ppmi = np.where(rng.random((9, 9)) < 0.4, rng.random((9, 9)), 0.0)
    ppmi[3] = 0.0
    dense = torch.from_numpy(ppmi / np.maximum(ppmi.sum(1, keepdims=True), 1e-30))
    nodes, terms, context = [0, 2, 3, 1], torch.randn(9, 4).double(), torch.randn(9, 4).double()
    one, other = ([part.clone().requires_grad_() for part in (terms, context)] for _ in range(2))
    position, column = dense[nodes].nonzero().T
    loss = fast_recall.cross_entropy(one[0][nodes], one[1], position, column, dense[nodes][position, column])
    loss.backward()
    expected = -(dense[nodes] * (other[0][nodes] @ other[1].T).log_softmax(1)).sum()
    expected.backward()
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    for fast, plain in zip(one, other, strict=True):
        assert fast.grad is not None
        assert plain.grad is not None
        assert torch.allclose(fast.grad, plain.grad, atol=1e-6)


def graph_of(edges: dict[tuple[int, int], int]) -> Graph:
    keys = sorted(edges)
    source, target = (np.array([key[end] for key in keys], np.int32) for end in (0, 1))
    counts = np.array([edges[key] for key in keys], np.int64)
    return Graph(Vocabulary.from_terms([f"t{i}" for i in range(NODES)]), source, target, counts)


@given(EDGES)
@settings(deadline=None)
def test_counts_and_ppmi_equal_the_matrices(edges: dict[tuple[int, int], int]) -> None:
    graph = graph_of(edges)
    counts = PairCounts.from_arrays(PairCounts.from_graph(graph).arrays())
    one, other = (grid.ravel() for grid in np.meshgrid(np.arange(NODES), np.arange(NODES)))
    assert np.array_equal(counts.counts(one, other), graph.matrix.toarray()[one, other])
    assert counts.ppmi(one, other) == pytest.approx(graph.ppmi().toarray()[one, other], abs=1e-6)
    for node in range(NODES):
        row, together = graph.ppmi().toarray()[node], graph.matrix.toarray()[node]
        found = counts.strongest(node, 3)
        others, counted = counts.neighbours(node)
        assert np.array_equal(others, np.flatnonzero(together))
        assert np.array_equal(counted, together[others])
        assert [n * ppmi for _, n, ppmi in found] == pytest.approx(sorted((row * together)[together > 0])[::-1][:3])


def labelled(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Logits whose right slope is 0.2 and right shift is -2."""
    rng = np.random.default_rng(0)
    true = rng.normal(size=count) + 0.7
    return 5 * true - 2, (rng.random(count) < sigmoid(true)).astype(float)


@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_is_a_logistic_regression(weighted: bool) -> None:
    logit, label = labelled(20_000)
    weight = np.random.default_rng(1).uniform(0.1, 3.0, len(label)) if weighted else None
    fitted = Calibration.fit(logit, label, weight)
    reference = LogisticRegression(C=1e12, tol=1e-8).fit(logit[:, None], label, weight)
    assert fitted.slope == pytest.approx(float(reference.coef_[0, 0]), rel=2e-3)  # labels are smoothed by 1 of 10,000
    assert -fitted.slope * fitted.shift == pytest.approx(float(reference.intercept_[0]), abs=5e-3)
    assert fitted.slope == pytest.approx(0.2, rel=0.1)
    assert fitted.shift == pytest.approx(-2, abs=0.4)
    new, truth = labelled(40_000)
    p = sigmoid(fitted.logits(new))[20_000:]
    assert np.mean((p - truth[20_000:]) ** 2) < np.mean((sigmoid(new[20_000:]) - truth[20_000:]) ** 2) - 0.03


def test_calibration_does_not_depend_on_scale_or_shift() -> None:
    logit, label = labelled(2000)
    plain, moved = Calibration.fit(logit, label), Calibration.fit(1000 * logit + 7, label)
    assert moved.logits(1000 * logit + 7) == pytest.approx(plain.logits(logit), abs=1e-3)


@pytest.mark.parametrize("count", [1, 5, 200])
def test_calibration_of_separable_pairs_is_moderate(count: int) -> None:
    """Certain of the right label, but not more certain than so few pairs allow."""
    side = np.linspace(1, 3, count)
    logit = np.concatenate([-side, side])
    label = np.arange(2 * count) >= count
    fitted = Calibration.fit(logit, label)
    assert np.isfinite([fitted.slope, fitted.shift]).all()
    assert abs(fitted.shift) < 0.2
    p = sigmoid(fitted.logits(logit))
    assert (p[label] > 0.5).all()
    assert (p[~label] < 0.5).all()
    wanted = (count + 1) / (count + 2)  # the label of a fact, as Platt smooths it
    assert wanted - 0.05 < p[label].mean() < wanted + 1e-3


def test_calibration_without_both_labels_or_with_equal_logits() -> None:
    assert Calibration.fit(np.arange(5.0), np.ones(5)) == Calibration()
    assert Calibration.fit(np.arange(5.0), np.zeros(5)) == Calibration()
    flat = Calibration.fit(np.full(40, 3.0), np.arange(40) < 10)
    assert sigmoid(flat.logits(np.array([3.0])))[0] == pytest.approx(0.25, abs=0.03)
    backwards = Calibration.fit(np.array([1.0, 2, 3, 4] * 20), np.array([1.0, 1, 0, 0] * 20))
    assert backwards.slope > 0  # a calibration never turns an order round


def test_calibration_weighs_all_kinds_of_negatives_the_same() -> None:
    """Facts and negatives weigh the same; a kind's share does not depend on how many pairs it has."""
    rng = np.random.default_rng(0)
    facts, degree, hard, other = (
        rng.normal(2, 1, 300),
        rng.normal(-1, 1, 900),
        rng.normal(0, 1, 100),
        rng.normal(1, 1, 50),
    )
    logit, label = np.concatenate([facts, degree]), np.arange(1200) < 300
    kinds = {"co-occurring": hard, "other relations": other}
    every = np.concatenate([facts, degree, hard, other])
    weight = np.repeat([1.0, 300 / 900 / 3, 300 / 100 / 3, 300 / 50 / 3], [300, 900, 100, 50])
    expected = Calibration.fit(every, np.arange(len(every)) < 300, weight)
    fitted = Calibration.fit_kinds(logit, label, kinds)
    assert (fitted.slope, fitted.shift) == pytest.approx((expected.slope, expected.shift), rel=1e-6)
    tripled = Calibration.fit_kinds(logit, label, {**kinds, "co-occurring": np.tile(hard, 3)})
    assert (tripled.slope, tripled.shift) == pytest.approx((fitted.slope, fitted.shift), rel=0.01)
    without = Calibration.fit_kinds(logit, label, {"co-occurring": hard, "other relations": np.empty(0)})
    every = np.concatenate([facts, degree, hard])
    weight = np.repeat([1.0, 300 / 900 / 2, 300 / 100 / 2], [300, 900, 100])
    expected = Calibration.fit(every, np.arange(len(every)) < 300, weight)
    assert (without.slope, without.shift) == pytest.approx((expected.slope, expected.shift), rel=1e-6)
    balanced = sigmoid(fitted.logits(facts)).mean() + sum(
        sigmoid(fitted.logits(values)).mean() / 3 for values in (degree, hard, other)
    )
    assert balanced == pytest.approx(1.0, abs=0.01)  # as likely on average as true
