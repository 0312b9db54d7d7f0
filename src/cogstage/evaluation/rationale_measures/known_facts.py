"""Share of a decision that is based on known facts and not on assumptions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cogstage.rationale.record import Prediction


class KnownFacts:
    """Share of the reasons' weight, by absolute share, that training facts have."""

    name = "known_facts"
    title = "weight of known facts among the reasons"

    def values(self, predictions: Sequence[Prediction]) -> np.ndarray:
        """One value per prediction; NaN without reasons."""
        result = np.full(len(predictions), np.nan)
        for row, prediction in enumerate(predictions):
            total = sum(abs(reason.share) for reason in prediction.reasons)
            if total:
                known = sum(abs(reason.share) for reason in prediction.reasons if reason.known_fact)
                result[row] = known / total
        return result
