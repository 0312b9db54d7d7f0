"""The default model against loops over its equations: scores, reasons, logits, losses and gradients."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from literal_default import Literal
from torch.nn import functional as F

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.config import Config
from cogstage.model.network import Network
from cogstage.model.recognition import Knowledge, features
from cogstage.triples import TripleIndex, Triples, UsualTypes

TERMS, RELATIONS = 11, 2
TYPES = list("aabbaabbaab")
FACTS = [(0, 0, 2), (1, 0, 3), (4, 1, 6), (5, 1, 2), (8, 0, 7), (9, 1, 3)]


def triples(rows: list[tuple[int, int, int]]) -> Triples:
    head, relation, tail = np.array(rows).reshape(-1, 3).T
    return Triples(head.astype(np.int32), relation.astype(np.int16), tail.astype(np.int32))


def made(seed: int, typed: bool, closed: bool = False) -> tuple[Network, Knowledge, Literal, torch.Tensor]:
    """A random network; graphs of odd seeds have order in time."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(1, 9, (TERMS, TERMS)) * (rng.random((TERMS, TERMS)) < 0.5), 1)
    source, target = np.nonzero(upper)
    counts = upper[source, target].astype(np.int64)
    vocabulary = Vocabulary.from_terms([f"t{i}" for i in range(TERMS)])
    ordered = seed % 2 == 1
    cells = rng.integers(0, 6, (len(source), 3)).astype(np.int32) if ordered else None
    graph = Graph(vocabulary, source.astype(np.int32), target.astype(np.int32), counts, {}, cells)
    world = "closed" if closed else "open"
    config = Config(dimension=5, tower=4, associations=3, reasons=2, world=world)
    network = Network(config, TERMS, RELATIONS, [0, 1], ordered=ordered).double().eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            size = {"recognition.matrix": 2.0, "recognition.order": 0.05}.get(name, 0.7)
            parameter.copy_(torch.randn(parameter.shape) * size)
    facts = triples(FACTS)
    usual = UsualTypes(TYPES, facts, RELATIONS) if typed else None
    order = PairOrder.from_graph(graph)
    knowledge = Knowledge(PairCounts.from_graph(graph), TripleIndex(facts, RELATIONS, TERMS), usual, order=order)
    candidates = sorted({end for h, _, t in FACTS for end in (h, t)})
    pairs = {(r, TYPES[h], TYPES[t]) for h, r, t in FACTS}
    pairs |= {(r + RELATIONS, b, a) for r, a, b in pairs}
    parameters = {name: parameter.tolist() for name, parameter in network.named_parameters()}
    literal = Literal(
        parameters,
        network.recognition.scale,
        graph.ppmi().toarray().tolist(),
        set(FACTS),
        TYPES if typed else None,
        pairs,
        candidates,
        config.associations,
        config.reasons,
        {}
        if cells is None
        else dict(zip(zip(source.tolist(), target.tolist(), strict=True), cells.tolist(), strict=True)),
    )
    return network, knowledge, literal, torch.tensor(candidates)


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_recognition_fast_and_plain(seed: int, typed: bool) -> None:
    network, knowledge, literal, _ = made(seed, typed)
    head, tail = network.recognition.all_towers(network.recall.term)
    views = network.recognition.views(network.recognition.mix(head), tail, knowledge.facts)
    left, right = (x.ravel() for x in torch.meshgrid(torch.arange(TERMS), torch.arange(TERMS), indexing="ij"))
    expected = torch.tensor(
        [[literal.seen(k, i, j) for k in range(4)] for i, j in zip(left.tolist(), right.tolist(), strict=True)],
        dtype=torch.float64,
    )
    known = [[literal.known(k, i, j) for k in range(4)] for i, j in zip(left.tolist(), right.tolist(), strict=True)]
    for recognise in (network.recognition.recognise, network.recognition.recognise_plainly):
        score, facts = recognise(views, left, right, knowledge)
        assert torch.allclose(score, expected, atol=1e-6)  # PPMI is kept in single precision
        assert facts.tolist() == known


