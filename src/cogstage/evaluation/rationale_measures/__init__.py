"""Measures of rationales that read Prediction records alone.

Three are defined here. A further one is a file in this package with one class that has ``name`` (the file's),
``title`` and ``values(predictions)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cogstage.components import component, component_names
from cogstage.evaluation.measure import sample_pairs
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.record import Prediction
from cogstage.reporting import Table, interval_text
from cogstage.statistics import mean_interval

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


class RationaleMeasure(Protocol):
    """One number for each prediction."""

    @property
    def name(self) -> str:
        """The name, which is also the file name."""

    @property
    def title(self) -> str:
        """The name shown in tables."""

    def values(self, predictions: Sequence[Prediction]) -> np.ndarray:
        """One value per prediction, NaN if it is undefined."""


class CountedTogether:
    """Share of the reasons whose two terms have an edge in the graph, so that a reader can look them up."""

    name = "counted_together"
    title = "reasons whose two terms co-occur"

    def values(self, predictions: Sequence[Prediction]) -> np.ndarray:
        """One value per prediction; NaN without reasons."""
        shares = [[reason.count is not None for reason in prediction.reasons] for prediction in predictions]
        return np.array([np.mean(row) if row else np.nan for row in shares], np.float64)


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


def rationale_measures() -> list[RationaleMeasure]:
    """Return one instance of each measure: those of this file, then those of further files in this package."""
    added = [component(__name__, name, "rationale measure")() for name in component_names(__name__)]
    return [CountedTogether(), KnownFacts(), OpposingReasons(), *added]


def measure_records(
    model: CogStage, data: Dataset, relation: str, pairs: int = 512, seed: int = 0, split: str = "test"
) -> dict[str, Any]:
    """Each measure's mean over pairs of the split drawn by ``seed``, with a 95 % interval over whole heads."""
    given = sample_pairs(data, relation, split, pairs, np.random.default_rng(seed))
    predictions = model.predict_batch(given.head, given.tail, relation)
    figures = {}
    for measure in rationale_measures():
        values = np.asarray(measure.values(predictions), np.float64)
        mean, low, high = mean_interval(values, given.head)
        figures[measure.name] = {"title": measure.title, "mean": mean, "interval": [low, high]}
    return {"relation": relation, "pairs": len(given), "figures": figures}


def records_table(measured: dict[str, Any]) -> Table:
    """Return a table with one row per measure: mean and interval."""
    figures = measured["figures"].values()
    rows = tuple((f["title"], interval_text(f["mean"], f["interval"][0], f["interval"][1], 3, 3)) for f in figures)
    return Table(
        f"{measured['relation']}: measures over {measured['pairs']} prediction records", ("figure", "value"), rows
    )
