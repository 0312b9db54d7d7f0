"""Share of reasons whose two terms co-occur in the corpus, so that a reader can look them up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cogstage.rationale.record import Prediction


class CountedTogether:
    """Share of the reasons whose two terms have an edge in the graph."""

    name = "counted_together"
    title = "reasons whose two terms co-occur"

    def values(self, predictions: Sequence[Prediction]) -> np.ndarray:
        """One value per prediction; NaN without reasons."""
        shares = [[reason.count is not None for reason in prediction.reasons] for prediction in predictions]
        return np.array([np.mean(row) if row else np.nan for row in shares], np.float64)
