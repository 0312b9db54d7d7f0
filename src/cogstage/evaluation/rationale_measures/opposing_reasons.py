"""How often a prediction has reasons against it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cogstage.rationale.record import Prediction


class OpposingReasons:
    """1 for a prediction with a reason on the other side, 0 for one without."""

    name = "opposing_reasons"
    title = "predictions with a reason against the answer"

    def values(self, predictions: Sequence[Prediction]) -> np.ndarray:
        """One value per prediction; NaN without reasons."""
        result = np.full(len(predictions), np.nan)
        for row, prediction in enumerate(predictions):
            if prediction.reasons:
                other = prediction.reasons_against if prediction.probability >= 0.5 else prediction.reasons_for
                result[row] = float(bool(other))
        return result
