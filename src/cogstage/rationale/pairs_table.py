"""Predictions for a table of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cogstage.errors import CogstageError
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction
from cogstage.tables import BadRows, read_rows

if TYPE_CHECKING:
    from cogstage.trained_model import TrainedModel


def predict_pairs_table(
    model: TrainedModel, path: Path, relation: str | None = None, k: int | None = None, choose: Filter | None = None
) -> tuple[list[Prediction], BadRows]:
    """Predictions in the order of the table (head, tail and optionally relation), and the rows that were left out.

    A row without a relation is predicted for ``relation``, or for the relation with the strongest verdict.
    """
    bad = BadRows(skip=True)
    asked: list[tuple[int, int, str | None]] = []
    for row in read_rows(path, required=("head", "tail"), optional=("relation",), bad=bad):
        try:
            head, tail = model.vocabulary.find(str(row["head"])), model.vocabulary.find(str(row["tail"]))
            model.check_pair(head, tail)
            name = row["relation"] or relation
            if name:
                model.check_relation(str(name))
            asked.append((head, tail, str(name) if name else None))
        except CogstageError as error:
            bad.report(f"{row.where()}: {error}")
    return predict_pairs(model, asked, k, choose), bad


def predict_pairs(
    model: TrainedModel,
    pairs: Sequence[tuple[int, int, str | None]],
    k: int | None = None,
    choose: Filter | None = None,
) -> list[Prediction]:
    """Predict (head, tail, relation) in their order; None is the relation with the strongest verdict on the pair."""
    relations: list[str | None] = [relation for *_, relation in pairs]
    undecided = [row for row, relation in enumerate(relations) if relation is None]
    if undecided:
        profiles = model.profiles([pairs[row][0] for row in undecided], [pairs[row][1] for row in undecided])
        for row, name in zip(undecided, profiles.likeliest(), strict=True):
            relations[row] = name
    by_relation: dict[str, list[int]] = {}
    for row, relation in enumerate(relations):
        by_relation.setdefault(str(relation), []).append(row)
    predictions: dict[int, Prediction] = {}
    for name, rows in by_relation.items():
        heads, tails = [pairs[row][0] for row in rows], [pairs[row][1] for row in rows]
        predictions |= zip(rows, model.predict_batch(heads, tails, name, k, choose), strict=True)
    return [predictions[row] for row in range(len(pairs))]
