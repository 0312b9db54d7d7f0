"""What the default model promises of its reasons, over random models and pairs."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.estimator import CogStage
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.pair_order import PairOrder
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.config import Config
from cogstage.model.network import Network, network_shapes
from cogstage.model_folder import Fitted
from cogstage.rationale.predictor import DefaultPredictor
from cogstage.rationale.record import Prediction, sigmoid
from cogstage.relations import RelationIndex, inverse, is_opposite
from cogstage.training.calibration import Calibration
from cogstage.training.decision import DecisionModule
from cogstage.triples import TripleIndex, Triples

TERMS, RELATIONS = 14, ("may_treat", "causes")


def random_model(seed: int) -> CogStage:
    """A model whose parameters are drawn at random: nothing of what is promised may rest on training."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.integers(1, 9, (TERMS, TERMS)) * (rng.random((TERMS, TERMS)) < 0.5), 1)
    source, target = np.nonzero(upper)
    types = tuple(rng.choice(["drug", "disorder"], TERMS))
    names = tuple(f"t{i}" for i in range(TERMS))
    vocabulary = Vocabulary(names, names, names, types, np.ones(TERMS, np.int64))
    counts = upper[source, target].astype(np.int64)
    cells = rng.integers(0, 6, (len(counts), 3)).astype(np.int32) if seed % 2 else None  # order in time, or none
    graph = Graph(vocabulary, source.astype(np.int32), target.astype(np.int32), counts, {}, cells)
    rows = np.unique(rng.integers(0, (TERMS, 2, TERMS), (12, 3)), axis=0)
    rows = rows[rows[:, 0] != rows[:, 2]]
    facts = Triples(rows[:, 0].astype(np.int32), rows[:, 1].astype(np.int16), rows[:, 2].astype(np.int32))
    config = Config(dimension=4, tower=4, associations=5, reasons=int(rng.integers(1, 4)))
    sizes = {"recognition.related": 2.0, "recognition.contrast": 2.0, "recognition.order": 0.05}
    arrays = {
        name: (rng.normal(size=shape) * sizes.get(name, 0.8)).astype(np.float32)
        for name, shape in network_shapes(config, TERMS, 2, 2).items()
    }
    keep_signs(arrays)
    network = Network.from_arrays(config, [0, 1], arrays)
    calibration = {name: Calibration(float(rng.uniform(0.2, 2)), float(rng.normal())) for name in RELATIONS}
    model = CogStage("all", **config.to_dict())
    fitted = Fitted(
        "default",
        0,
        config,
        RELATIONS,
        (0, 1),
        network,
        calibration,
        {},
        vocabulary,
        facts,
        PairCounts.from_graph(graph),
        graph.hash,
        "none",
        PairOrder.from_graph(graph),
    )
    model._use(fitted)
    return model


def keep_signs(arrays: dict[str, np.ndarray]) -> None:
    """The signs that training keeps: of the pair's own counts, of own and of opposite relations."""
    opposite = RelationIndex(RELATIONS).opposite
    arrays["decision.pair"].clip(min=0, out=arrays["decision.pair"])
    for name in ("decision.value", "decision.fact"):
        for target, weights in enumerate(arrays[name]):
            weights[target] = max(weights[target], 0)
            weights[opposite[target]] = weights[opposite[target]].clip(max=0)


def asked(seed: int) -> tuple[CogStage, list[Prediction]]:
    model, rng = random_model(seed), np.random.default_rng(seed + 1)
    head, tail = rng.integers(0, TERMS, (2, 4))
    keep = head != tail
    return model, [p for r in RELATIONS for p in model.predict_batch(head[keep], tail[keep], r)]


seeds = given(st.integers(0, 2**31))
some = settings(max_examples=25, deadline=None)


@seeds
@some
def test_baseline_and_reasons_add_up_to_the_logit(seed: int) -> None:
    model, predictions = asked(seed)
    for p in predictions:
        total = (
            p.baseline + p.pair_share + sum(r.share for r in p.reasons_for) + sum(r.share for r in p.reasons_against)
        )
        assert p.rest == 0.0
        assert p.pair is not None
        assert min(p.pair.ppmi_share, p.pair.similarity_share) >= 0
        assert total == pytest.approx(p.logit, abs=1e-6)
        assert p.probability == pytest.approx(sigmoid(p.logit), abs=1e-12)
        nodes = [model.vocabulary.index[t.key] for t in (p.head, p.tail)]
        assert p.logit == pytest.approx(float(model.logits(nodes[:1], nodes[1:], p.relation)[0]), abs=1e-5)
        assert all(r.share > 0 for r in p.reasons_for)
        assert all(r.share < 0 for r in p.reasons_against)


@seeds
@some
def test_the_logit_that_is_trained_is_the_one_that_is_predicted(seed: int) -> None:
    """Training takes the logit of a torch module; a prediction adds its reasons up in double precision."""
    model, rng = random_model(seed), np.random.default_rng(seed + 1)
    head, tail = rng.integers(0, TERMS, (2, 4))
    predictor, config = model.predictor, model.fitted.config
    assert isinstance(predictor, DefaultPredictor)
    assert isinstance(config, Config)
    view = predictor.view(head, tail)
    for target in range(len(RELATIONS)):
        module = DecisionModule(config, target, RelationIndex(RELATIONS).opposite[target])
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(torch.as_tensor(getattr(predictor.network.decisions[target], name)))
            trained = module(*map(torch.from_numpy, (view.similarity, view.lifted, view.known, view.pair)))
        np.testing.assert_allclose(trained.numpy(), predictor.logits(head, tail, target), rtol=1e-5, atol=1e-5)


