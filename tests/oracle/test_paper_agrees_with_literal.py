"""The published model, plain and fast, against loops over its equations: values and every gradient."""

from __future__ import annotations

import literal_paper as literal
import pytest
import torch
from torch import Tensor

from cogstage.model.fast.paper_network import FastPaperNetwork
from cogstage.model.paper import PaperConfig, PaperNetwork

TERMS, RELATIONS = 14, 2
TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-5}
FACTS = [(2, 0, 3), (4, 0, 5), (0, 0, 1), (6, 1, 7), (1, 1, 0), (3, 0, 9)]
dtypes = pytest.mark.parametrize("dtype", [torch.float64, torch.float32], ids=["float64", "float32"])
kinds = pytest.mark.parametrize("kind", [PaperNetwork, FastPaperNetwork], ids=["plain", "fast"])


def network_of(
    kind: type[PaperNetwork], dtype: torch.dtype, facts: list[literal.Triple] = FACTS, seed: int = 3, **options: object
) -> PaperNetwork:
    """A network in which nothing is small: parameters of the size that training gives them."""
    config = PaperConfig(dimension=6, **{"associations": 3, **options})  # type: ignore[arg-type]
    network = kind(config, TERMS, RELATIONS, 0, torch.tensor(facts)).double()
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            parameter.copy_(torch.randn(parameter.shape) * (0.3 if "bias" in name or name == "offset" else 0.4))
    return network.to(dtype)


def parameters_of(network: PaperNetwork) -> literal.Parameters:
    return {name: p.detach().double().clone().requires_grad_() for name, p in network.named_parameters()}


def assert_gradients_agree(network: PaperNetwork, made: Tensor, weights: literal.Parameters, wanted: Tensor) -> None:
    network.zero_grad()
    made.backward()
    tolerance = TOLERANCE[made.dtype]
    assert abs(made.item() - wanted.item()) <= tolerance * max(1.0, abs(wanted.item()))
    expected = torch.autograd.grad(wanted, list(weights.values()), allow_unused=True)
    for (name, weight), gradient in zip(weights.items(), expected, strict=True):
        gradient = torch.zeros_like(weight) if gradient is None else gradient
        found = network.get_parameter(name).grad
        found = torch.zeros_like(gradient) if found is None else found.double()
        assert float((found - gradient).abs().max()) <= tolerance * max(1.0, float(gradient.abs().max())), name


def close(found: Tensor, wanted: list, tolerance: float) -> None:
    exact = [[x.item() for x in row] if isinstance(row, list) else row.item() for row in wanted]
    assert float((found.detach().double() - torch.tensor(exact, dtype=torch.float64)).abs().max()) <= tolerance


def situation(name: str, kind: type[PaperNetwork], dtype: torch.dtype) -> PaperNetwork:
    facts, count = FACTS, 3
    if "shared" in name:  # both ends recall the same three terms
        facts = [(4, 0, 5), (5, 1, 6)]
    if "few" in name:
        facts, count = [(0, 0, 1)], 32
    network = network_of(kind, dtype, facts, associations=count)
    with torch.no_grad():
        if "masked" in name:  # both ends are among their own associations: (h, t) and (t, h) are in the grid
            network.context[0] = 4.0 * (network.term[0] + network.term[1])
            network.context[1] = 3.9 * (network.term[0] + network.term[1])
            network.relation.mul_(0.3)
            network.relation[-1].mul_(20)
        if "none beats NA" in name:
            network.relation[:-1].mul_(30)
            network.relation[-1].zero_()
    return network


SITUATIONS = ("plain", "masked target", "none beats NA", "shared associations", "masked target, few candidates")


@kinds
@dtypes
@pytest.mark.parametrize("name", SITUATIONS)
def test_open_world(name: str, kind: type[PaperNetwork], dtype: torch.dtype) -> None:
    network = situation(name, kind, dtype)
    h, r, t = 0, 0, 1
    weights, candidates = parameters_of(network), network.candidates.tolist()

    def literally(target: literal.Triple) -> literal.Decided:
        ends = (literal.associations(weights, target[x], candidates, network.config.associations) for x in (0, 2))
        return literal.decide(weights, target, *ends, RELATIONS)

    # twice the same target, so that pairs repeat within the batch, and one of which the target is an assumption
    made = network(torch.tensor([h, 9, h]), torch.tensor([t, 8, t]))
    wanted, tolerance = literally((h, r, t)), TOLERANCE[dtype]
    for row, expected in enumerate((wanted, literally((9, r, 8)), wanted)):
        assert list(zip(made.left[row].tolist(), made.right[row].tolist(), strict=True)) == expected.pairs
        close(made.attention[row], expected.attention, tolerance)
        close(made.value[row], expected.value, tolerance)
        close(made.relation_probability[row], expected.probability, tolerance)
    assert_gradients_agree(network, made.logit[0], weights, wanted.logit)
    assert any(p.item() > 0 for row in wanted.probability for p in row) != ("none" in name)
    if "masked" in name:
        for pair, relation in (((h, t), r), ((t, h), r + RELATIONS)):
            assert made.relation_probability[0, wanted.pairs.index(pair), relation] == 0
            assert literal.recognised(literal.scores(weights, *pair), set())[relation].item() > 0  # there was something


