"""Reasons of the published model: with the rest they add up to the logit, and they never restate the target."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from cogstage.model.fast.paper_network import FastPaperNetwork
from cogstage.model.paper import PaperConfig, PaperNetwork
from cogstage.rationale import paper_predictor
from cogstage.rationale.paper_predictor import PaperPredictor
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex, Triples

TERMS, RELATIONS, TARGET = 30, 3, 1
AS_IT_IS = Calibration(1.0, 0.0)


def predictor_of(seed: int, world: str) -> tuple[PaperPredictor, PaperNetwork]:
    rng = np.random.default_rng(seed)
    facts = np.stack([rng.integers(0, 15, 25), rng.integers(0, RELATIONS, 25), rng.integers(15, TERMS, 25)], 1)
    config = PaperConfig(world=world, dimension=5, associations=6, assumptions=10)
    network = FastPaperNetwork(config, TERMS, RELATIONS, TARGET, torch.from_numpy(facts)).eval()
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_()
        network.relation[-1] *= 1 + seed % 3  # in some networks many relations beat NA, in some few
    columns = (facts[:, column].astype(np.int32) for column in range(3))
    index = TripleIndex(Triples(*columns), RELATIONS, TERMS)
    return PaperPredictor(nn.ModuleDict({str(TARGET): network}), index), network


def asked_of(network: PaperNetwork) -> np.ndarray:
    """Training facts of the target relation: what a reason might restate."""
    return network.facts[network.facts[:, 1] == TARGET][:6][:, [0, 2]].T.numpy()


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), world=st.sampled_from(["open", "closed"]), slope=st.floats(0.2, 3.0))
def test_all_reasons_and_unformed_pairs_add_up_to_the_logit(seed: int, world: str, slope: float) -> None:
    predictor, network = predictor_of(seed, world)
    head, tail = asked_of(network)
    if not len(head):
        return
    calibration = Calibration(slope, -0.3)
    with torch.no_grad(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(paper_predictor, "SHOWN", 1_000)
        made = network(torch.from_numpy(head), torch.from_numpy(tail))
        found = predictor.reasons((head, tail), TARGET, calibration)
    formed = (made.relation_probability > 0).any(2)
    rest = slope * (made.attention * made.value * ~formed).double().sum(1).numpy()
    assert found.baseline + found.share.sum(1) + rest == pytest.approx(found.logit, abs=1e-6 * max(1.0, slope) * 5)
    assert found.logit == pytest.approx(calibration.logits(predictor.logits(head, tail, TARGET)))
    for row in range(len(head)):
        kept = found.share[row] != 0
        triples = set(zip(found.head[row][kept], found.relation[row][kept], found.tail[row][kept], strict=True))
        assert (head[row], TARGET, tail[row]) not in triples
        assert (tail[row], TARGET + RELATIONS, head[row]) not in triples
        if world == "closed":
            assert triples <= set(map(tuple, network.facts.tolist()))
            assert found.known[row][kept].all()


@pytest.mark.parametrize("world", ["open", "closed"])
def test_the_shown_are_those_of_highest_rationale_score_with_their_recall(world: str) -> None:
    predictor, network = predictor_of(4, world)
    head, tail = np.array([2, 3]), np.array([20, 21])
    found = predictor.reasons((head, tail), TARGET, AS_IT_IS)
    with torch.no_grad():
        made = network(torch.from_numpy(head), torch.from_numpy(tail))
        recalled = [(network.term[x] @ network.context.T).softmax(1) for x in (head, tail)]
    score = made.attention[:, :, None] * made.relation_probability  # p_ij·p(k|i,j)
    for row in range(2):
        best = score[row].flatten().sort(descending=True).values[: paper_predictor.SHOWN]
        assert (best > 0).all()
        for place in range(len(best)):
            i, k, j = found.head[row, place], found.relation[row, place], found.tail[row, place]
            at = ((made.left[row] == i) & (made.right[row] == j)).nonzero()[:, 0]
            at = at[score[row, at, k].argmax()]
            assert score[row, at, k].item() == pytest.approx(best[place].item(), rel=1e-5)
            assert found.share[row, place] == pytest.approx((best[place] * made.value[row, at]).item(), rel=1e-4)
            assert found.probability[row, place] == pytest.approx(made.relation_probability[row, at, k].item())
            for end, p, own, term in (
                (found.head_end, recalled[0][row], head[row], i),
                (found.tail_end, recalled[1][row], tail[row], j),
            ):
                assert end.likeness[row, place] == pytest.approx(p[term].item(), rel=1e-4)
                rank = 1 + int((p[network.candidates] > p[term]).sum())
                assert end.rank[row, place] == (0 if term == own else rank)


def test_the_effect_of_a_reason_is_that_of_removing_its_pair() -> None:
    predictor, network = predictor_of(4, "open")
    head, tail = np.array([2]), np.array([20])
    found = predictor.reasons((head, tail), TARGET, AS_IT_IS)
    with torch.no_grad():
        made = network(torch.from_numpy(head), torch.from_numpy(tail))
    for place in range(found.share.shape[1]):
        keep = ~((made.left == int(found.head[0, place])) & (made.right == int(found.tail[0, place])))
        weight = made.attention * keep
        without = (weight * made.value).sum() / weight.sum() + network.decision.bias
        assert found.effect[0, place] == pytest.approx((without - made.logit).item(), abs=1e-5)


def test_the_profile_has_a_column_for_every_target() -> None:
    predictor, network = predictor_of(3, "open")
    other, _ = predictor_of(4, "open")
    both = PaperPredictor(nn.ModuleDict({"0": other.networks[str(TARGET)], str(TARGET): network}), predictor.facts)
    head, tail = np.array([1, 2, 3]), np.array([17, 20, 21])
    expected = np.stack([both.logits(head, tail, 0), both.logits(head, tail, TARGET)], 1)
    np.testing.assert_array_equal(both.profile_logits((head, tail)), expected)
