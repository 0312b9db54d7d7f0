"""Rankings ask about one head or tail many times: a pair has the same probability in a batch as alone.

A matrix product rounds differently with other rows beside a row, so the last digits may differ.
"""

from __future__ import annotations

import numpy as np
import pytest
from small_model import small_data

from cogstage.estimator import CogStage

PAIRS = 4096


@pytest.mark.parametrize("side", ["head", "tail", "both"])
def test_a_batch_answers_as_single_questions(model: CogStage, side: str) -> None:
    nodes = np.arange(len(small_data()[0].vocabulary))
    generator = np.random.default_rng(0)
    others = generator.choice(nodes, PAIRS)  # every pair comes several times
    same = np.full(len(others), 4)
    heads, tails = {
        "head": (same, others),
        "tail": (others, same),
        "both": (others, generator.permutation(others)),
    }[side]
    apart = heads != tails
    heads, tails = heads[apart], tails[apart]
    together = model.probabilities(heads, tails, "causes")
    alone = np.concatenate(
        [model.probabilities([h], [t], "causes") for h, t in zip(heads[:300], tails[:300], strict=True)]
    )
    assert together[:300] == pytest.approx(alone, abs=1e-6)
    first = {}
    for h, t, p in zip(heads.tolist(), tails.tolist(), together.tolist(), strict=True):
        assert first.setdefault((h, t), p) == pytest.approx(p, abs=1e-6)
