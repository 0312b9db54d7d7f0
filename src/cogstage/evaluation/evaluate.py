"""One trained model on one data set: classification, calibration and ranking of each relation, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cogstage.choices import FrameLibrary, SplitName, check_choice
from cogstage.errors import UsageError
from cogstage.evaluation.contraindicated import contraindicated_at
from cogstage.evaluation.measure import measure
from cogstage.evaluation.metrics import POPULATIONS, TITLES
from cogstage.evaluation.population_figures import population_figures
from cogstage.evaluation.populations import PopulationLogits, join_logits, populations
from cogstage.frames import to_frame
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import Dataset, Pairs
from cogstage.progress import SILENT, Progress
from cogstage.rationale.corrections import Corrections
from cogstage.reporting import Table, interval_text
from cogstage.reporting.figures import UNDEFINED

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


class EvaluationFigures(dict[str, Any]):
    """Figures by name, as :func:`evaluate` documents them."""

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:
        """A table with one row per relation and metric: value, and the ends of the 95 % interval."""
        rows = [
            {"relation": relation, "metric": metric, "value": figure["value"], "low": low, "high": high}
            for relation, found in self["relations"].items()
            for metric, figure in found["metrics"].items()
            for low, high in [figure["interval"]]
        ]
        return to_frame(pa.Table.from_pylist(rows), library)


def evaluate(
    model: CogStage,
    data: Dataset,
    split: SplitName = "test",
    relations: Sequence[str] | None = None,
    ranking_heads: int = 200,
    progress: Progress = SILENT,
    candidates: int = 10,
) -> EvaluationFigures:
    """Evaluate a model: each metric of each relation, with a 95 % interval.

    Parameters
    ----------
    model, data
        A trained model, and a data set built on the same graph.
    split
        The pairs to evaluate on.
    relations
        Relations to evaluate; by default all relations of the model that have pairs in the split.
    ranking_heads
        Largest number of heads to rank; 0 turns ranking off.
    progress
        Receiver of progress reports.
    candidates
        Number of first candidates for a disorder among which known contraindications are counted; 0 for none.

    Returns
    -------
    EvaluationFigures
        A dictionary; ``to_frame()`` gives the metrics as a table. ``relations`` maps each relation to its ``pairs``,
        ``positives`` and ``metrics``. ``populations`` has facts against three kinds of negatives, the which-relation
        table and reliability, and ``contraindicated`` the contraindications among the first candidates. Probabilities
        are calibrated on dev pairs.

    Examples
    --------
    >>> model, data = cs.CogStage.load("model"), cs.Dataset.load("data")
    >>> figures = cs.evaluate(model, data, "dev", ["may_treat"], ranking_heads=0)["relations"]["may_treat"]
    >>> low, high = figures["metrics"]["auroc"]["interval"]
    >>> low <= figures["metrics"]["auroc"]["value"] <= high
    True
    """
    check_choice("split", split, SplitName)
    data.check_fits(model.vocabulary)
    for relation in relations or ():
        model.check_relation(relation)
    asked = [r for r in relations or model.relations if r in data.relations]
    missing = [r for r in relations or () if r not in data.relations]
    if missing or not asked:
        wanted = missing or list(model.relations)
        raise UsageError(f"the data set has no relation {', '.join(wanted)}; it has {', '.join(data.relations)}")
    result = EvaluationFigures(split=split, relations={})
    progress.start("Evaluating", len(asked))
    related = populations(model.graph, data, split)
    logits: list[PopulationLogits] = []
    for relation in asked:
        pairs = data.pairs(relation, split)
        if not len(pairs):
            progress.advance(1)
            continue

        def scorer(head: np.ndarray, tail: np.ndarray, relation: str = relation) -> np.ndarray:
            return model.probabilities(head, tail, relation)

        measured = measure(data, relation, scorer, split, ranking_heads, related)
        metrics = {name: figure for name, figure in measured.metrics.items() if name not in POPULATIONS}
        if measured.logits is not None:
            logits.append(measured.logits)
        result["relations"][relation] = {
            "pairs": len(pairs),
            "positives": int(pairs.label.sum()),
            "known": _known(model, relation, pairs),
            "metrics": metrics,
        }
        progress.advance(1, f"{relation} F1 {metrics['f1']['value']:.3f}")
    progress.done()
    if not result["relations"]:
        raise UsageError(f"the data set has no {split} pairs of {', '.join(asked)}")
    result["populations"] = population_figures(related, join_logits(logits))
    counted = contraindicated_at(model, data, candidates) if candidates else None
    result["contraindicated"] = counted.to_dict() if counted else None
    return result


def known_warnings(result: dict[str, Any]) -> list[str]:
    """A line per relation whose held-out facts the model was trained on; such figures mean nothing."""
    if result["split"] == "train":
        return []
    return [
        f"{relation}: {figures['known']:,} of {figures['positives']:,} {result['split']} facts are training facts of "
        "the model; evaluate on the data set it was trained on, or hold these facts out and train again"
        for relation, figures in result["relations"].items()
        if figures["known"]
    ]


def correction_warnings(corrections: Corrections, vocabulary: Vocabulary, data: Dataset, split: str) -> list[str]:
    """A line if some corrections are about pairs of the split, in either direction: they reveal part of the answers."""
    held_out = {
        frozenset(pair)
        for relation in data.relations
        for pairs in [data.pairs(relation, split)]
        for pair in zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)
    }
    judged = {frozenset((vocabulary.find(entry.head), vocabulary.find(entry.tail))) for entry in corrections.entries}
    both = len(judged & held_out)
    if not both:
        return []
    return [f"{both} of {len(judged)} corrected pairs are {split} pairs, so the corrections reveal some of the answers"]


def _known(model: CogStage, relation: str, pairs: Pairs) -> int:
    """How many positive pairs are training facts of the model."""
    held = pairs.label == 1
    number = np.full(int(held.sum()), model.all_relations.index(relation))
    return int(model.facts.contains(pairs.head[held], number, pairs.tail[held]).sum())


def figures_table(result: dict[str, Any]) -> Table:
    """The figures: one row per relation, each value with its interval."""
    found = result["relations"]
    names = list(dict.fromkeys(name for relation in found.values() for name in relation["metrics"]))
    rows = tuple(
        (
            relation,
            f"{figures['pairs']:,}",
            *(_cell(figures["metrics"].get(name)) for name in names),
        )
        for relation, figures in found.items()
    )
    columns = ("relation", "pairs", *(TITLES[name] for name in names))
    return Table(f"Figures on {result['split']} pairs, with 95 % intervals", columns, rows)


def _cell(figure: dict[str, Any] | None) -> str:
    return UNDEFINED if figure is None else interval_text(figure["value"], *figure["interval"])
