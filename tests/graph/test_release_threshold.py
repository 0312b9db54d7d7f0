"""A noisy count on the threshold is released."""

from __future__ import annotations

import numpy as np

from cogstage.graph.edges import Edges
from cogstage.graph.mechanism import mechanism_for
from cogstage.graph.noise import Randomness
from cogstage.graph.options import PrivacyOptions
from cogstage.graph.privacy import release


def test_a_noisy_count_on_the_threshold_is_released() -> None:
    private = PrivacyOptions(epsilon=8.0, delta=1e-6, pairs=1)
    threshold = mechanism_for(private).threshold
    many = np.arange(5_000, dtype=np.int32)
    count = np.full(len(many), threshold, np.int64)
    (released,) = release([Edges(many, many + 1, count, count, None)], private, Randomness(0))
    assert released.count.min() == threshold
    assert 0.3 < len(released.count) / len(many) < 0.9
