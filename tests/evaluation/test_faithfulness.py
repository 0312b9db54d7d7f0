"""Faithfulness figures against a literal reading of their definitions."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from small_model import small_data, small_model

from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.evaluation import faithfulness
from cogstage.evaluation.faithfulness import (
    count_restated,
    held_out_facts,
    leave_one_out,
    measure_faithfulness,
)
from cogstage.evaluation.stability import ablations, jaccard, stability
from cogstage.rationale.explain import ReasonArrays
from cogstage.rationale.predictor import DefaultPredictor

HEAD, TAIL = np.array([4, 10]), np.array([7, 133])


def before_reasons(model: CogStage, row: int) -> float:
    """b + η·PPMI(h,t) + ε·max(0, cos(υ_h, υ_t)) of the first relation."""
    network, h, t = model.fitted.network, HEAD[row], TAIL[row]
    together, beside = network.decisions[0].pair.tolist()
    one, other = network.term.astype(float)[[h, t]]
    cosine = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    ppmi = float(model.fitted.counts.ppmi(HEAD[[row]], TAIL[[row]])[0])
    return float(network.decisions[0].bias) + together * ppmi + beside * max(0.0, cosine)


def literal_logit(bias: float, contributions: list[float], n: int) -> float:
    best = sorted((c for c in contributions if c > 0), reverse=True)[:n]
    worst = sorted(c for c in contributions if c < 0)[:n]
    return bias + sum(best) + sum(worst)


def test_not_recognised_means_the_next_reason_steps_in(model: CogStage) -> None:
    found = model.predictor.removable(HEAD, TAIL, 0)
    chosen = np.argsort(-found.score, axis=1)[:, :8]
    after = leave_one_out(found, chosen)
    for row in range(2):
        c = found.score[row].tolist()
        for column, at in enumerate(chosen[row].tolist()):
            left = c[:at] + c[at + 1 :]
            expected = literal_logit(before_reasons(model, row), left, model.config.reasons)  # type: ignore[attr-defined]
            assert after[row, column] == pytest.approx(expected, abs=1e-5)


def test_not_recalled_means_the_weights_are_taken_again(model: CogStage) -> None:
    """Without one association, the softmax over the others of its end; everything else stays."""
    assert isinstance(model.predictor, DefaultPredictor)
    view = model.predictor.view(HEAD, TAIL)
    found = model.predictor.removable(HEAD, TAIL, 0)
    decision = model.predictor.network.decisions[0]
    n, count = model.config.reasons, view.association.shape[2]  # type: ignore[attr-defined]
    sharpness, scale = np.exp(decision.sharpness), np.exp(decision.scale)
    for number in (0, count - 1, count, 2 * count - 1):
        after = found.decide_without_association(np.array([number, number]))
        for row in range(2):
            c = []
            for kind in (0, 1):
                similarity = view.similarity[row, kind].astype(float)
                left = [m for m in range(count) if kind * count + m != number]
                power = np.exp(sharpness[kind] * similarity[left])
                for m, weight in zip(left, power / power.sum(), strict=True):
                    lifted, known = view.lifted[row, kind, m].astype(float), view.known[row, kind, m]
                    factor = np.where(known, decision.fact, decision.value)
                    c += (scale[kind] * weight * factor * np.where(lifted > 0, lifted, lifted / 4)).tolist()
            assert after[row] == pytest.approx(literal_logit(before_reasons(model, row), c, n), abs=1e-5)


def test_figures_are_within_their_bounds_and_complete(model: CogStage) -> None:
    _, data = small_data()
    measured = measure_faithfulness(model, data, "may_treat", pairs=64, ks=(1, 5))
    assert measured.pairs > 0
    assert (measured.restated, measured.examined > 0) == (0, True)
    defined = [name for name, value in measured.values.items() if np.isfinite(value).any()]
    assert {name.split("@")[0] for name in measured.values.keys() - defined} <= {"precision"}  # of few new triples
    for name in defined:
        low, high = measured.interval(name, replicates=200)
        assert low <= measured.mean(name) + 1e-9
        assert measured.mean(name) <= high + 1e-9
    for control in ("top", "random", "lowest"):
        assert -1 <= measured.mean(f"comprehensiveness@5, {control}") <= 1
        assert 0 <= measured.mean(f"decision kept by {control}@5 alone") <= 1
    assert 1 <= measured.mean("effective reasons") <= 2 * model.config.reasons  # type: ignore[attr-defined]
    assert measured.mean("Kendall's τ, not recognised") == pytest.approx(1.0)
    assert 0 < measured.mean("Kendall's τ with ties, not recognised") <= 1
    assert measured.mean("removal raises p, top@5, not recognised") == 0.0
    assert measured.mean("NAOPC") == pytest.approx(1.0)
    assert -1 <= measured.mean("Kendall's τ, not recalled") <= 1


def test_taus_with_and_without_ties_are_those_of_all_pairs() -> None:
    """τ-b by its definition: (concordant - discordant) / √(pairs not tied in one · pairs not tied in the other)."""
    score = np.array([[4.0, 3.0, 2.0, 1.0, -1.0]])
    effect = np.array([[3.0, 4.0, 0.0, 1e-12, 9.0]])
    found = faithfulness._both_taus(score, effect, "x")
    assert found["Kendall's τ, x"].tolist() == [-1.0]  # the first two alone, in the wrong order
    # of six pairs of the four positive scores, four are concordant, one is discordant and one is tied
    assert found["Kendall's τ with ties, x"] == pytest.approx([(4 - 1) / np.sqrt(6 * 5)])


def test_random_control_is_not_the_top(model: CogStage) -> None:
    _, data = small_data()
    measured = measure_faithfulness(model, data, "may_treat", pairs=64, ks=(1,))
    top, random = (measured.values[f"comprehensiveness@1, {control}"] for control in ("top", "random"))
    assert (random <= top + 1e-9).all()
    assert random.mean() < top.mean()


class Made:
    """Four assumptions with given contributions, of which the sum counts; a stand-in for a model."""

    head = tail = relation = np.zeros((1, 4), int)
    recognised = np.ones((1, 4), bool)

    def __init__(self, score: list[float]) -> None:
        self.score = self.share = np.array([score])

    def decide(self, keep: np.ndarray) -> np.ndarray:
        kept = np.where(keep, self.score, 0.0)
        return np.asarray(kept.sum(1) + kept[:, 0] * kept[:, 1])  # not additive: the best order needs a search

    def associations(self) -> tuple[np.ndarray, int]:
        return np.arange(4)[None, :, None], 4

    def decide_without_association(self, number: np.ndarray) -> np.ndarray:
        return self.decide(np.arange(4) != number[:, None])


def test_naopc_is_normalised_by_the_best_and_worst_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faithfulness, "AOPC_STEPS", 2)
    made = Made([1.0, 0.8, 0.3, -0.2])
    curves = {order: float(faithfulness._curve(made, np.array([order]))[0]) for order in permutations(range(4), 2)}
    best, worst = max(curves.values()), min(curves.values())
    for order in ((0, 1), (2, 3), (3, 0)):
        ranked = np.array([[*order, *(i for i in range(4) if i not in order)]])
        expected = (curves[order] - worst) / (best - worst)
        assert float(faithfulness._naopc(made, ranked)[0]) == pytest.approx(expected)


def test_restated_targets_would_be_counted(model: CogStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is 0 because no reason restates its target, not because nothing is looked at."""
    _, data = small_data()
    assert count_restated(model, data, "may_treat")[0] == 0
    original = DefaultPredictor.reasons

    def restating(self, view, target, calibration) -> ReasonArrays:  # type: ignore[no-untyped-def]
        arrays = original(self, view, target, calibration)
        share = np.zeros_like(arrays.share)
        share[:, 0] = 1.0
        full = {"head": view.head[:, None], "tail": view.tail[:, None], "relation": target}
        wide = {name: np.broadcast_to(value, share.shape) for name, value in full.items()}
        return replace(arrays, share=share, **wide)

    monkeypatch.setattr(DefaultPredictor, "reasons", restating)
    assert count_restated(model, data, "may_treat")[0] == len(data.pairs("may_treat", "test"))


