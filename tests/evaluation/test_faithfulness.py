"""Faithfulness figures against a literal reading of their definitions."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch
from small_model import small_data, small_model

from cogstage.errors import UsageError
from cogstage.evaluation.faithfulness import (
    count_restated,
    held_out_facts,
    leave_one_out,
    measure_faithfulness,
    scores_of,
)
from cogstage.evaluation.stability import ablations, jaccard, stability
from cogstage.rationale.cogstage import CogStage


def literal_probability(assumptions, row: int, keep: set[int], attention: str) -> float:  # type: ignore[no-untyped-def]
    """p with only ``keep`` left, the softmax written out."""
    assert attention == "softmax"
    gates = {place: math.exp(float(assumptions.gate[row, place])) for place in keep}
    total = sum(gates.values())
    logit = sum(weight / total * float(assumptions.value[row, place]) for place, weight in gates.items())
    return 1 / (1 + math.exp(-(logit + float(assumptions.bias))))


@torch.no_grad()
def test_removal_means_the_softmax_is_taken_again(model: CogStage) -> None:
    assert model.config.attention == "softmax"  # what the literal reading is written for
    assumptions = model.assumptions([4, 10], [7, 133], "may_treat")
    valid = assumptions.valid.tolist()
    chosen = scores_of(assumptions).argsort(dim=1, descending=True)[:, :3]
    falls = leave_one_out(model.network, assumptions, chosen)
    for row in range(2):
        places = {place for place, held in enumerate(valid[row]) if held}
        whole = literal_probability(assumptions, row, places, "softmax")
        for column, place in enumerate(chosen[row].tolist()):
            without = literal_probability(assumptions, row, places - {place}, "softmax")
            assert float(falls[row, column]) == pytest.approx(whole - without, abs=1e-5)


def test_figures_are_within_their_bounds_and_complete(model: CogStage) -> None:
    _, data = small_data()
    measured = measure_faithfulness(model, data, "may_treat", pairs=64, ks=(1, 5))
    assert measured.pairs > 0
    assert (measured.restated, measured.examined > 0) == (0, True)
    for name in measured.values:
        low, high = measured.interval(name, replicates=200)
        assert low <= measured.mean(name) + 1e-9
        assert measured.mean(name) <= high + 1e-9
    for control in ("top", "random", "lowest"):
        assert -1 <= measured.mean(f"comprehensiveness@5, {control}") <= 1
        assert 0 <= measured.mean(f"decision kept by {control}@5 alone") <= 1
    assert 1 <= measured.mean("effective assumptions") <= model.config.associations**2
    assert -1 <= measured.mean("Kendall's τ with leave-one-out") <= 1
    assert 0 <= measured.mean("removal raises p, top@5") <= 1


def test_all_assumptions_alone_change_nothing_and_none_leave_the_bias(model: CogStage) -> None:
    assumptions = model.assumptions([4], [7], "may_treat")
    with torch.no_grad():
        everything = model.network.decide(assumptions, torch.ones_like(assumptions.valid))
        nothing = model.network.decide(assumptions, torch.zeros_like(assumptions.valid))
    assert float(everything) == pytest.approx(float(assumptions.logit), abs=1e-5)
    assert float(nothing) == pytest.approx(float(assumptions.bias.detach()), abs=1e-5)


def test_restated_targets_would_be_counted(model: CogStage, monkeypatch: pytest.MonkeyPatch) -> None:
    """The count is 0 because of the mask, not because nothing is looked at: without the mask it is not 0."""
    _, data = small_data()
    assert count_restated(model, data, "may_treat", k=5)[0] == 0
    original = model.assumptions

    def unmasked(head, tail, relation, network=None):  # type: ignore[no-untyped-def]
        """All weight on an assumption that is the target itself."""
        assumptions = original(head, tail, relation, network)
        recalled = assumptions.recalled
        heads, tails = (
            dataclasses.replace(side, term=side.target[:, None].expand_as(side.term))
            for side in (recalled.heads, recalled.tails)
        )
        recalled = dataclasses.replace(recalled, heads=heads, tails=tails)
        probability = torch.zeros_like(assumptions.distinct_probability)
        probability[:, data.relations.index(relation)] = 1
        attention = torch.zeros_like(assumptions.attention)
        attention[:, 0] = 1
        return dataclasses.replace(
            assumptions, recalled=recalled, attention=attention, distinct_probability=probability
        )

    monkeypatch.setattr(model, "assumptions", unmasked)
    assert count_restated(model, data, "may_treat", k=5)[0] == len(data.pairs("may_treat", "test"))


def test_held_out_facts_are_those_of_dev_and_test_in_both_directions() -> None:
    _, data = small_data()
    held_out = held_out_facts(data)
    test, train = data.facts("test"), data.facts("train")
    count = len(data.relations)
    assert held_out.contains(test.head, test.relation, test.tail).all()
    assert held_out.contains(test.tail, test.relation + count, test.head).all()
    assert not held_out.contains(train.head, train.relation, train.tail).any()


def test_jaccard() -> None:
    assert jaccard(frozenset({1, 2}), frozenset({2, 3})) == pytest.approx(1 / 3)
    assert jaccard(frozenset(), frozenset()) == 1.0


def test_a_model_agrees_with_itself_and_chance_is_lower(model: CogStage) -> None:
    _, data = small_data()
    same = stability([model, model], data, "may_treat", pairs=40)
    assert same.jaccard == 1.0
    assert same.chance < 1.0
    with pytest.raises(UsageError, match="at least two"):
        stability([model], data, "may_treat")


def test_another_seed_is_compared(model: CogStage, shared_folder) -> None:  # type: ignore[no-untyped-def]
    _, data = small_data()
    other = CogStage.load(small_model(shared_folder, seed=1))
    compared = stability([model, other], data, "may_treat", pairs=40)
    assert 0 <= compared.jaccard < 1


def test_ablations_change_the_attention_and_leave_the_model_alone(model: CogStage) -> None:
    _, data = small_data()
    before = model.probabilities([4], [7], "may_treat")
    learned, uniform, shuffled = ablations(model, data, "may_treat", pairs=40)
    assert learned.overlap == 1.0
    assert uniform.overlap < 1.0
    assert shuffled.overlap < 1.0
    assert model.probabilities([4], [7], "may_treat") == pytest.approx(before)
