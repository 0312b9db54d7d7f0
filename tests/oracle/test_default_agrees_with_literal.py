"""The default model against loops over its equations: scores, reasons, logits, losses and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import pytest
import torch
from literal_default import Literal
from torch import Tensor, nn
from torch.nn import functional as F

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model import recognition
from cogstage.model.config import Config
from cogstage.model.decision import DecisionWeights, PairView, decide
from cogstage.model.network import Network, PreparedNetwork, network_shapes
from cogstage.model.recognition import Knowledge, Recognition, RecognitionWeights, inputs
from cogstage.training.decision import DecisionModule
from cogstage.training.recognition import RecognitionModule
from cogstage.training.sampling import TripleBatch
from cogstage.triples import TripleIndex, Triples, UsualTypes

TERMS, RELATIONS = 11, 2
TYPES = list("aabbaabbaab")
FACTS = [(0, 0, 2), (1, 0, 3), (4, 1, 6), (5, 1, 2), (8, 0, 7), (9, 1, 3)]
SIZES = {"recognition.related": 2.0, "recognition.contrast": 2.0, "recognition.order": 0.05}
NODES = np.arange(TERMS)
EVERY = np.tile(NODES, (TERMS, 1))  # each term beside each
HEADS, TAILS = np.array([0, 3, 10, 2, 6]), np.array([7, 10, 2, 0, 6])


@dataclass(frozen=True)
class Made:
    """A random network in double precision, what is known, and the same with loops."""

    network: Network
    knowledge: Knowledge
    literal: Literal
    candidates: np.ndarray

    def recognition(self, facts: TripleIndex | None = None, hidden: int | None = None) -> Recognition:
        own = self.network
        x = inputs(own.term, own.fact)
        return Recognition(own.recognition, x, own.config.margin, facts or self.knowledge.facts, hidden)

    def view(self, head: np.ndarray = HEADS, tail: np.ndarray = TAILS) -> PairView:
        own = self.network
        given = own.config, own.term, own.fact, own.recognition, self.candidates, self.knowledge
        return PreparedNetwork(*given).view(head, tail)


def triples(rows: list[tuple[int, int, int]]) -> Triples:
    head, relation, tail = np.array(rows).reshape(-1, 3).T
    return Triples(head.astype(np.int32), relation.astype(np.int16), tail.astype(np.int32))


def made(seed: int, typed: bool) -> Made:
    """Graphs of odd seeds have order in time; term 6 has no vectors."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(1, 9, (TERMS, TERMS)) * (rng.random((TERMS, TERMS)) < 0.5), 1)
    source, target = np.nonzero(upper)
    counts = upper[source, target].astype(np.int64)
    vocabulary = Vocabulary.from_terms([f"t{i}" for i in range(TERMS)])
    cells = rng.integers(0, 6, (len(source), 3)).astype(np.int32) if seed % 2 else None
    graph = Graph(vocabulary, source.astype(np.int32), target.astype(np.int32), counts, {}, cells)
    config = Config(dimension=5, tower=4, associations=3, reasons=2, margin=0.4)
    shapes = network_shapes(config, TERMS, RELATIONS, 2)
    arrays = {name: rng.normal(size=shape) * SIZES.get(name, 0.7) for name, shape in shapes.items()}
    arrays["recall.term"][6] = arrays["recall.fact"][6] = 0.0
    facts = triples(FACTS)
    usual = UsualTypes(TYPES, facts, RELATIONS) if typed else None
    order = PairOrder.from_graph(graph)
    knowledge = Knowledge(PairCounts.from_graph(graph), TripleIndex(facts, RELATIONS, TERMS), usual, order=order)
    candidates = sorted({end for h, _, t in FACTS for end in (h, t)})
    allowed = {(r, TYPES[h], TYPES[t]) for h, r, t in FACTS}
    allowed |= {(r + RELATIONS, b, a) for r, a, b in allowed}
    literal = Literal(
        {name: array.tolist() for name, array in arrays.items()},
        config.margin,
        graph.ppmi().toarray().tolist(),
        set(FACTS),
        TYPES if typed else None,
        allowed,
        candidates,
        config.associations,
        config.reasons,
        {}
        if cells is None
        else dict(zip(zip(source.tolist(), target.tolist(), strict=True), cells.tolist(), strict=True)),
    )
    return Made(Network.from_arrays(config, [0, 1], arrays), knowledge, literal, np.array(candidates))


