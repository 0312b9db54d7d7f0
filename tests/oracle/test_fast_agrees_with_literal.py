"""The fast path against the literal transcription: values, every gradient, rationale scores, in all situations."""

from __future__ import annotations

import literal
import numpy as np
import pytest
import torch
from torch import Tensor

from cogstage.model.closed_world import ClosedWorld
from cogstage.model.cogstage import Network, OpenWorld
from cogstage.model.config import PRESETS, Config
from cogstage.model.known_facts import KnownFacts, UsualTypes
from cogstage.model.recall import RecallTargets
from cogstage.triples import Triples

TERMS, RELATIONS = 14, 2
PAPER = PRESETS["paper"].replace(dimension=6, associations=3, optimizer="lazy_adam")
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])


def network_of(config: Config, seed: int, dtype: torch.dtype, targets: tuple[int, ...] = (0,)) -> Network:
    torch.manual_seed(seed)
    network = Network(config, TERMS, RELATIONS, targets).double()
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if "bias" in name or name.endswith(("b_attention", "offset", "b_head", "b_tail")):
                parameter.copy_(torch.randn_like(parameter) * 0.3)
    return network.to(dtype)


def parameters_of(network: Network) -> literal.Parameters:
    return {name: p.detach().double().clone().requires_grad_() for name, p in network.named_parameters()}


def assert_gradients_agree(network: Network, fast: Tensor, weights: literal.Parameters, slow: Tensor) -> None:
    network.zero_grad()
    fast.backward()
    names = list(weights)
    expected = torch.autograd.grad(slow, [weights[name] for name in names], allow_unused=True)
    tolerance = TOLERANCE[fast.dtype]
    assert abs(float(fast) - float(slow)) <= tolerance * max(1.0, abs(float(slow)))
    for name, gradient in zip(names, expected, strict=True):
        found = dict(network.named_parameters())[name].grad
        wanted = torch.zeros_like(weights[name]) if gradient is None else gradient
        if found is None:
            assert wanted.abs().max() <= tolerance, name
            continue
        found = found.to_dense() if found.is_sparse else found
        scale = max(1.0, float(wanted.abs().max()))
        assert float((found.double() - wanted).abs().max()) <= tolerance * scale, name


def situation(name: str, dtype: torch.dtype) -> tuple[Network, list[int], tuple[int, int, int], int]:
    """A network, its candidates, a target (h, r, t) and how many associations are asked for."""
    candidates = list(range(2, 12))
    config = PAPER.replace(margins="margins" in name)
    network = network_of(config, 3, dtype)
    target, count = (0, 0, 1), 3
    with torch.no_grad():
        if "masked" in name:  # both targets among their own associations: (h, t) and (t, h) are in the grid
            candidates = list(range(12))
            network.recall.context[0] = 4.0 * (network.recall.term[0] + network.recall.term[1])
            network.recall.context[1] = 3.9 * (network.recall.term[0] + network.recall.term[1])
            network.recognition.relation.mul_(0.3)
            network.recognition.relation[-1].mul_(20)
        if "none beats NA" in name:
            network.recognition.relation[:-1].mul_(30)
            network.recognition.relation[-1].zero_()
        if "shared" in name:
            candidates = [4, 5, 6]
        if "few candidates" in name:
            candidates, count = [3, 5], 32
    return network, candidates, target, count


SITUATIONS = (
    "plain",
    "margins",
    "masked target",
    "masked target, margins",
    "none beats NA",
    "none beats NA, margins",
    "shared associations",
    "few candidates",
    "masked target, few candidates",
)


@dtypes
@pytest.mark.parametrize("name", SITUATIONS)
def test_open_world(name: str, dtype: torch.dtype) -> None:
    network, candidates, (h, r, t), count = situation(name, dtype)
    if name == "masked target, few candidates":
        candidates, count = [0, 1], 32
    weights = parameters_of(network)
    heads, tails = (literal.associations(weights, x, candidates, count) for x in (h, t))
    clip = network.config.margin_clip if "margins" in name else None
    slow = literal.decide(weights, h, r, t, heads, tails, RELATIONS, clip=clip)
    world = OpenWorld(network.recall, torch.tensor(candidates), count)
    # twice the same target and one more, so that pairs repeat within the batch
    fast = network(world.recalled(torch.tensor([h, 9, h]), torch.tensor([t, 8, t]), r), r)

    assert fast.pair_head[0].tolist() == [i for i, _ in slow.pairs]
    assert fast.pair_tail[0].tolist() == [j for _, j in slow.pairs]
    tolerance = TOLERANCE[dtype]
    for row in (0, 2):
        close(fast.attention[row], slow.attention, tolerance)
        close(fast.value[row], slow.value, tolerance)
        close(fast.relation_probability[row], slow.probability, tolerance)
        close(fast.rationale_scores()[row], slow.rationale_scores(), tolerance)
    assert_gradients_agree(network, fast.logit[0], weights, slow.logit)
    beaten = any(float(p) > 0 for row in slow.probability for p in row)
    assert beaten != ("none" in name)
    if "masked" in name:
        where = slow.pairs.index((h, t)), slow.pairs.index((t, h))
        assert fast.relation_probability[0, where[0], r] == 0
        assert fast.relation_probability[0, where[1], r + RELATIONS] == 0
        unmasked = literal.recognised(literal.transe_scores(weights, h, t), set())
        assert float(unmasked[r]) > 0  # there was something to mask