@kinds
@dtypes
@pytest.mark.parametrize("count", [3, 100], ids=["best three", "fewer facts than asked for"])
def test_closed_world(kind: type[PaperNetwork], dtype: torch.dtype, count: int) -> None:
    network = network_of(kind, dtype, seed=7, world="closed", assumptions=count)
    weights = parameters_of(network)
    target = (0, 0, 1)  # itself a training fact: left out, with its inverse
    wanted = literal.decide_on_facts(weights, FACTS, target, count, RELATIONS)
    made = network(torch.tensor([0, 4]), torch.tensor([1, 9]))
    kept = len(wanted.pairs)
    assert kept == min(count, 2 * len(FACTS) - 2)
    assert list(zip(made.left[0, :kept].tolist(), made.right[0, :kept].tolist(), strict=True)) == wanted.pairs
    close(made.attention[0, :kept], wanted.attention, TOLERANCE[dtype])
    close(made.relation_probability[0, :kept], wanted.probability, TOLERANCE[dtype])
    assert not made.attention[0, kept:].any()
    assert not made.relation_probability[0, kept:].any()
    assert_gradients_agree(network, made.logit[0], weights, wanted.logit)


@kinds
@dtypes
@pytest.mark.parametrize("chunk", [1 << 22, 20], ids=["one chunk", "many chunks"])
def test_recall(kind: type[PaperNetwork], dtype: torch.dtype, chunk: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("recall", "paper_network"):
        monkeypatch.setattr(f"cogstage.model.fast.{module}.CHUNK", chunk)
    network = network_of(kind, dtype, seed=1)
    generator = torch.Generator().manual_seed(0)
    ppmi = torch.rand(TERMS, TERMS, generator=generator, dtype=torch.float64)
    ppmi = ppmi * (torch.rand(TERMS, TERMS, generator=generator) < 0.4)
    ppmi[5] = 0  # a term without a positive PPMI has no loss
    nodes = [3, 5, 0, 13]
    targets = (ppmi[nodes] / ppmi[nodes].sum(1, keepdim=True).clamp(min=1e-12)).to_sparse().coalesce()
    weights = parameters_of(network)
    wanted = literal.recall_loss(weights, ppmi, nodes)
    assert_gradients_agree(network, network.recall_loss(torch.tensor(nodes), targets.to(dtype)), weights, wanted)
    for node, row in zip(nodes, network.recalled(torch.tensor(nodes)), strict=True):
        p = literal.recall_probability(weights, node)
        close(row, [p[j] for j in network.candidates.tolist()], TOLERANCE[dtype])


@kinds
@dtypes
@pytest.mark.parametrize("world", ["open", "closed"])
def test_recognition_losses(kind: type[PaperNetwork], dtype: torch.dtype, world: str) -> None:
    network = network_of(kind, dtype, seed=2, world=world)
    weights = parameters_of(network)
    triples = [(0, 0, 3), (3, 2, 0), (4, 1, 4)]
    heads, tails = [[1, 2], [5, 6], [7, 1]], [[9, 9], [8, 3], [10, 11]]
    allowed = torch.ones(2, 3, 2, dtype=torch.bool)
    allowed[0, 1, 0] = allowed[1, 2, 1] = False  # a fact among the corrupted tails, and one among the heads
    wanted = literal.recognition_loss(weights, triples, [[1, 2], [5, 6], [7]], [[9, 9], [3], [10, 11]])
    wanted = wanted + literal.relation_loss(weights, [(0, 3), (5, 6)], [0, 2 * RELATIONS])
    made = network.recognition_loss(torch.tensor(triples), torch.tensor(heads), torch.tensor(tails), allowed)
    made = made + network.relation_loss(torch.tensor([0, 5]), torch.tensor([3, 6]), torch.tensor([0, 2 * RELATIONS]))
    assert_gradients_agree(network, made, weights, wanted)