def every_triple(value: Callable[[int, int, int], float]) -> np.ndarray:
    """(V, V, 2R) of a function of relation, head and tail."""
    return np.array(
        [[[value(k, i, j) for k in range(2 * RELATIONS)] for j in range(TERMS)] for i in range(TERMS)]
    )  # fmt: skip


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_recognition_of_every_pair(seed: int, typed: bool) -> None:
    case = made(seed, typed)
    score, known = case.recognition().recognise(NODES, EVERY, case.knowledge)
    np.testing.assert_allclose(score, every_triple(case.literal.seen), atol=1e-6)  # PPMI is kept in single precision
    assert np.array_equal(known, every_triple(case.literal.known))
    assert len(known.nonzero()[0]) == 2 * len(FACTS)
    plain = case.recognition().scores(NODES, EVERY, case.knowledge)
    np.testing.assert_allclose(plain, every_triple(case.literal.score), atol=1e-6)


@pytest.mark.parametrize("typed", [True, False])
def test_wrong_triples_are_not_recognised_in_either_direction(typed: bool) -> None:
    case = made(2, typed)
    wrong = [(0, 0, 2), (3, 1, 1)]  # a fact, and a triple that is none
    case.literal.wrong = set(wrong)
    knowledge = replace(case.knowledge, wrong=TripleIndex(triples(wrong), RELATIONS, TERMS))
    score, known = case.recognition().recognise(NODES, EVERY, knowledge)
    np.testing.assert_allclose(score, every_triple(case.literal.seen), atol=1e-6)
    assert np.array_equal(known, every_triple(case.literal.known))
    assert score[0, 2, 0] == score[2, 0, RELATIONS] == score[3, 1, 1] == score[1, 3, RELATIONS + 1] == 0
    assert not known[0, 2, 0]


def test_order_reversed_has_the_other_sign_and_no_weight_or_no_order_changes_nothing() -> None:
    case = made(1, False)
    left, right = np.arange(4), np.arange(4, 8)
    assert case.knowledge.order is not None
    lean = case.knowledge.order.lean(left, right)
    assert np.array_equal(lean, -case.knowledge.order.lean(right, left))
    assert (lean != 0).any()
    own = case.recognition()
    with_order, _ = own.recognise(left, right[:, None], case.knowledge)
    reversed_, _ = own.recognise(right, left[:, None], case.knowledge)
    np.testing.assert_allclose(with_order[..., :2], reversed_[..., 2:])  # r_k⁻¹(i,j) = r_k(j,i)
    without, _ = own.recognise(left, right[:, None], replace(case.knowledge, order=None))
    assert not np.allclose(with_order, without)
    network = replace(case.network, recognition=replace(case.network.recognition, order=np.zeros(RELATIONS)))
    unweighted = replace(case, network=network).recognition()
    assert np.array_equal(unweighted.recognise(left, right[:, None], case.knowledge)[0], without)


