"""Early stopping on scores given by hand."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from cogstage.baselines.early_stopping import EarlyStopping


@pytest.mark.parametrize(
    ("scores", "rounds", "best"),
    [
        ([0.1, 0.2, 0.3, 0.4], 4, 3),  # better each time: never stops
        ([0.1, 0.5, 0.4, 0.5, 0.9], 4, 1),  # two without a better one; the same score is no better
        ([0.5, 0.50005, 0.50009, 0.9], 3, 0),  # better by less than it takes
        ([-2.0, -1.0, -1.5, -0.5], 4, 3),  # a loss with its sign turned; one round is waited for
    ],
)
def test_the_best_weights_are_kept_and_patience_ends(scores: list[float], rounds: int, best: int) -> None:
    module = nn.Linear(1, 1)
    stopping = EarlyStopping(module, patience=2, least=1e-4)
    done = 0
    for number, score in enumerate(scores):
        with torch.no_grad():
            module.weight.fill_(number)
        done += 1
        if stopping.should_stop(score):
            break
    stopping.restore()
    assert done == rounds
    assert stopping.best == scores[best]
    assert float(module.weight.detach()) == best
