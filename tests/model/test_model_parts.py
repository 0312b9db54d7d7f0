"""Kernels against plain torch, sparse attention, the optimiser, calibration, recall and masking."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.model import closed_world, kernels
from cogstage.model import cogstage as network_module
from cogstage.model.calibration import calibrate, fit_calibration, sigmoid
from cogstage.model.closed_world import ClosedWorld
from cogstage.model.cogstage import Network, OpenWorld
from cogstage.model.config import PRESETS
from cogstage.model.decision import entmax, sparsemax
from cogstage.model.distributed import Processes
from cogstage.model.known_facts import KnownFacts, UsualTypes
from cogstage.model.optimiser import Adam
from cogstage.model.recall import AssociationTable, Recall
from cogstage.triples import Triples


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_agree_with_torch(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    monkeypatch.setattr(kernels, "FEW", 1)
    left, name, right = torch.randint(0, 7, (50,)), torch.randint(0, 3, (50,)), torch.randint(0, 7, (50,))
    shapes = {
        "terms": (7, 5),
        "relations": (3, 5),
        "head": (7, 4),
        "tail": (7, 4),
        "features": (50, 6),
        "weights": (6, 4),
    }

    def results() -> list[torch.Tensor]:
        torch.manual_seed(1)
        p = {key: torch.randn(shape, dtype=torch.float64).requires_grad_() for key, shape in shapes.items()}
        outputs = [
            kernels.l1_scores(p["terms"], p["relations"], left, right),
            kernels.l1_triples(p["terms"], p["relations"], left, name, right),
            kernels.pair_sum(p["head"], p["tail"], left, right, p["features"], p["weights"]),
        ]
        sum((x * torch.arange(x.numel()).reshape(x.shape)).sum() for x in outputs).backward()
        views = (
            p["relations"].detach().expand(7, 3, 5).contiguous() * p["terms"].detach()[:, None],
            p["terms"].detach(),
        )
        dot = kernels.bilinear_scores(*views, torch.arange(3.0, dtype=torch.float64), left, right)
        return [*outputs, dot, *(x.grad for x in p.values())]

    fast = results()
    monkeypatch.setattr(kernels, "on_numba", lambda *_: False)
    for one, other in zip(fast, results(), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("off", ["", "known_facts", "margins", "typed_relations"])
@pytest.mark.parametrize("mask", ["pair", "target"])
def test_frozen_recognition_is_read_as_with_gradients(off: str, mask: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """One pass over the pairs tells stage 3 what the torch functions tell it, folds and masked targets included."""
    torch.manual_seed(3)
    config = PRESETS["default"].replace(dimension=6, associations=9, tower=5, pair_dimension=3, mask=mask)
    config = config.replace(**{off: False}) if off else config
    network = Network(config, 12, 2, (0, 1), folds=2).double().eval()
    facts = Triples(np.array([0, 0, 4, 5]), np.array([1, 0, 1, 0]), np.array([1, 1, 3, 0]))
    with torch.no_grad():
        for recognition in (network.recognition, *network.folds):
            recognition.matrix.mul_(60)
    network.known = KnownFacts(facts, 2, 12, np.array([0, 0, 1, 1])) if config.known_facts else None
    network.types = UsualTypes(list("aabb" * 3), facts, 2) if config.typed_relations else None
    world = OpenWorld(network.recall, torch.arange(10), 9)
    head, tail = torch.tensor([0, 4, 7, 1]), torch.tensor([1, 3, 8, 0])
    for target, fold in ((0, None), (1, None), (1, 0), (0, 1)):
        fast = network(world.recalled(head, tail, target), target, fold)
        with monkeypatch.context() as patch:
            patch.setattr(network_module, "on_numba", lambda *_: False)
            slow = network(world.recalled(head, tail, target), target, fold)
        assert (fast.attention > 0).any()
        for name in ("distinct_probability", "attention", "value", "logit"):
            assert torch.allclose(getattr(fast, name), getattr(slow, name), atol=1e-12), name


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=60))
def test_distinct_pairs(pairs: list[tuple[int, int]]) -> None:
    left, right = (torch.tensor([pair[x] for pair in pairs], dtype=torch.long) for x in (0, 1))
    first, which = kernels.distinct_pairs(left, right)
    assert len(first) == len(set(pairs))
    assert [pairs[first[u]] for u in which.tolist()] == pairs


@given(st.lists(st.floats(-20, 20), min_size=1, max_size=30))
@settings(deadline=None)
def test_sparse_attention_is_a_projection(values: list[float]) -> None:
    gate = torch.tensor([values], dtype=torch.float64)
    for project in (sparsemax, entmax):
        p = project(gate)
        assert float(p.sum()) == pytest.approx(1.0, abs=1e-6)
        assert bool((p >= 0).all())
        assert p.argmax() == gate.argmax() or p.max() == p[0, gate.argmax()]
    low, step = gate - 50, 1e-9
    threshold = gate - sparsemax(gate)  # τ is the same wherever there is weight
    held = sparsemax(gate) > step
    assert float(threshold[held].max() - threshold[held].min()) < 1e-6
    assert torch.allclose(sparsemax(low), sparsemax(gate), atol=1e-9)


@pytest.mark.parametrize("project", [sparsemax, entmax])
def test_sparse_attention_gradient(project: object) -> None:
    torch.manual_seed(0)
    gate = (torch.randn(3, 7, dtype=torch.float64) * 2).requires_grad_()
    assert torch.autograd.gradcheck(project, (gate,))  # type: ignore[arg-type]


def test_sparse_attention_with_removals() -> None:
    for attention in ("softmax", "sparsemax", "entmax"):
        config = PRESETS["paper"].replace(dimension=4, attention=attention)
        decision = Network(config, 5, 1, [0]).decision
        keep = torch.tensor([[True, False, True], [False, False, False]])
        p = decision.weights(torch.tensor([[0.1, 9.0, 0.2], [1.0, 2.0, 3.0]]), keep)
        assert p[0, 1] == 0
        assert float(p[0].sum()) == pytest.approx(1.0)
        assert not p[1].any()


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


def test_associations_are_kept_until_refreshed() -> None:
    torch.manual_seed(0)
    recall = Recall(20, 4)
    candidates = torch.arange(3, 15)
    table = AssociationTable(recall, candidates, 5)
    ids, p = table.of(torch.tensor([0, 7, 0]))
    full = (recall.term @ recall.context.T).softmax(1)
    for row, node in enumerate((0, 7, 0)):
        best = candidates[full[node, candidates].argsort(descending=True)[:5]]
        assert ids[row].tolist() == best.tolist()
        assert torch.allclose(p[row], full[node, best], atol=1e-6)
    with torch.no_grad():
        recall.term[0] *= -1
    assert torch.equal(table.of(torch.tensor([0]))[0], ids[:1])
    table.refresh()
    assert not torch.equal(table.of(torch.tensor([0]))[0], ids[:1])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=30, deadline=None)
def test_target_is_masked_and_attention_sums_to_one(seed: int) -> None:
    """Whatever the parameters: the target and its inverse have p = 0, attention is a distribution, the logit a sum."""
    torch.manual_seed(seed)
    network = Network(PRESETS["paper"].replace(dimension=4, associations=5), 9, 2, [0, 1]).eval()
    with torch.no_grad():
        network.recognition.relation[-1] *= 10  # NA is easily beaten
    world = OpenWorld(network.recall, torch.arange(9), 5)
    head, tail = torch.randint(0, 9, (2, 12))
    for target in (0, 1):
        found = network(world.recalled(head, tail, target), target)
        h, t = head[:, None], tail[:, None]
        p = found.relation_probability
        assert not p[(found.pair_head == h) & (found.pair_tail == t)][:, target].any()
        assert not p[(found.pair_head == t) & (found.pair_tail == h)][:, target + 2].any()
        assert torch.allclose(found.attention.sum(1), torch.ones(12), atol=1e-5)
        total = p.sum(2)
        assert bool(((total < 1e-6) | ((total - 1).abs() < 1e-5)).all())
        assert torch.allclose(found.contribution.sum(1) + found.bias, found.logit, atol=1e-5)
        assert torch.allclose(network.decide(found, torch.ones_like(found.valid)), found.logit, atol=1e-5)


def test_known_facts_in_both_directions_and_without_a_fold() -> None:
    facts = Triples(np.array([0, 2]), np.array([1, 0]), np.array([1, 3]))
    known = KnownFacts(facts, 2, 5, np.array([0, 1]))
    found = known.of(torch.tensor([0, 1, 2, 4]), torch.tensor([1, 0, 3, 0]))
    assert found.nonzero().tolist() == [[0, 1], [1, 3], [2, 0]]
    assert known.of(torch.tensor([0, 2]), torch.tensor([1, 3]), hidden=0).nonzero().tolist() == [[1, 0]]


def test_usual_types() -> None:
    facts = Triples(np.array([0]), np.array([0]), np.array([1]))
    usual = UsualTypes(["drug", "disorder", ""], facts, 1)
    found = usual.of(torch.tensor([0, 1, 0, 2]), torch.tensor([1, 0, 0, 0]))
    assert found.tolist() == [[True, False], [False, True], [False, False], [True, True]]


@pytest.mark.parametrize("kind", ["platt", "isotonic"])
def test_calibration_mends_overconfidence(kind: str) -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(size=4000)
    label = (rng.random(4000) < sigmoid(true)).astype(float)
    fitted = fit_calibration(5 * true[:2000], label[:2000], kind)
    p = calibrate(5 * true[2000:], fitted)
    raw = sigmoid(5 * true[2000:])
    assert ((p > 0) & (p < 1)).all()
    assert np.mean((p - label[2000:]) ** 2) < np.mean((raw - label[2000:]) ** 2) - 0.03
    order = np.argsort(true[2000:])
    assert (np.diff(p[order]) >= -1e-12).all()


def test_bf16_changes_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cogstage.model.decision.has_bf16", lambda: True)
    logits = []
    for precision in ("float32", "bf16"):
        torch.manual_seed(0)
        network = Network(PRESETS["paper"].replace(dimension=32, precision=precision), 50, 2, [0]).eval()
        world = OpenWorld(network.recall, torch.arange(50), 8)
        logits.append(network(world.recalled(torch.arange(20), torch.arange(20, 40), 0), 0).logit)
    assert not torch.equal(*logits)
    assert float((logits[0] - logits[1]).detach().abs().max()) < 0.01


def test_closed_world_chooses_the_same_in_any_company(monkeypatch: pytest.MonkeyPatch) -> None:
    """Facts are chosen once for a target and kept; which others were asked for with it, or before, does not matter."""
    rng = np.random.default_rng(0)
    facts = Triples(*(rng.integers(0, top, 300).astype(np.int32) for top in (90, 2, 90)))
    torch.manual_seed(0)
    recall = Recall(90, 16)
    head, tail = torch.from_numpy(rng.integers(0, 90, (2, 40)))
    world = ClosedWorld(recall, facts, 2, 20)
    together = world.recalled(head, tail, 1)
    for remembered in (100_000, 7):
        monkeypatch.setattr(closed_world, "REMEMBERED", remembered)
        world = ClosedWorld(recall, facts, 2, 20)
        for rows in (slice(0, 3), slice(30, 40), slice(0, 40)):
            found = world.recalled(head[rows], tail[rows], 1)
            for ours, theirs in ((found.heads, together.heads), (found.tails, together.tails)):
                assert torch.equal(ours.term, theirs.term[rows])
                assert torch.equal(ours.probability, theirs.probability[rows])
                assert torch.equal(ours.rank, theirs.rank[rows])
            assert torch.equal(found.valid, together.valid[rows])
    assert len(world.recalled(head[:0], tail[:0], 1).heads.term) == 0
    with torch.no_grad():
        recall.term.copy_(recall.term.flip(0))
    world.refresh()
    assert not torch.equal(world.recalled(head, tail, 1).heads.term, together.heads.term)