@pytest.mark.parametrize("typed", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_every_reason_and_the_logit(seed: int, typed: bool) -> None:
    case = made(seed, typed)
    view = case.view()
    for q, weights in case.network.decisions.items():
        decision = decide(weights, view, case.network.config.reasons)
        c = decision.contribution.reshape(view.score.shape)
        for row, (h, t) in enumerate(zip(HEADS.tolist(), TAILS.tolist(), strict=True)):
            expected = case.literal.reasons_of(h, q, t)
            reasons = {}
            for kind in (0, 1):
                for n, other in enumerate(view.association[row, kind].tolist()):
                    i, j = (h, other) if kind == 0 else (other, t)
                    reasons |= {(i, k, j): c[row, kind, n, k] for k in range(2 * RELATIONS)}
                    assert view.score[row, kind, n] == pytest.approx(
                        [case.literal.seen(k, i, j) for k in range(2 * RELATIONS)], abs=1e-6
                    )
                    assert view.known[row, kind, n].tolist() == [
                        case.literal.known(k, i, j) for k in range(2 * RELATIONS)
                    ]
            assert reasons.keys() == expected.keys()
            assert all(reasons[key] == pytest.approx(expected[key], abs=1e-6) for key in expected)
            assert h == t or (h, q, t) not in reasons
            assert decision.pair[row] == pytest.approx(case.literal.pair(h, q, t), abs=1e-6)
            assert float(decision.logit[row]) == pytest.approx(case.literal.logit(h, q, t), abs=1e-6)
            ordered = sorted(expected.values())
            strongest = [decision.contribution[row, decision.strongest_for[row]]]
            strongest += [decision.contribution[row, decision.strongest_against[row]]]
            assert strongest[0] == pytest.approx(ordered[::-1][:3], abs=1e-6)
            assert strongest[1] == pytest.approx(ordered[:3], abs=1e-6)


@pytest.mark.parametrize("typed", [True, False])
def test_mean_scores_do_not_know_the_hidden_fold(typed: bool) -> None:
    """With a fold hidden, m is that of a model which knows the other facts alone, and its facts are not known."""
    case = made(2, typed)
    facts = [*FACTS, (4, 0, 2), (5, 0, 3), (0, 1, 6)]  # a tail of one fold is a tail of the other, too
    folds = np.array([0, 1, 0, 1, 0, 1, 1, 0, 1])
    index = TripleIndex(triples(facts), RELATIONS, TERMS, folds)
    for hidden in (0, 1, None):
        case.literal.means.clear()
        case.literal.facts = {fact for fact, fold in zip(facts, folds, strict=True) if fold != hidden}
        expected = [[case.literal.mean_score(k, i) for k in range(2 * RELATIONS)] for i in range(TERMS)]
        own = case.recognition(index, hidden)
        np.testing.assert_allclose(own.mean_score, expected, atol=1e-12)
        score, known = own.recognise(NODES, EVERY, replace(case.knowledge, facts=index))
        np.testing.assert_allclose(score, every_triple(case.literal.seen), atol=1e-6)
        assert np.array_equal(known, every_triple(case.literal.known))
        np.testing.assert_allclose(own.lift(NODES, EVERY, score), every_triple(case.literal.lift), atol=1e-6)


def test_of_more_facts_than_the_sample_evenly_spaced_ones_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "SAMPLE", 16)
    case = made(4, False)
    facts = [(i, 0, j) for i in range(TERMS) for j in range(TERMS) if i != j] + [(i, 1, 0) for i in range(1, TERMS)]
    case.literal.facts = set(facts)
    case.literal.sample = 16
    many = TripleIndex(triples(facts), RELATIONS, TERMS)
    expected = [[case.literal.mean_score(k, i) for k in range(2 * RELATIONS)] for i in range(TERMS)]
    np.testing.assert_allclose(case.recognition(many).mean_score, expected, atol=1e-12)


def module_with(weights: DecisionWeights, world: str = "open") -> DecisionModule:
    """A decision that learns, with these weights."""
    config = Config(dimension=5, tower=4, associations=3, reasons=2, world=world)
    module = DecisionModule(config, 0, np.array([False, True, False, False])).double()
    with torch.no_grad():
        for entry in fields(DecisionWeights):
            getattr(module, entry.name).copy_(torch.as_tensor(getattr(weights, entry.name)))
    return module


def seen(view: PairView) -> list[Tensor]:
    return [torch.from_numpy(part) for part in (view.similarity, view.lifted, view.known, view.pair)]


@pytest.mark.parametrize("world", ["open", "closed"])
@pytest.mark.parametrize("seed", range(6))
def test_the_decision_that_learns_is_the_one_that_predicts(seed: int, world: str) -> None:
    case = made(seed, typed=seed > 2)
    view = case.view()
    for weights in case.network.decisions.values():
        module = module_with(weights, world)
        logit = decide(module.weights(), view, 2).logit
        np.testing.assert_allclose(module(*seen(view)).detach().numpy(), logit, atol=1e-12)


def test_closed_world_reasons_are_known_facts_alone() -> None:
    case = made(1, True)
    view = case.view(np.array([0, 1]), np.array([3, 2]))
    decision = decide(module_with(case.network.decisions[0], "closed").weights(), view, 2)
    c = decision.contribution.reshape(view.known.shape)
    assert (c[~view.known] == 0).all()
    assert (c[view.known & (view.lifted != 0)] != 0).all()
    assert (view.known & (view.lifted != 0)).any()


