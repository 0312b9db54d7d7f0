"""Removal tests of the published model, whose reasons go through an association of the head and one of the tail."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau
from test_paper_predictor import TARGET, predictor_of

from cogstage.evaluation import faithfulness

HEAD, TAIL = np.array([2, 3]), np.array([20, 21])


@pytest.mark.parametrize("world", ["open", "closed"])
def test_associations_of_both_ends_can_be_removed(world: str) -> None:
    """Without one, attention is taken again over the pairs that do not go through it."""
    predictor, network = predictor_of(4, world)
    removable = predictor.removable(HEAD, TAIL, TARGET)
    with torch.no_grad():
        made = network(torch.from_numpy(HEAD), torch.from_numpy(TAIL))
    numbers, count = removable.associations()
    assert numbers.shape == (*made.left.shape, 2)
    assert numbers.max() == count - 1
    for number in range(count):
        after = removable.decide_without_association(np.array([number, number]))
        for row in range(2):
            through = (numbers[row] == number).any(1)
            ends = made.left[row][numbers[row, :, 0] == number], made.right[row][numbers[row, :, 1] == number]
            assert sum(len(set(end.tolist())) for end in ends) <= 1  # a number is one term at one end
            weight = made.attention[row].double().numpy() * ~through
            total = weight.sum()
            mean = weight @ made.value[row].double().numpy() / total if total else 0.0
            assert after[row] == pytest.approx(float(network.decision.bias) + mean, abs=1e-6)


def test_an_association_contributes_the_scores_of_all_reasons_through_it() -> None:
    predictor, _ = predictor_of(4, "open")
    removable = predictor.removable(HEAD, TAIL, TARGET)
    numbers, count = removable.associations()
    found = faithfulness._not_recalled(removable, (count,))
    before = removable.decide(np.ones(removable.score.shape, bool))
    for row in range(2):
        best = np.argsort(-removable.score[row], kind="stable")[:count]
        share = [sum(removable.score[row, at] for at in best if n in numbers[row, at]) for n in range(count)]
        fall = [before[row] - removable.decide_without_association(np.array([n, n]))[row] for n in range(count)]
        shown = [n for n in range(count) if share[n] > 0]
        assert any(n >= numbers[row, :, 1].min() for n in shown)
        expected = kendalltau([share[n] for n in shown], [fall[n] for n in shown]).statistic
        assert found["Kendall's τ with ties, not recalled"][row] == pytest.approx(expected)


def test_recognition_of_the_pair_itself_is_measured_against_na() -> None:
    predictor, network = predictor_of(4, "open")
    with torch.no_grad():
        scores = network.scores(torch.from_numpy(HEAD), torch.from_numpy(TAIL)).double().numpy()
    assert np.abs(scores[:, -1]).min() > 0.1
    np.testing.assert_allclose(predictor.recognised(HEAD, TAIL, TARGET), scores[:, TARGET] - scores[:, -1])
