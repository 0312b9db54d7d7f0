"""Everything that ``evaluate`` reports of a model: figures, popularity rows, rationales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cogstage.choices import SplitName
from cogstage.evaluation.contraindicated import ContraindicatedFigures
from cogstage.evaluation.evaluate import correction_warnings, evaluate, known_warnings
from cogstage.evaluation.evaluation_report import evaluation_report
from cogstage.evaluation.floor_rows import add_floor, floor_table
from cogstage.evaluation.population_figures import (
    by_relation_table,
    populations_table,
    reliability_table,
    which_by_relation_table,
    which_table,
)
from cogstage.evaluation.rationale_figures import measure_rationales
from cogstage.evaluation.rationale_measures import measure_records, records_table
from cogstage.evaluation.reference_set import ReferenceSet, evaluate_on_reference
from cogstage.knowledge.dataset import Dataset
from cogstage.progress import SILENT, Progress
from cogstage.rationale.corrections import Corrections
from cogstage.reporting import Report, Section, Table

if TYPE_CHECKING:
    from cogstage.estimator import CogStage


def evaluate_on_dataset(
    model: CogStage,
    data: Dataset,
    split: SplitName = "test",
    relations: Sequence[str] = (),
    ranking_heads: int = 200,
    also: Sequence[CogStage] | None = None,
    rationale_pairs: int = 512,
    seed: int = 0,
    progress: Progress = SILENT,
    corrections: Corrections | None = None,
    candidates: int = 10,
) -> tuple[dict[str, Any], Report]:
    """Figures of a model on a data set, and their report; ``corrections`` are verdicts that all models take.

    Rationales are measured unless ``also`` is None; it holds the same model trained with other seeds, for stability.
    """
    verdicts = corrections or Corrections()
    model = model.corrected(verdicts)
    result = evaluate(model, data, split, relations or None, ranking_heads, progress, candidates)
    add_floor(result, model.graph, data, ranking_heads, progress)
    result["corrections"] = len(verdicts)
    result["warnings"] += known_warnings(result) + correction_warnings(verdicts, model.vocabulary, data, split)
    tables = [*_population_tables(result), floor_table(result)]
    if also is not None:
        names = relations or model.relations
        models = [model, *(other.corrected(verdicts) for other in also)]
        measured = [measure_rationales(models, data, name, rationale_pairs, seed, split, progress) for name in names]
        records = [measure_records(model, data, name, rationale_pairs, seed, split) for name in names]
        result["rationales"] = [figures.to_dict() for figures in measured]
        result["records"] = records
        for figures, record in zip(measured, records, strict=True):
            tables += [*figures.tables(), records_table(record)]
    return result, evaluation_report(model, data, result, tables, seed)


def _population_tables(result: dict[str, Any]) -> list[Table]:
    """Populations and which relation, the model beside the popularity rows, then the model by relation."""
    found, split = result["populations"], result["split"]
    rows = {"The model": found, **result["floor_populations"]}
    tables = [
        populations_table({name: row["average"] for name, row in rows.items()}, split),
        which_table({name: row["which_relation"] for name, row in rows.items()}, split),
        by_relation_table(found),
        which_by_relation_table(found),
        reliability_table(found),
    ]
    counted = result["contraindicated"]
    return tables + ([ContraindicatedFigures(**counted).table()] if counted else [])


def figures_of(result: dict[str, Any]) -> dict[str, dict[str, float]]:
    """The values of a data set's figures, by relation and measure, without those that are undefined."""
    return {
        relation: {name: figure["value"] for name, figure in found["metrics"].items() if figure["value"] is not None}
        for relation, found in result["relations"].items()
    }


def evaluate_on_reference_set(
    model: CogStage, reference: ReferenceSet, name: str, relation: str | None = None
) -> tuple[dict[str, Any], Report]:
    """Figures of a model on a reference set called ``name``, and their report."""
    measured = evaluate_on_reference(model, reference, relation)
    result = {"reference": name, **measured.to_dict(), "warnings": measured.warnings()}
    missing = ", ".join(measured.missing[:20]) + (" and others" if len(measured.missing) > 20 else "")
    notes = [f"Not in the graph: {missing}."] if missing else []
    return result, Report(
        f"Evaluation on the reference set {name}", measured.warnings(), [Section("Figures", [measured.table()])], notes
    )
