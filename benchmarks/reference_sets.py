"""Does the model tell adverse from harmless pairs that others labelled? The reference sets of pharmacovigilance.

Every reference pair, and every fact between a reference drug and a concept of its outcome, is held out before training.
Terms count from one document on, since many reference drugs are rare in the text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import report
from benchmarks.studies import CONCEPTS, built_dataset, built_graph, need_files, study_folder, study_parser
from benchmarks.transfer import fitted

RELATION = "causes"


def combined(tables: list[Path], out: Path) -> Path:
    """Tables with the same columns as one file."""
    heading, *lines = tables[0].read_text(encoding="utf-8").splitlines(keepends=True)
    for table in tables[1:]:
        lines += table.read_text(encoding="utf-8").splitlines(keepends=True)[1:]
    out.write_text(heading + "".join(lines), encoding="utf-8")
    return out


def main(argv: list[str] | None = None, **training: Any) -> None:
    """A row per reference set and score: AUROC overall and within outcome, means over seeds."""
    from cogstage.evaluation.reference_set import ReferenceSet, evaluate_on_reference, map_pairs
    from cogstage.graph.options import BuildOptions
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.hold_out import HoldOut
    from cogstage.knowledge.table import facts_from_table

    options = study_parser(__doc__, seeds=3)
    options.add_argument("--references", help="folder of the sets (default: ../pharmacovigilance beside --data)")
    options.add_argument("--min-count", type=int, default=1, help="least number of documents per term")
    options.add_argument("--coverage", action="store_true", help="only say which pairs the graph has; train nothing")
    chosen = options.parse_args(argv)
    data = Path(chosen.data or "literature")
    references = Path(chosen.references or data.parent / "pharmacovigilance")
    sets, outcomes = [references / "omop.tsv", references / "euadr.tsv"], references / "outcomes.tsv"
    files = (data / "documents.jsonl.gz", data / "lexicon.tsv", data / "facts.tsv", *sets, outcomes)
    need_files(*files)
    rows: list[dict[str, Any]] = []
    with study_folder(chosen, "reference_sets") as folder:
        counted = BuildOptions(**{**CONCEPTS, "min_count": chosen.min_count})  # type: ignore[arg-type]
        graph = built_graph(folder / f"graph-{chosen.min_count}", files[0], files[1], counted)
        for path in sets:
            mapped = map_pairs(ReferenceSet.load(path, outcomes), graph.vocabulary)
            share = round(len(mapped.label) / mapped.asked, 4)
            about = {"set": path.stem, "pairs": mapped.asked, "covered": share}
            if chosen.coverage:
                rows.append({**about, "positives": int(mapped.label.sum()), "missing": len(mapped.missing)})
                continue
            held = HoldOut.read(combined(sets, folder / "held_out.tsv"), outcomes)
            built = built_dataset(
                folder / f"data-{chosen.min_count}",
                lambda out, held=held: build_dataset(graph, facts_from_table(files[2]), out, hold_out=held),
            )
            found = []
            for seed in range(1 if chosen.quick else chosen.seeds):
                model = fitted(folder / f"model-{chosen.min_count}-{seed}", graph, built, seed, **training)
                found.append(evaluate_on_reference(model, ReferenceSet.load(path, outcomes), RELATION))
            if any(result.known for result in found):
                raise SystemExit("reference pairs are among the training facts; the hold-out has failed")
            for score in found[0].rows:
                rows.append({**about, "score": score, **_figures([result.rows[score] for result in found])})
    notes = {"nodes": graph.n_nodes, "edges": graph.n_edges, "min_count": chosen.min_count, "seeds": chosen.seeds}
    report("reference_sets", rows, chosen.out, notes, files)


def _figures(found: list[dict[str, Any]]) -> dict[str, float]:
    """Means over seeds of the AUROC and of the ends of its interval."""
    result = {}
    for name, title in (("overall", "AUROC"), ("within", "within outcome")):
        values = [[one[name]["value"], *one[name]["interval"]] for one in found]
        mean, low, high = np.mean(values, axis=0).tolist()
        result |= {title: round(mean, 4), f"{title}, low": round(low, 4), f"{title}, high": round(high, 4)}
    return result


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
