"""An edge that exactly as many patients have as the threshold asks for stays; one patient fewer and it is gone."""

from __future__ import annotations

import numpy as np
import pytest

from cogstage.graph.edges import Edges
from cogstage.graph.privacy import suppress


@pytest.mark.parametrize("below", [1, 2, 11])
def test_the_threshold_itself_stays(below: int) -> None:
    groups = np.arange(below + 3, dtype=np.int64)
    ends = np.zeros(len(groups), np.int32), np.arange(1, len(groups) + 1, dtype=np.int32)
    (kept,) = suppress([Edges(*ends, groups + 50, groups)], below)
    assert kept.target.tolist() == [target for target, n in zip(ends[1].tolist(), groups, strict=True) if n >= below]
    (kept,) = suppress([Edges(*ends, groups)], below)  # where no patients were counted, the count itself decides
    assert kept.count.tolist() == [n for n in groups.tolist() if n >= below]
