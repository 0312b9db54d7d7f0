"""Figures that stay with a model and that the explorer's About page shows: on dev from training, on test when asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cogstage.artefact import add_text, to_json
from cogstage.evaluation.metrics import reliability
from cogstage.reporting.release import TEST_FIGURES

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.knowledge.dataset import Dataset, FittingView

BINS = 10
SHOWN = ("f1", "precision", "recall", "auroc", "auprc", "brier", "ece")


def reliability_of(
    model: CogStage, data: FittingView | Dataset, relations: Iterable[str], split: str
) -> dict[str, list[dict[str, float]]]:
    """By relation, bins of pairs: their mean probability, the share that is true, and how many there are."""
    found = {}
    for relation in relations:
        pairs = data.pairs(relation, split)
        if len(pairs):
            bins = reliability(pairs.label, model.probabilities(pairs.head, pairs.tail, relation), BINS)
            rows = zip(*(bins[name].tolist() for name in ("probability", "positives", "pairs")), strict=True)
            found[relation] = [{"predicted": p, "true": share, "pairs": int(n)} for p, share, n in rows]
    return found


def keep_test_figures(folder: Path, model: CogStage, data: Dataset, figures: Mapping[str, Mapping[str, float]]) -> None:
    """Write a model's figures on test pairs, by relation and measure, into its folder."""
    kept: dict[str, Any] = {
        "model": model.explainer.provenance.model,
        "relations": {
            relation: {
                "pairs": len(data.pairs(relation, "test")),
                **{name: float(by_name[name]) for name in SHOWN if name in by_name},
            }
            for relation, by_name in figures.items()
        },
        "reliability": reliability_of(model, data, figures, "test"),
    }
    add_text(folder, TEST_FIGURES, to_json(kept))