@seeds
@some
def test_the_stated_effect_is_what_happens(seed: int) -> None:
    """Not recognised: the logit changes by exactly -(c - c₆), and a reason for never raises p by leaving."""
    _, predictions = asked(seed)
    for p in predictions:
        for r in p.reasons:
            without = p.without(r.triple)
            assert without.logit - p.logit == pytest.approx(r.effect, abs=1e-5)
            assert r.triple not in {other.triple for other in without.reasons}
            if r.share > 0:
                assert without.probability <= p.probability + 1e-9
            else:
                assert without.probability >= p.probability - 1e-9


@seeds
@some
def test_the_order_shown_is_the_order_of_effects(seed: int) -> None:
    _, predictions = asked(seed)
    for p in predictions:
        for side in (p.reasons_for, p.reasons_against):
            effects = [abs(r.effect) for r in side]
            assert all(a >= b - 1e-9 for a, b in pairwise(effects))
            shares = [abs(r.share) for r in side]
            assert shares == sorted(shares, reverse=True)


@seeds
@some
def test_the_reasons_for_alone_keep_a_yes(seed: int) -> None:
    _, predictions = asked(seed)
    for p in predictions:
        if p.probability >= 0.5:
            assert p.baseline + p.pair_share + sum(r.share for r in p.reasons_for) >= -1e-9


@seeds
@some
def test_every_reason_keeps_one_end_and_none_is_the_target(seed: int) -> None:
    _, predictions = asked(seed)
    for p in predictions:
        for r in p.reasons:
            kept = (r.head_association is None, r.tail_association is None)
            assert sorted(kept) == [False, True]
            assert (r.head.key == p.head.key) == kept[0]
            assert (r.tail.key == p.tail.key) == kept[1]
            assert r.head.key != r.tail.key
            assert {(r.head.key, r.relation, r.tail.key), (r.tail.key, inverse(r.relation), r.head.key)}.isdisjoint(
                {(p.head.key, p.relation, p.tail.key)}
            )


@seeds
@some
def test_opposite_relations_never_count_for_and_own_never_against(seed: int) -> None:
    _, predictions = asked(seed)
    for p in predictions:
        for r in p.reasons:
            if r.relation_probability > 0.5:
                assert not (is_opposite(p.relation, r.relation) and r.share > 0)
                assert not (r.relation == p.relation and r.share < 0)


@seeds
@settings(max_examples=10, deadline=None)
def test_assuming_a_triple_is_deciding_with_it_as_a_fact(seed: int) -> None:
    """The estimator's answer against one that looks facts up in an index that held the triple from the start."""
    model, predictions = asked(seed)
    for p in predictions[:2]:
        for r in p.reasons[:3]:
            if r.known_fact:
                continue
            changed = p.assuming(r.triple, True)
            old = model.fitted.facts
            triple = r.triple if not r.relation.endswith("_inverse") else (r.tail.key, inverse(r.relation), r.head.key)
            ends = [model.vocabulary.index[triple[0]], model.vocabulary.index[triple[2]]]
            further = Triples(
                np.append(old.head, ends[0]).astype(np.int32),
                np.append(old.relation, RELATIONS.index(triple[1])).astype(np.int16),
                np.append(old.tail, ends[1]).astype(np.int32),
            )
            other = random_model(seed)
            predictor = other.predictor.revised({})
            knowledge = replace(predictor.knowledge, facts=TripleIndex(further, 2, TERMS))  # type: ignore[attr-defined]
            predictor = replace(predictor, knowledge=knowledge)  # type: ignore[type-var]
            predictor.__dict__["prepared"] = other.predictor.prepared  # type: ignore[attr-defined]  # m is of the training facts
            head, tail = ([model.vocabulary.index[t.key]] for t in (p.head, p.tail))
            raw = predictor.logits(np.array(head), np.array(tail), RELATIONS.index(p.relation))
            assert changed.logit == pytest.approx(float(model.calibration[p.relation].logits(raw)[0]), abs=1e-5)
            assert p.assuming(r.triple, False) == p.without(r.triple)


def test_base_rate_shifts_the_log_odds() -> None:
    _, predictions = asked(3)
    p = predictions[0]
    rare = p.with_base_rate(0.01)
    odds = p.probability / (1 - p.probability) * (0.01 / 0.99)
    assert rare.probability == pytest.approx(odds / (1 + odds))
    assert rare.logit - rare.baseline == pytest.approx(p.logit - p.baseline)
    assert rare.with_base_rate(0.5).logit == pytest.approx(p.logit)


@seeds
@some
def test_the_pairs_own_counts_are_those_of_the_graph(seed: int) -> None:
    """Each summand is the weight of its feature, calibrated; both stay what they are whatever a reader corrects."""
    model, predictions = asked(seed)
    for p in predictions:
        h, t = (model.vocabulary.index[term.key] for term in (p.head, p.tail))
        count, ppmi = (values[0] for values in model.fitted.counts.look_up(np.array([h]), np.array([t])))
        vectors = model.fitted.network.term.astype(np.float64)
        cosine = vectors[h] @ vectors[t] / np.linalg.norm(vectors[h]) / np.linalg.norm(vectors[t])
        weight = model.fitted.network.decisions[RELATIONS.index(p.relation)].pair
        slope = model.calibration[p.relation].slope
        assert p.pair is not None
        assert (p.pair.count or 0) == count
        assert p.pair.ppmi_share == pytest.approx(slope * float(weight[0]) * ppmi, abs=1e-5)
        assert p.pair.similarity == pytest.approx(max(0.0, cosine), abs=1e-5)
        assert p.pair.similarity_share == pytest.approx(slope * float(weight[1]) * max(0.0, cosine), abs=1e-5)
        for reason in p.reasons[:1]:
            assert p.without(reason.triple).pair == p.pair
