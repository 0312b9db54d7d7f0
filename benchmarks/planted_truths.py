"""Where methods stand on a made-up hospital whose rules are known, and whether the reasons are true by those rules.

The terms of a fact are rarely counted together, drugs stand in notes about the patient's other disorder, findings
beside drugs are mostly symptoms of the disorder, and popular terms have many facts. The rules themselves score about
0.95: a few facts follow no rule, and a few negatives follow one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import report
from benchmarks.hospital import HARD, Hospital, Plan, write_hospital
from benchmarks.studies import METHODS, built_dataset, built_graph, comparison_rows, study_folder, study_parser

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset

QUICK = replace(HARD, terms=900, groups=12, patients=600, table=0.01, least=200)
QUICK_METHODS = ("degree", "ppmi", "recognition")
RULES = "The rules themselves"
REASONS = 5  # strongest reasons for each prediction that are checked


def hospital_data(folder: Path, plan: Plan) -> tuple[Graph, Dataset]:
    """The graph of the hospital's notes and the data set of its facts, built in ``folder`` if they are not there."""
    from cogstage.graph.options import BuildOptions
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.table import facts_from_table

    if not (folder / "graph").exists():
        write_hospital(plan, folder / "hospital")
    source = folder / "hospital"
    graph = built_graph(folder / "graph", source / "notes", source / "lexicon.tsv", BuildOptions(unit="document"))
    data = built_dataset(
        folder / "data", lambda out: build_dataset(graph, facts_from_table(source / "facts.tsv"), out, seed=plan.seed)
    )
    return graph, data


def rules_auroc(hospital: Hospital, graph: Graph, data: Dataset, split: str = "test") -> dict[str, float]:
    """The AUROC of the rules by relation: what is known of the hospital and not of single facts."""
    from cogstage.statistics import auroc

    number, found = np.array([int(concept[1:]) for concept in graph.vocabulary.term]), {}
    for relation in data.relations:
        pairs = data.pairs(relation, split)
        follows = hospital.follows(relation, number[pairs.head], number[pairs.tail])
        found[relation] = auroc(pairs.label, follows.astype(np.float64)) or float("nan")
    return found


def true_reasons(
    hospital: Hospital, model: CogStage, data: Dataset, relations: Iterable[str], split: str = "test"
) -> dict[str, Any]:
    """Of the strongest reasons for each positive prediction: how many are true by the rules, all and assumed ones."""
    true: list[bool] = []
    assumed: list[bool] = []
    answers = 0
    for relation in relations:
        pairs = data.pairs(relation, split)
        for prediction in model.predict_batch(pairs.head, pairs.tail, relation):
            if prediction.probability < 0.5:
                continue
            answers += 1
            for reason in prediction.reasons_for[:REASONS]:
                true.append(hospital.holds(reason.head.key, reason.relation, reason.tail.key))
                assumed.append(not reason.known_fact)
    mask = np.array(assumed, bool)
    return {
        "positive predictions": answers,
        "reasons": len(true),
        "true by the rules": round(float(np.mean(true)), 4) if true else None,
        "not known facts": int(mask.sum()),
        "true by the rules, of those": round(float(np.array(true)[mask].mean()), 4) if mask.any() else None,
    }


def main(argv: list[str] | None = None) -> None:
    """A row per method, the rules among them, and the share of true reasons."""
    from cogstage.estimator import CogStage
    from cogstage.evaluation.compare import compare, dataset_name

    options = study_parser(__doc__, (*METHODS, "cogstage-all-closed"), seeds=3).parse_args(argv)
    plan = QUICK if options.quick else HARD
    hospital = Hospital(plan)
    with study_folder(options, "planted_truths") as folder:
        graph, data = hospital_data(folder, plan)
        methods = list(QUICK_METHODS) if options.quick else options.methods.split(",")
        seeds = 1 if options.quick else options.seeds
        result = compare(
            graph, data, methods, seeds, folder / "compare", jobs=options.jobs, ranking_heads=0, plots=False, test=True
        )
        rows = comparison_rows(result, dataset_name(data))
        rules = rules_auroc(hospital, graph, data)
        shown = {relation: round(value, 4) for relation, value in rules.items()}
        rows.append({"method": RULES, **shown, "AUROC": round(float(np.mean(list(rules.values()))), 4)})
        model = folder / "model"
        if not model.exists():
            CogStage("all", seed=0).fit(graph, data).save(model)
        reasons = true_reasons(hospital, CogStage.load(model), data, data.relations)
        together = {
            f"{relation}: facts and negatives ever counted together": _together(graph, data, relation)
            for relation in data.relations
        }
    notes = {
        "seeds": seeds,
        "terms": graph.n_nodes,
        "edges": graph.n_edges,
        **reasons,
        **together,
        "plan": asdict(plan),
    }
    report("planted_truths", rows, options.out, notes)


def _together(graph: Graph, data: Dataset, relation: str) -> str:
    from cogstage.knowledge.time_split import never_counted

    pairs = data.pairs(relation, "test")
    counted = ~never_counted(graph, pairs)
    return f"{counted[pairs.label == 1].mean():.0%}, {counted[pairs.label == 0].mean():.0%}"


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