def test_order_turned_round_has_the_other_sign_and_no_weight_or_no_order_changes_nothing() -> None:
    network, knowledge, _, _ = made(1, False)
    assert knowledge.order is not None
    left, right = torch.tensor([0, 1, 2, 3]), torch.tensor([4, 5, 6, 7])
    lean = knowledge.order.lean(left.numpy(), right.numpy())
    assert (lean == -knowledge.order.lean(right.numpy(), left.numpy())).all()
    assert (lean != 0).any()
    head, tail = network.recognition.all_towers(network.recall.term)
    views = network.recognition.views(network.recognition.mix(head), tail, knowledge.facts)
    with_order, _ = network.recognition.recognise(views, left, right, knowledge)
    turned, _ = network.recognition.recognise(views, right, left, knowledge)
    assert torch.equal(with_order[:, :2], turned[:, 2:])  # s_k⁻¹(i,j) = s_k(j,i)
    without, _ = network.recognition.recognise(views, left, right, replace(knowledge, order=None))
    assert not torch.equal(with_order, without)
    with torch.no_grad():
        network.recognition.order.zero_()
    assert torch.equal(network.recognition.recognise(views, left, right, knowledge)[0], without)
    network.recognition.order = None
    assert torch.equal(network.recognition.recognise(views, left, right, knowledge)[0], without)


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_every_reason_and_the_logit(seed: int, typed: bool) -> None:
    network, knowledge, literal, candidates = made(seed, typed)
    ready = network.ready(candidates, knowledge.facts)
    heads, tails = torch.tensor([0, 3, 10, 2]), torch.tensor([7, 10, 2, 0])
    for q in (0, 1):
        answer = network(heads, tails, q, ready, knowledge)
        c = answer.weighed.contribution.reshape(answer.score.shape).tolist()
        for row, (h, t) in enumerate(zip(heads.tolist(), tails.tolist(), strict=True)):
            expected = literal.reasons_of(h, q, t)
            found = {}
            for kind in (0, 1):
                for n, other in enumerate(answer.association[row, kind].tolist()):
                    i, j = (h, other) if kind == 0 else (other, t)
                    found |= {(i, k, j): c[row][kind][n][k] for k in range(4)}
            assert found.keys() == expected.keys()
            assert all(found[key] == pytest.approx(expected[key], abs=1e-6) for key in expected)
            assert (h, q, t) not in found
            assert float(answer.weighed.logit[row].detach()) == pytest.approx(literal.logit(h, q, t), abs=1e-6)


def test_closed_world_reasons_are_known_facts_alone() -> None:
    network, knowledge, _, candidates = made(1, True, closed=True)
    answer = network(
        torch.tensor([0, 1]), torch.tensor([3, 2]), 0, network.ready(candidates, knowledge.facts), knowledge
    )
    c = answer.weighed.contribution.reshape(answer.known.shape)
    assert (c[~answer.known] == 0).all()
    assert (c[answer.known & (answer.lifted != 0)] != 0).all()
    assert (answer.known & (answer.lifted != 0)).any()


def test_what_is_usual_does_not_know_the_hidden_fold() -> None:
    """With a fold hidden, m is that of a model which knows the other facts alone."""
    network, _, literal, _ = made(2, True)
    facts = [*FACTS, (4, 0, 2), (5, 0, 3), (0, 1, 6)]  # a tail of one fold is a tail of the other, too
    folds = np.array([0, 1, 0, 1, 0, 1, 1, 0, 1])
    index = TripleIndex(triples(facts), RELATIONS, TERMS, folds)
    for hidden in (0, 1):
        literal.facts = {fact for fact, fold in zip(facts, folds, strict=True) if fold != hidden}
        expected = [[literal.usually(k, i) for k in range(2 * RELATIONS)] for i in range(TERMS)]
        head, tail = network.recognition.all_towers(network.recall.term)
        usual = network.recognition.views(network.recognition.mix(head), tail, index, hidden).usual
        assert torch.allclose(usual, torch.tensor(expected, dtype=torch.float64))


