"""Reasons of the published model: they add up to the logit and never restate the target."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage.model.fast.paper_network import FastPaperNetwork
from cogstage.model.paper import PaperConfig, PaperNetwork
from cogstage.model.paper_reasons import reasons

TERMS, RELATIONS = 30, 3


def network_of(seed: int, world: str, kind: type[PaperNetwork] = FastPaperNetwork) -> PaperNetwork:
    rng = np.random.default_rng(seed)
    facts = np.stack([rng.integers(0, 15, 25), rng.integers(0, RELATIONS, 25), rng.integers(15, TERMS, 25)], 1)
    config = PaperConfig(world=world, dimension=5, associations=6, assumptions=10)
    network = kind(config, TERMS, RELATIONS, 1, torch.from_numpy(facts))
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.normal_()
        network.relation[-1] *= 1 + seed % 3  # in some networks many relations beat NA, in some few
    return network


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), world=st.sampled_from(["open", "closed"]))
def test_they_add_up_and_never_restate_the_target(seed: int, world: str) -> None:
    network = network_of(seed, world)
    head, tail = network.facts[network.facts[:, 1] == 1][:6][:, [0, 2]].T.contiguous()
    with torch.no_grad():
        made = network(head, tail)
    for row, found in enumerate(reasons(network, head, tail)):
        assert found.baseline + float(found.share.sum()) + found.rest == pytest.approx(found.logit, abs=1e-6)
        assert found.logit == pytest.approx(float(made.logit[row]), abs=1e-5)
        assert found.score.tolist() == sorted(found.score.tolist(), reverse=True)
        triples = found.triples.tolist()
        assert [head[row].item(), 1, tail[row].item()] not in triples
        assert [tail[row].item(), 1 + RELATIONS, head[row].item()] not in triples
        formed = (made.relation_probability[row] > 0).any(1)
        rest = (made.attention[row] * made.value[row])[~formed].sum()
        assert found.rest == pytest.approx(float(rest), abs=1e-6)
        if world == "closed":
            assert set(map(tuple, triples)) <= set(map(tuple, network.facts.tolist()))
            assert found.relation_probability.tolist() == [1.0] * len(triples)


@pytest.mark.parametrize("world", ["open", "closed"])
def test_each_carries_how_its_terms_were_recalled(world: str) -> None:
    network = network_of(4, world)
    head, tail = torch.tensor([2, 3]), torch.tensor([20, 21])
    everything = [(network.term[x] @ network.context.T).softmax(1) for x in (head, tail)]
    for row, found in enumerate(reasons(network, head, tail)):
        assert len(found.triples) > 3
        for (i, k, j), p, rank, score, share in zip(
            found.triples.tolist(), found.recall_probability, found.recall_rank, found.score, found.share, strict=True
        ):
            for side, term in enumerate((i, j)):
                own = everything[side][row]
                assert float(p[side]) == pytest.approx(own[term].item(), rel=1e-4)
                assert int(rank[side]) == 1 + int((own[network.candidates] > own[term]).sum())
            made = network(head, tail)
            at = ((made.left[row] == i) & (made.right[row] == j)).nonzero()[:, 0]
            at = at[made.relation_probability[row, at, k] > 0][0]
            assert float(score) == pytest.approx(
                (made.attention[row, at] * made.relation_probability[row, at, k]).item(), rel=1e-4
            )
            assert float(share) == pytest.approx(float(score) * made.value[row, at].item(), rel=1e-4, abs=1e-9)