def test_precision_counts_held_out_facts_alone(model: CogStage) -> None:
    """A training fact among the reasons is passed over: it says nothing about what was recognised."""
    _, data = small_data()
    held_out, count = held_out_facts(data), len(data.relations)
    found = model.predictor.removable(HEAD, TAIL, 0)
    order = np.argsort(-found.score, axis=1, kind="stable")
    made = faithfulness._held_out_precision(model, found, {"top": order, "random": order}, held_out, (5,))
    for row in range(2):
        hits = seen = 0
        for at in order[row]:
            triple = (found.head[row, at], found.relation[row, at], found.tail[row, at])
            if found.score[row, at] <= 0 or not found.recognised[row, at] or seen == 5:
                continue
            if model.facts.contains(*(np.array([x]) for x in triple))[0]:
                continue
            seen += 1
            hits += bool(held_out.contains(*(np.array([x]) for x in triple))[0])
        value = made["precision@5 on held-out facts, top"][row]
        assert value == pytest.approx(hits / seen) if seen else np.isnan(value)
    test, train = data.facts("test"), data.facts("train")
    assert held_out.contains(test.head, test.relation, test.tail).all()
    assert held_out.contains(test.tail, test.relation + count, test.head).all()
    assert not held_out.contains(train.head, train.relation, train.tail).any()


def test_jaccard() -> None:
    assert jaccard(frozenset({1, 2}), frozenset({2, 3})) == pytest.approx(1 / 3)
    assert jaccard(frozenset(), frozenset()) == 1.0


def test_a_model_agrees_with_itself_and_chance_is_lower(model: CogStage) -> None:
    _, data = small_data()
    same = stability([model, model], data, "may_treat", k=1, pairs=40)  # few triples are recognised
    assert same.jaccard == 1.0
    assert same.chance < 1.0
    with pytest.raises(UsageError, match="at least two"):
        stability([model], data, "may_treat")


def test_another_seed_is_compared(model: CogStage, shared_folder) -> None:  # type: ignore[no-untyped-def]
    _, data = small_data()
    other = CogStage.load(small_model(shared_folder, seed=1))
    compared = stability([model, other], data, "may_treat", pairs=40)
    assert 0 <= compared.jaccard < 1


def test_ablations_change_the_weights_and_leave_the_model_alone(model: CogStage) -> None:
    _, data = small_data()
    before = model.probabilities([4], [7], "may_treat")
    learned, uniform, shuffled = ablations(model, data, "may_treat", pairs=40)
    assert learned.overlap == 1.0
    assert uniform.overlap < 1.0
    assert shuffled.overlap < 1.0
    assert model.probabilities([4], [7], "may_treat") == pytest.approx(before)
