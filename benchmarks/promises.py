"""Every promise about reasons, checked on all test pairs of a data set with a trained model.

    python -m benchmarks promises --model MODEL --dataset DATASET

For each relation: how far the shown sum is from the logit, how far the stated effect is from what removal does, how
many removals of a reason for raise p, Kendall's τ of the order shown with leave-one-out, restated targets.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import parser, report

BATCH = 256


def check(model: Any, data: Any, relation: str, split: str) -> dict[str, Any]:
    """One row of the table."""
    from scipy.stats import kendalltau

    pairs, target, calibration = (
        data.pairs(relation, split),
        data.relations.index(relation),
        model.calibration[relation],
    )
    worst_sum = worst_effect = 0.0
    raised = removed = restated = kept = yes = 0
    taus: list[float] = []
    for at in range(0, len(pairs), BATCH):
        head, tail = pairs.head[at : at + BATCH], pairs.tail[at : at + BATCH]
        logit = model.logits(head, tail, relation)
        arrays = model.predictor.reasons(model.predictor.view(head, tail), target, calibration)
        assert arrays.pair_share is not None
        start = arrays.baseline + arrays.pair_share.sum(1)
        worst_sum = max(worst_sum, float(np.abs(start + arrays.share.sum(1) - logit).max()))
        restated += int(((arrays.head == head[:, None]) & (arrays.tail == tail[:, None]) & (arrays.share != 0)).sum())
        saying_yes = logit >= 0
        yes += int(saying_yes.sum())
        kept += int((start + np.maximum(arrays.share, 0).sum(1) >= -1e-9)[saying_yes].sum())
        found = model.predictor.removable(head, tail, target)
        order = np.argsort(-found.score, axis=1, kind="stable")[:, : model.config.reasons]
        effect = []
        for column in order.T:
            keep = np.ones(found.score.shape, bool)
            keep[np.arange(len(column)), column] = False
            effect.append(calibration.logits(found.decide(keep)) - logit)
        effects = np.stack(effect, 1)
        shown = arrays.share[:, : effects.shape[1]] > 0
        worst_effect = max(
            worst_effect, float(np.abs((effects - arrays.effect[:, : effects.shape[1]])[shown]).max(initial=0))
        )
        raised, removed = raised + int((effects[shown] > 1e-6).sum()), removed + int(shown.sum())
        for row in range(len(head)):
            mine = shown[row] & (np.abs(effects[row]) > 1e-6)
            if mine.sum() > 1:
                taus.append(float(kendalltau(arrays.share[row, : len(mine)][mine], -effects[row][mine]).statistic))
    return {
        "relation": relation,
        "pairs": len(pairs),
        "largest |sum - logit|": worst_sum,
        "largest |effect - stated|": worst_effect,
        "removals that raise p": f"{raised} of {removed}",
        "mean τ": float(np.mean(taus)),
        "yes kept by reasons for": f"{kept} of {yes}",
        "restated targets": restated,
    }


def main(argv: list[str] | None = None) -> None:
    """Print a row per relation."""
    options = parser(__doc__)
    options.add_argument("--model", type=Path, help="Model folder.")
    options.add_argument("--dataset", type=Path, help="Data set folder.")
    options.add_argument("--split", default="test")
    asked = options.parse_args(argv)
    if asked.model is None or asked.dataset is None:
        from benchmarks.planted import Plan, planted
        from cogstage.estimator import CogStage

        graph, data = planted(Plan(facts=400))
        model = CogStage("all", dimension=16, tower=16, associations=8, recognition_passes=4).fit(graph, data)
    else:
        from cogstage.estimator import CogStage
        from cogstage.knowledge.dataset import Dataset

        model, data = CogStage.load(asked.model), Dataset.load(asked.dataset)
    rows = [check(model, data, relation, asked.split) for relation in model.relations]
    report("promises", rows, asked.out, {"split": asked.split})


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