def close(found: Tensor, wanted: list, tolerance: float) -> None:
    exact = [[x.item() for x in row] if isinstance(row, list) else row.item() for row in wanted]
    expected = torch.tensor(exact, dtype=torch.float64)
    assert float((found.detach().double() - expected).abs().max()) <= tolerance


@dtypes
@pytest.mark.parametrize("mask", ["pair", "target"])
def test_default_recipe(dtype: torch.dtype, mask: str) -> None:
    config = PRESETS["default"].replace(dimension=6, associations=4, tower=5, pair_dimension=3, mask=mask)
    network = network_of(config, 5, dtype, targets=(0, 1)).eval()
    facts = Triples(np.array([0, 0, 4]), np.array([1, 0, 1]), np.array([1, 1, 3]))
    network.known = KnownFacts(facts, RELATIONS, TERMS)
    with torch.no_grad():
        network.recognition.matrix.mul_(60)
        for parameter in (network.decision.v, network.decision.w_relation):  # not as informed as they begin
            parameter.copy_(torch.randn(parameter.shape))
        network.recall.context[0] = 3 * network.recall.term[0]
        network.recall.context[1] = 3 * network.recall.term[1]
    weights = parameters_of(network)
    known: dict[tuple[int, int], set[int]] = {}
    for a, k, b in zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True):
        known.setdefault((a, b), set()).add(k)
        known.setdefault((b, a), set()).add(k + RELATIONS)
    h, r, t, candidates = 0, 1, 1, list(range(10))
    heads, tails = (literal.associations(weights, x, candidates, 4) for x in (h, t))
    options = {"clip": config.margin_clip, "bilinear": network.recognition.scale, "known": known}
    options |= {"recall_features": True, "silent_unformed": True, "nearness": True, "hide_pair": mask == "pair"}
    types = ["a", "a", "b", "", "a", "b", "b", "a", "a", "b", "a", "b", "a", "b"]
    network.types = UsualTypes(types, facts, RELATIONS)
    joined = {(k, types[a], types[b]) for a, k, b in zip(facts.head, facts.relation, facts.tail, strict=True)}
    joined |= {(k + RELATIONS, y, x) for k, x, y in joined}

    def usual(i: int, k: int, j: int) -> bool:
        return not types[i] or not types[j] or (k, types[i], types[j]) in joined

    slow = literal.decide(weights, h, r, t, heads, tails, RELATIONS, head_number=1, usual=usual, **options)
    world = OpenWorld(network.recall, torch.tensor(candidates), 4)
    fast = network(world.recalled(torch.tensor([h, 5]), torch.tensor([t, 6]), r), r)
    tolerance = TOLERANCE[dtype]
    close(fast.attention[0], slow.attention, tolerance)
    close(fast.rationale_scores()[0], slow.rationale_scores(), tolerance)
    assert abs(float(fast.logit[0]) - float(slow.logit)) <= tolerance * 10
    assert (0, 1) in slow.pairs
    assert fast.relation_probability[0, slow.pairs.index((0, 1)), r] == 0  # a known fact, and the target
    hidden = [mask == "pair" and pair in ((h, t), (t, h)) for pair in slow.pairs]
    formed = [any(p.item() > 0 for p in row) for row in slow.probability]
    assert any(formed)
    assert not all(formed)
    assert fast.valid[0].tolist() == [not x for x in hidden]
    assert fast.formed[0].tolist() == [f and not x for f, x in zip(formed, hidden, strict=True)]
    close(fast.contribution[0], [a * v for a, v in zip(slow.attention, slow.value, strict=True)], tolerance * 10)
    assert float(fast.attention[0].sum()) == pytest.approx(1.0, abs=1e-5)
    # stage 3's own parameters learn; recognition is taken as it is
    for name in ("recall.term", "recognition.matrix", "recognition.offset"):
        assert dict(network.named_parameters())[name].grad is None
    own = {
        n: p for n, p in weights.items() if n.startswith(("pair_vectors.", "decision.")) or n == "recognition.relation"
    }
    expected = torch.autograd.grad(slow.logit, list(own.values()))
    fast.logit[0].backward()
    for (name, _), gradient in zip(own.items(), expected, strict=True):
        found = dict(network.named_parameters())[name].grad
        assert float((found.double() - gradient).abs().max()) <= tolerance * max(1.0, float(gradient.abs().max())), name


