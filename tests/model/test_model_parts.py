"""Parts of the default model and its training: optimiser, calibration, associations, counts, recall."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.utils.extmath import randomized_svd

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.ppmi import Ppmi
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.fast import recall as fast_recall
from cogstage.model.fast.associations import Associations
from cogstage.model.fast.svd import truncated_svd
from cogstage.model.recall import Recall, RecallTargets
from cogstage.training.calibration import Calibration, sigmoid
from cogstage.training.distributed import Processes
from cogstage.training.optimiser import Adam

NODES = 7
EDGES = st.dictionaries(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(lambda pair: pair[0] < pair[1]),
    st.integers(1, 50),
)


def test_lazy_adam_is_adam_on_touched_rows() -> None:
    torch.manual_seed(0)
    start, gradients = torch.randn(6, 3), torch.randn(5, 2, 3)
    lazy = torch.nn.Parameter(start.clone())
    dense = torch.nn.Parameter(start[[1, 4]].clone())
    adam = Adam([("table", lazy)], 0.1, 0.0, {"table": 0.2}, Processes())
    reference = torch.optim.AdamW([dense], lr=0.1, weight_decay=0.2)
    for gradient in gradients:
        lazy.grad = torch.sparse_coo_tensor(torch.tensor([[1, 4]]), gradient, (6, 3))
        adam.step()
        dense.grad = gradient.clone()
        reference.step()
    assert torch.allclose(lazy[[1, 4]], dense, atol=1e-6)
    assert torch.equal(lazy[[0, 2, 3, 5]], start[[0, 2, 3, 5]])


@pytest.mark.parametrize("shape", [(2,), (2, 3), (2, 3, 4)])
def test_a_decision_head_learns_as_if_alone(shape: tuple[int, ...]) -> None:
    """Head 1 gets a gradient in one step of four: what it becomes is what four steps of its own would make of it."""
    torch.manual_seed(0)
    start, gradients = torch.randn(shape, dtype=torch.float64), torch.randn(16, *shape[1:], dtype=torch.float64)
    both = torch.nn.Parameter(start.clone())
    alone = torch.nn.Parameter(start[1:].clone())
    adam = Adam([("heads", both)], 0.1, 0.0, {"heads": 0.2}, Processes(), ["heads"])
    reference = torch.optim.AdamW([alone], lr=0.1, weight_decay=0.2)
    for number, gradient in enumerate(gradients):
        row = int(number % 4 == 3)
        both.grad = torch.zeros_like(start)
        both.grad[row] = gradient
        adam.step()
        if row:
            alone.grad = gradient[None].clone()
            reference.step()
    assert torch.allclose(both[1:], alone, atol=1e-6)


def test_gradient_is_clipped() -> None:
    parameter = torch.nn.Parameter(torch.zeros(3))
    adam = Adam([("p", parameter)], 0.1, 1.0, {}, Processes())
    parameter.grad = torch.tensor([3.0, 4.0, 0.0])
    gradient = parameter.grad
    assert adam.step() == pytest.approx(5.0)
    assert float(gradient.norm()) == pytest.approx(1.0, abs=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
@settings(max_examples=30, deadline=None)
def test_associations_are_the_likest_candidates_but_never_the_term(seed: int, count: int) -> None:
    torch.manual_seed(seed)
    tower, candidates = torch.randn(15, 4, dtype=torch.float64), torch.randperm(15)[:9].sort().values
    table = Associations(tower, candidates, count)
    nodes = torch.randint(0, 15, (6,))
    ids, likeness = table.find(nodes)
    mean = tower[candidates].mean(0)
    for row, node in enumerate(nodes.tolist()):
        others = [c for c in candidates.tolist() if c != node]
        a = tower[node] - mean
        cosine = {c: float(a @ (tower[c] - mean) / (a.norm() * (tower[c] - mean).norm())) for c in others}
        wanted = sorted(others, key=lambda c: -cosine[c])[: min(count, len(candidates) - 1)]
        assert ids[row].tolist() == wanted
        assert likeness[row].tolist() == pytest.approx([cosine[c] for c in wanted])
    again, _ = table.find(nodes.flip(0))
    assert torch.equal(again, ids.flip(0))


@pytest.mark.parametrize("chunk", [1, 40, 1 << 22])
def test_recall_loss_is_the_cross_entropy_of_the_equation(chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """L_n, its mean over the batch, and every gradient, against autograd on dense matrices."""
    monkeypatch.setattr(fast_recall, "CHUNK", chunk)
    torch.manual_seed(0)
    rng = np.random.default_rng(0)
    ppmi = sp.csr_matrix(np.where(rng.random((9, 9)) < 0.4, rng.random((9, 9)), 0.0))
    shares = sp.csr_matrix(ppmi.toarray() / np.maximum(ppmi.toarray().sum(1, keepdims=True), 1e-30))
    targets = RecallTargets(shares.indptr, shares.indices, shares.data.astype(np.float32))
    recall = Recall(9, 4).double()
    nodes = targets.nodes[[0, 2, 3, 1]]
    loss = recall.loss(recall.term[torch.from_numpy(nodes)], targets.rows(nodes))
    loss.backward()
    dense = torch.from_numpy(ppmi.toarray() / np.maximum(ppmi.toarray().sum(1, keepdims=True), 1e-30))
    term, context = (p.detach().clone().requires_grad_() for p in (recall.term, recall.context))
    expected = -(dense[nodes] * (term[nodes] @ context.T).log_softmax(1)).sum()
    expected.backward()
    assert float(loss.detach()) == pytest.approx(float(expected.detach()), rel=1e-6)
    for found, wanted in ((recall.term.grad, term.grad), (recall.context.grad, context.grad)):
        assert torch.allclose(found, wanted, atol=1e-6)


def test_svd_start_reproduces_ppmi_as_well_as_its_rank_allows() -> None:
    rng = np.random.default_rng(0)
    half = rng.random((30, 5)) * (rng.random((30, 5)) < 0.6)
    ppmi = sp.csr_matrix(half @ half.T)  # has what the SVD asks for: products
    recall = Recall(30, 6)
    recall.start_from_svd(ppmi, seed=0)
    product = (recall.term @ recall.context.T).detach().numpy()
    known = np.flatnonzero(ppmi.toarray().sum(1))  # the others keep their random vectors
    assert np.allclose(product[np.ix_(known, known)], ppmi.toarray()[np.ix_(known, known)], atol=1e-4)
    _, s, _ = np.linalg.svd(ppmi.toarray())
    assert np.allclose(np.sort(recall.term[known].detach().norm(dim=0).numpy())[::-1][:5], np.sqrt(s[:5]), atol=1e-3)


@pytest.mark.parametrize("smoothing", [1.0, 0.75])
def test_svd_of_half_the_counts_equals_that_of_the_matrix(smoothing: float) -> None:
    rng = np.random.default_rng(1)
    counts = np.triu(rng.poisson(0.7, (60, 60)), 1)
    source, target = (ends.astype(np.int32) for ends in np.nonzero(counts))
    ppmi = Ppmi.from_counts(source, target, counts[source, target], 60, smoothing=smoothing)
    left, size, right = truncated_svd(ppmi, 8, seed=3)
    wanted = randomized_svd(ppmi.csr(), 8, n_iter=4, random_state=3)
    for found, expected in zip((left, size, right.T), wanted, strict=True):
        assert np.allclose(found, expected, atol=1e-12)


def test_svd_start_of_a_graph_without_positive_ppmi_is_random() -> None:
    for edges in ({}, {(0, 1): 2, (0, 2): 2, (1, 2): 2}):
        graph = graph_of(edges)
        ppmi, recall = graph.lazy_ppmi(shift=9.0), Recall(NODES, 4)
        before = recall.term.detach().clone()
        recall.start_from_svd(ppmi, seed=0)
        assert torch.equal(recall.term, before)


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


def test_calibration_is_balanced_and_has_the_slope_of_a_logistic_fit() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(size=4000) + 0.7
    label = (rng.random(4000) < sigmoid(true)).astype(float)
    raw = 5 * true - 2
    fitted = Calibration.fit(raw[:2000], label[:2000])
    logit = fitted.logits(raw)
    assert (logit[:2000] > 0).sum() == label[:2000].sum()  # yes is said as often as it is true
    reference = LogisticRegression(C=1e9, fit_intercept=False).fit((raw[:2000] - fitted.shift)[:, None], label[:2000])
    assert fitted.slope == pytest.approx(float(reference.coef_[0, 0]), rel=1e-3)
    p = sigmoid(logit[2000:])
    assert np.mean((p - label[2000:]) ** 2) < np.mean((sigmoid(raw[2000:]) - label[2000:]) ** 2) - 0.03
    assert Calibration.fit(raw[:5], np.ones(5)) == Calibration()
    apart = Calibration.fit(np.array([-1.0, 1.0]), np.array([0.0, 1.0]))
    assert np.isfinite(apart.slope)
