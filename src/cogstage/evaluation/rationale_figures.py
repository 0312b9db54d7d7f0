"""All figures about the rationales of a model, gathered and laid out for the terminal, JSON and the report."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cogstage.evaluation.faithfulness import KS, Faithfulness, measure_faithfulness
from cogstage.evaluation.stability import Ablation, Stability, ablations, stability
from cogstage.knowledge.dataset import Dataset
from cogstage.progress import SILENT, Progress
from cogstage.reporting import Table

if TYPE_CHECKING:
    from cogstage.estimator import CogStage

CONTROLS = ("top", "random", "lowest")


@dataclass(frozen=True)
class RationaleFigures:
    """Faithfulness, ablations, and stability where several models were given."""

    faithfulness: Faithfulness
    ablations: list[Ablation]
    stability: Stability | None

    def to_dict(self) -> dict[str, Any]:
        return {
            **self.faithfulness.to_dict(),
            "ablations": [dataclasses.asdict(ablation) for ablation in self.ablations],
            "stability": dataclasses.asdict(self.stability) if self.stability else None,
        }

    def tables(self) -> list[Table]:
        """Tables with intervals: removal of several reasons, of single ones, ablations and stability."""
        return [self._removal(), self._single(), self._ablations(), *([self._stability()] if self.stability else [])]

    def _removal(self) -> Table:
        measured = self.faithfulness
        rows = []
        kinds = ("comprehensiveness@{k}, {c}", "sufficiency@{k}, {c}", "decision kept by {c}@{k} alone")
        names = ("p falls without them", "p falls with them alone", "positive with them alone")
        for kind, words in zip(kinds, names, strict=True):
            for k in KS:
                cells = [_cell(measured, kind.format(k=k, c=control)) for control in CONTROLS]
                rows.append((f"{words}, K={k}", *cells))
        caption = (
            f"{measured.relation}: {measured.pairs} pairs predicted positive; the K strongest reasons for, K at random "
            "and the K weakest, not recognised; mean and 95 % interval over heads"
        )
        return Table(caption, ("removal", "top K", "random K", "lowest K"), tuple(rows))

    def _single(self) -> Table:
        measured = self.faithfulness
        names = [
            "decision turned without top@5",
            "Kendall's τ, not recognised",
            "Kendall's τ with ties, not recognised",
            "removal raises p, top@5, not recognised",
            "Kendall's τ, not recalled",
            "Kendall's τ with ties, not recalled",
            "removal raises p, top@5, not recalled",
            "NAOPC",
            "effective reasons",
            "precision@5 on held-out facts, top",
            "precision@5 on held-out facts, random",
        ]
        rows = [(name, _cell(measured, name)) for name in names]
        rows.append(("reasons that restate the target", f"{measured.restated} of {measured.examined:,}"))
        return Table(f"{measured.relation}: basis of the decision", ("figure", "value"), tuple(rows))

    def _ablations(self) -> Table:
        rows = [
            (a.name, f"{a.f1:.3f}", f"{a.auroc:.3f}", f"{a.comprehensiveness:.3f}", f"{a.overlap:.3f}")
            for a in self.ablations
        ]
        caption = "Ablation of the weights: the same pairs with uniform weights, and with shuffled parameters"
        columns = ("variant", "F1", "AUROC", "comprehensiveness@5", "overlap of top 5")
        return Table(caption, columns, tuple(rows))

    def _stability(self) -> Table:
        assert self.stability is not None
        s = self.stability
        rows = ((f"Jaccard@{s.k}", f"{s.jaccard:.3f}", f"{s.chance:.3f}"),)
        return Table(f"Stability over {s.models} models, {s.pairs} pairs", ("figure", "models", "chance"), rows)


def measure_rationales(
    models: Sequence[CogStage],
    data: Dataset,
    relation: str,
    pairs: int = 512,
    seed: int = 0,
    split: str = "test",
    progress: Progress = SILENT,
) -> RationaleFigures:
    """Faithfulness and ablations of the first model; stability over all of them where there are several."""
    model = models[0]
    return RationaleFigures(
        measure_faithfulness(model, data, relation, pairs, seed, split=split, progress=progress),
        ablations(model, data, relation, pairs, seed, split),
        stability(models, data, relation, pairs=pairs, seed=seed, split=split) if len(models) > 1 else None,
    )


def _cell(measured: Faithfulness, name: str) -> str:
    low, high = measured.interval(name)
    return f"{measured.mean(name):.3f} [{low:.3f}, {high:.3f}]"