def test_signs_are_put_back_and_nothing_else() -> None:
    """η and ε, and the weights of the target's own and of opposite relations."""
    module = module_with(made(0, False).network.decisions[0])
    with torch.no_grad():
        module.pair.copy_(torch.tensor([-1.0, 2.0]))
        for part in (module.value, module.fact):
            part.copy_(torch.tensor([-1.0, 1.0, -3.0, 4.0]))
    module.keep_signs()
    assert module.pair.tolist() == [0.0, 2.0]
    for part in (module.value, module.fact):
        assert part.tolist() == [0.0, 0.0, -3.0, 4.0]


def agrees_with_differences(module: nn.Module, loss: Callable[[], Tensor], step: float = 1e-6) -> None:
    """The largest entry of each parameter's gradient against a central difference."""
    module.zero_grad()
    loss().backward()  # type: ignore[no-untyped-call]
    for name, parameter in module.named_parameters():
        assert parameter.grad is not None, name
        gradient = parameter.grad.to_dense().reshape(-1)
        assert gradient.any(), name
        at = int(gradient.abs().argmax())
        values = []
        for sign in (1, -1):
            with torch.no_grad():
                parameter.view(-1)[at] += sign * step
                values.append(loss().item())
                parameter.view(-1)[at] -= sign * step
        assert float(gradient[at]) == pytest.approx((values[0] - values[1]) / (2 * step), rel=1e-4), name


def test_recognition_loss_and_its_gradients() -> None:
    case = made(3, False)
    module = RecognitionModule(case.network.config, TERMS, RELATIONS).double().eval()
    with torch.no_grad():
        for entry in fields(RecognitionWeights):
            getattr(module, entry.name).copy_(torch.from_numpy(getattr(case.network.recognition, entry.name)))
    rows = [(0, 0, 2), (4, 1, 6), (1, 0, 9), (7, 1, 7), (3, 1, 5), (4, 0, 6), (0, 1, 2)]
    label = [1.0, 1, 0, 0, 0, 0, 0]
    related, contrast = [1.0, 1, 0.2, 0.2, 0.25, 0, 0], [1.0, 1, 0, 0, 0, 1, 1]
    batch = TripleBatch(np.array(rows), *(np.array(values) for values in (label, related, contrast)))
    x = torch.from_numpy(inputs(case.network.term, case.network.fact))
    expected = 0.0
    for triple, y, *weights in zip(rows, label, related, contrast, strict=True):
        h, k, t = triple
        for weight, score in zip(weights, (case.literal.related(k, h, t), case.literal.contrast(k, h, t)), strict=True):
            expected += weight * math.log1p(math.exp(-score if y else score))
    loss = module.loss(x, batch, case.knowledge)
    assert float(loss.detach()) == pytest.approx(expected, rel=1e-6)
    agrees_with_differences(module, lambda: module.loss(x, batch, case.knowledge))
    parts = [module.loss(x, batch[np.arange(len(rows)) % 2 == half], case.knowledge) for half in (0, 1)]
    assert sum(float(part.detach()) for part in parts) == pytest.approx(
        expected, rel=1e-6
    )  # what each of two processes adds


def test_dropout_keeps_the_mean_of_a_tower() -> None:
    module = RecognitionModule(Config(dimension=5, tower=4, recognition_dropout=0.3), TERMS, RELATIONS)
    torch.manual_seed(0)
    dropped = module._drop(torch.ones(20_000))
    assert sorted(dropped.unique().tolist()) == pytest.approx([0.0, 1 / 0.7])
    assert float((dropped == 0).float().mean()) == pytest.approx(0.3, abs=0.02)
    assert torch.equal(module.eval()._drop(torch.ones(5)), torch.ones(5))


def test_decision_gradients_reach_every_parameter_and_are_right() -> None:
    case = made(15, False)
    view = case.view(np.array([0, 1, 4, 5, 8]), np.array([3, 2, 2, 6, 3]))
    module = module_with(case.network.decisions[0])
    label = torch.tensor([1.0, 0, 1, 0, 1]).double()
    agrees_with_differences(module, lambda: F.binary_cross_entropy_with_logits(module(*seen(view)), label))