@dtypes
@pytest.mark.parametrize("count", [3, 100], ids=["best three", "fewer facts than asked for"])
def test_closed_world(dtype: torch.dtype, count: int) -> None:
    config = PAPER.replace(world="closed", assumptions=count)
    network = network_of(config, 7, dtype)
    facts = [(2, 0, 3), (4, 0, 5), (0, 0, 1), (6, 1, 7), (1, 1, 0), (3, 0, 9)]
    columns = np.array(facts).T
    world = ClosedWorld(network.recall, Triples(*columns), RELATIONS, count)
    weights = parameters_of(network)
    h, r, t = 0, 0, 1  # itself a training fact: left out, with its inverse
    slow = literal.decide_on_facts(weights, facts, h, r, t, count, RELATIONS, list(range(TERMS)))
    fast = network(world.recalled(torch.tensor([h]), torch.tensor([t]), r), r)
    kept = int(fast.valid.sum())
    assert kept == len(slow.pairs) == min(count, 2 * len(facts) - 2)
    assert list(zip(fast.pair_head[0, :kept].tolist(), fast.pair_tail[0, :kept].tolist(), strict=True)) == slow.pairs
    close(fast.attention[0, :kept], slow.attention, TOLERANCE[dtype])
    close(fast.rationale_scores()[0, :kept], slow.rationale_scores(), TOLERANCE[dtype])
    shown = fast.relation_probability[0, :kept].argmax(1).tolist()
    triples = {(i, k, j) for (i, j), k in zip(slow.pairs, shown, strict=True)}
    assert not triples & {(0, 0, 1), (1, RELATIONS, 0)}
    assert_gradients_agree(network, fast.logit[0], weights, slow.logit)


@dtypes
@pytest.mark.parametrize("chunk", [1 << 22, 20], ids=["one chunk", "many chunks"])
def test_recall_loss(dtype: torch.dtype, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    import scipy.sparse as sp

    monkeypatch.setattr("cogstage.model.recall.CHUNK", chunk)
    network = network_of(PAPER, 1, dtype)
    dense = np.random.default_rng(0).random((TERMS, TERMS)) * (np.random.default_rng(1).random((TERMS, TERMS)) < 0.4)
    dense[5] = 0  # a term with no positive PPMI carries no loss
    targets = RecallTargets.of_ppmi(sp.csr_matrix(dense))
    targets = RecallTargets(
        targets.indptr, targets.indices, dense[dense > 0] / np.repeat(dense.sum(1), (dense > 0).sum(1))
    )
    nodes = np.array([3, 5, 0, 13])
    weights = parameters_of(network)
    slow = literal.recall_loss(weights, torch.tensor(dense), nodes.tolist())
    rows = torch.nn.functional.embedding(torch.from_numpy(nodes), network.recall.term, sparse=True)
    fast = network.recall.loss(rows, targets.rows(nodes))
    assert_gradients_agree(network, fast, weights, slow)


@dtypes
def test_recognition_losses(dtype: torch.dtype) -> None:
    network = network_of(PAPER, 2, dtype)
    weights = parameters_of(network)
    triples = [(0, 0, 3), (3, 2, 0), (4, 1, 4)]
    heads, tails = [[1, 2], [5, 6], [7, 1]], [[9, 9], [8, 3], [10, 11]]
    allowed = torch.ones(2, 3, 2, dtype=torch.bool)
    allowed[0, 1, 0] = False  # a known fact among the corrupted tails is left out of the sum
    slow_tails = [[9, 9], [3], [10, 11]]
    slow = literal.triple_loss(weights, triples, heads, slow_tails)
    slow = slow + literal.relation_loss(weights, [(0, 3), (5, 6)], [0, 2 * RELATIONS])
    terms = network.recognition.terms(network.recall.term, torch.arange(TERMS))
    arguments = (torch.tensor(triples), torch.tensor(heads), torch.tensor(tails), allowed)
    fast = network.recognition.triple_loss(terms, *arguments)
    names = torch.tensor([0, 2 * RELATIONS])
    fast = fast + network.recognition.relation_loss(terms, torch.tensor([0, 5]), torch.tensor([3, 6]), names)
    assert_gradients_agree(network, fast, weights, slow)


@dtypes
def test_bilinear_loss(dtype: torch.dtype) -> None:
    config = PRESETS["default"].replace(dimension=6, tower=5, recognition_dropout=0.0)
    network = network_of(config, 4, dtype)
    weights = parameters_of(network)
    triples, label, weight = [(0, 0, 3), (2, 1, 5), (5, 1, 2)], [1.0, 0.0, 1.0], [1.0, 0.2, 0.5]
    slow = literal.logistic_loss(weights, triples, label, weight, network.recognition.scale)
    terms = network.recognition.terms(network.recall.term, torch.arange(TERMS))
    values = (torch.tensor(x, dtype=dtype) for x in (label, weight))
    fast = network.recognition.logistic_loss(terms, torch.tensor(triples), *values)
    # the literal version also differentiates υ, which only stage 1 may move
    slow_weights = {name: w for name, w in weights.items() if name != "recall.term"}
    network.recall.term.requires_grad_(False)
    assert_gradients_agree(network, fast, slow_weights, slow)
