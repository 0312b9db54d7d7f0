"""Measures of rationales that need no more than the Prediction records, found by file.

A file in ``rationale_measures/`` holds one class with ``name`` (the file's), ``title`` and ``values(predictions)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cogstage.components import component, component_names
from cogstage.evaluation.significance import interval, replicate
from cogstage.knowledge.dataset import Dataset
from cogstage.rationale.record import Prediction
from cogstage.reporting import Table, interval_text

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

PACKAGE = "cogstage.evaluation.rationale_measures"


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


def rationale_measures() -> list[RationaleMeasure]:
    """Return one instance of each measure in the package ``rationale_measures``."""
    return [component(PACKAGE, name, "rationale measure")() for name in component_names(PACKAGE)]


def measure_records(
    model: CogStage, data: Dataset, relation: str, pairs: int = 512, seed: int = 0, split: str = "test"
) -> dict[str, Any]:
    """Each measure's mean over pairs of the split drawn by ``seed``, with a 95 % interval over whole heads."""
    given = data.pairs(relation, split)
    rows = np.sort(np.random.default_rng(seed).choice(len(given), min(pairs, len(given)), replace=False))
    predictions = model.predict_batch(given.head[rows], given.tail[rows], relation)
    figures = {}
    for measure in rationale_measures():
        values = np.asarray(measure.values(predictions), np.float64)
        mean, low, high = _mean(values, given.head[rows])
        figures[measure.name] = {"title": measure.title, "mean": mean, "interval": [low, high]}
    return {"relation": relation, "pairs": len(rows), "figures": figures}


def records_table(measured: dict[str, Any]) -> Table:
    """Return a table with one row per measure: mean and interval."""
    figures = measured["figures"].values()
    rows = tuple((f["title"], interval_text(f["mean"], f["interval"][0], f["interval"][1], 3, 3)) for f in figures)
    return Table(
        f"{measured['relation']}: measures over {measured['pairs']} prediction records", ("figure", "value"), rows
    )


def _mean(values: np.ndarray, head: np.ndarray) -> tuple[float, float, float]:
    defined = np.isfinite(values)
    if not defined.any():
        return float("nan"), float("nan"), float("nan")
    value = values[defined]
    drawn = replicate(lambda w: {"mean": (w @ value) / np.maximum(w.sum(axis=1), 1e-12)}, head[defined])
    return float(value.mean()), *interval(drawn["mean"])
