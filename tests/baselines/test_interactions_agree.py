"""Our score functions against PyKEEN's interactions on the same vectors."""

from __future__ import annotations

import pytest
import torch

from cogstage.baselines.pykeen_reference import PykeenReference, ReferenceOptions, _import_pykeen
from cogstage.baselines.scorers.distmult import DistMultLogit
from cogstage.baselines.scorers.ntn import NtnLogit
from cogstage.baselines.scorers.rescal import RescalLogit

interactions = pytest.importorskip("pykeen.nn.modules", reason="the optional extra baselines is not installed")


@pytest.fixture
def ends() -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(50, 12), torch.randn(50, 12)


def test_distmult(ends: tuple[torch.Tensor, torch.Tensor]) -> None:
    ours = DistMultLogit(12)
    torch.nn.init.normal_(ours.relation)
    theirs = interactions.DistMultInteraction()(ends[0], ours.relation.expand(50, -1), ends[1])
    torch.testing.assert_close(ours(*ends), theirs)


def test_rescal(ends: tuple[torch.Tensor, torch.Tensor]) -> None:
    ours = RescalLogit(12).eval()
    torch.nn.init.normal_(ours.relation)
    theirs = interactions.RESCALInteraction()(ends[0], ours.relation.expand(50, -1, -1), ends[1])
    torch.testing.assert_close(ours(*ends), theirs)


def test_ntn(ends: tuple[torch.Tensor, torch.Tensor]) -> None:
    ours = NtnLogit(12, 5).eval()
    for parameter in ours.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    parts = (ours.bilinear, ours.head, ours.tail, ours.shift, ours.out)
    theirs = interactions.NTNInteraction()(ends[0], tuple(p.expand(50, *p.shape) for p in parts), ends[1])
    torch.testing.assert_close(ours(*ends), theirs)


@pytest.mark.parametrize("name", ["complex", "tucker"])
def test_a_reference_scores_many_tails_as_pykeen_does(name: str) -> None:
    """In training, with dropout and batch normalisation: the same scores, the same gradients."""
    pykeen, facts = _import_pykeen(), torch.tensor([[0, 0, 1], [2, 1, 3], [4, 0, 5]])
    torch.manual_seed(0)
    ours = PykeenReference(name, ReferenceOptions(dimension=6))
    ours._model = ours._build(pykeen, pykeen["factory"](facts, num_entities=9, num_relations=2), None)
    tails = torch.tensor([1, 3, 5, 8])
    found = []
    for scores in (ours._against, lambda facts, tails: ours._model.score_t(facts[:, :2], tails=tails)):
        ours._model.zero_grad()
        torch.manual_seed(1)
        values = scores(facts, tails)
        (values * torch.randn(values.shape)).sum().backward()
        found.append([values, *(p.grad for p in ours._model.parameters())])
    assert found[0][0].shape == (3, 4)
    torch.testing.assert_close(found[0], found[1])
