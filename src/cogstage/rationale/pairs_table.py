"""Predictions for a table of pairs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cogstage.errors import CogstageError
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction
from cogstage.tables import BadRows, read_rows

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


def predict_pairs_table(
    model: CogStage, path: Path, relation: str | None = None, k: int | None = None, choose: Filter | None = None
) -> tuple[list[Prediction], BadRows]:
    """Predictions in the order of the table (head, tail and optionally relation), and the rows that were left out.

    A row without a relation is predicted for ``relation``, or for all relations of the model.
    """
    bad = BadRows(skip=True)
    asked: dict[str, list[tuple[int, int, int]]] = {}
    number = 0
    for row in read_rows(path, required=("head", "tail"), optional=("relation",), bad=bad):
        try:
            head, tail = model.vocabulary.find(str(row["head"])), model.vocabulary.find(str(row["tail"]))
            model.check_pair(head, tail)
            for name in [row["relation"] or relation] if row["relation"] or relation else model.relations:
                model.check_relation(str(name))
                asked.setdefault(str(name), []).append((number, head, tail))
                number += 1
        except CogstageError as error:
            bad.report(f"{row.where()}: {error}")
    predictions: list[tuple[int, Prediction]] = []
    for name, entries in asked.items():
        order, heads, tails = zip(*entries, strict=True)
        predictions += zip(order, model.predict_batch(heads, tails, name, k, choose), strict=True)
    return [prediction for _, prediction in sorted(predictions, key=lambda entry: entry[0])], bad