def test_facts_of_the_hidden_fold_are_not_known() -> None:
    network, knowledge, _, _ = made(2, True)
    folds = np.array([0, 1, 0, 1, 0, 1])
    index = TripleIndex(triples(FACTS), RELATIONS, TERMS, folds)
    knowledge = Knowledge(knowledge.counts, index, knowledge.types)
    head, tail = network.recognition.all_towers(network.recall.term)
    views = network.recognition.views(network.recognition.mix(head), tail, knowledge.facts)
    left, right = (torch.tensor([fact[end] for fact in FACTS]) for end in (0, 2))
    for recognise in (network.recognition.recognise, network.recognition.recognise_plainly):
        for hidden in (0, 1):
            _, known = recognise(views, left, right, knowledge, hidden)
            assert known.any(1).tolist() == (folds != hidden).tolist()


def test_wrong_triples_are_not_recognised_in_either_direction() -> None:
    network, knowledge, _, _ = made(2, False)
    wrong = TripleIndex(triples([(0, 0, 2)]), RELATIONS, TERMS)
    knowledge = Knowledge(knowledge.counts, knowledge.facts, knowledge.types, wrong)
    head, tail = network.recognition.all_towers(network.recall.term)
    views = network.recognition.views(network.recognition.mix(head), tail, knowledge.facts)
    score, known = network.recognition.recognise(views, torch.tensor([0, 2]), torch.tensor([2, 0]), knowledge)
    assert score[0, 0] == score[1, 2] == 0
    assert not known[0, 0]
    assert not known[1, 2]
    assert score[0, 1] != 0


def test_recognition_loss_and_its_gradients() -> None:
    network, knowledge, literal, _ = made(3, False)
    rows = [(0, 0, 2), (4, 1, 6), (1, 0, 9), (7, 1, 7), (3, 1, 5)]
    label, weight = torch.tensor([1.0, 1, 0, 0, 0]).double(), torch.tensor([1, 1, 0.2, 0.2, 0.25]).double()
    head, relation, tail = torch.tensor(rows).T
    ppmi, order = features(knowledge, head.numpy(), tail.numpy())
    assert order is not None
    ppmi, order = ppmi.double(), order.double()
    recognition, everything = network.recognition, torch.arange(TERMS)
    loss = recognition.loss(
        recognition.towers(network.recall.term, everything, everything),
        torch.stack([head, relation, tail], 1),
        ppmi,
        label,
        weight,
        order,
    )
    expected = 0.0
    for (h, k, t), y, w in zip(rows, label.tolist(), weight.tolist(), strict=True):
        s = literal.score(k, h, t)
        expected += w * (math.log1p(math.exp(-s)) if y else math.log1p(math.exp(s)))
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-6)
    loss.backward()
    step = 1e-6
    for name, parameter in recognition.named_parameters():
        if name == "fact_vectors":  # from stage 1, and not learned
            assert parameter.grad is None
            continue
        gradient = parameter.grad.to_dense() if parameter.grad is not None else torch.zeros_like(parameter)
        at = int(gradient.abs().argmax())
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.view(-1)[at] += sign * step
                towers = recognition.towers(network.recall.term, everything, everything)
                values.append(
                    recognition.loss(towers, torch.stack([head, relation, tail], 1), ppmi, label, weight, order).item()
                )
                parameter.view(-1)[at] -= sign * step
        assert float(gradient.view(-1)[at]) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4), name


def test_decision_gradients_reach_every_parameter_and_are_right() -> None:
    network, knowledge, _, candidates = made(15, False)
    ready = network.ready(candidates, knowledge.facts)
    head, tail = torch.tensor([0, 1, 4, 5, 8]), torch.tensor([3, 2, 2, 6, 3])

    def loss() -> torch.Tensor:
        logit = network(head, tail, 0, ready, knowledge).weighed.logit
        return F.binary_cross_entropy_with_logits(logit, torch.tensor([1.0, 0, 1, 0, 1]).double())

    loss().backward()
    for name, parameter in network.decision.named_parameters():
        assert parameter.grad is not None
        assert parameter.grad[0].any(), name
        assert not parameter.grad[1].any(), name  # the other relation's decision is left alone
        at = int(parameter.grad.abs().argmax())
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.view(-1)[at] += sign * 1e-6
                values.append(loss().item())
                parameter.view(-1)[at] -= sign * 1e-6
        assert float(parameter.grad.view(-1)[at]) == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-4), name
