"""The literature benchmark: methods over seeds on real public text and facts, which are not part of this repository.

The folder of the measurement holds ``graph``, ``data-NEGATIVES-SEED`` and ``compare``; what is there is used. Figures
are those of dev pairs unless ``--test`` is given.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.harness import report
from benchmarks.studies import (
    CONCEPTS,
    built_dataset,
    built_graph,
    comparison_rows,
    need_files,
    study_folder,
    study_parser,
)


def main(argv: list[str] | None = None) -> None:
    """A row per method and measure."""
    from cogstage.evaluation.compare import compare, dataset_name
    from cogstage.evaluation.metrics import TITLES
    from cogstage.graph.options import BuildOptions
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.table import facts_from_table

    options = study_parser(__doc__)
    options.add_argument("--negatives", default="degree", help="degree, uniform or hard")
    options.add_argument("--split-seed", type=int, default=0, help="seed of the split")
    options.add_argument("--ranking-heads", type=int, default=0, help="rank the tails of this many heads instead")
    options.add_argument("--test", action="store_true", help="test figures; without it, those of dev pairs alone")
    chosen = options.parse_args(argv)
    data = Path(chosen.data or "literature")
    files = (data / "documents.jsonl.gz", data / "lexicon.tsv", data / "facts.tsv")
    need_files(*files)
    with study_folder(chosen, "literature") as folder:
        counted = BuildOptions(**CONCEPTS)  # type: ignore[arg-type]
        graph = built_graph(folder / "graph", files[0], files[1], counted)
        built = built_dataset(
            folder / f"data-{chosen.negatives}-{chosen.split_seed}",
            lambda out: build_dataset(
                graph, facts_from_table(files[2]), out, negatives=chosen.negatives, seed=chosen.split_seed
            ),
        )
        methods = ["degree", "ppmi"] if chosen.quick else chosen.methods.split(",")
        seeds = 1 if chosen.quick else chosen.seeds
        result = compare(
            graph,
            built,
            methods,
            seeds,
            folder / "compare",
            jobs=chosen.jobs,
            ranking_heads=chosen.ranking_heads,
            plots=not chosen.quick,
            test=chosen.test,
        )
        rows = [
            {
                "measure": TITLES[metric],
                **{("average" if name == TITLES[metric] else name): v for name, v in row.items()},
            }
            for metric in (("mrr", "hits@10") if chosen.ranking_heads else ("f1", "auroc"))
            for row in comparison_rows(result, dataset_name(built), metric)
        ]
        worked = sum(cell["cpu_seconds"] for key, cell in result.cells.items() if key.dataset == dataset_name(built))
    about = {"nodes": graph.n_nodes, "edges": graph.n_edges, "negatives": chosen.negatives, "seeds": seeds}
    usual = chosen.negatives == "degree" and chosen.split_seed == 0
    name = "literature" if usual else f"literature_{chosen.negatives}_{chosen.split_seed}"
    name += "_ranking" if chosen.ranking_heads else ""
    report(name, rows, chosen.out, {**about, "split": result.split}, files, worked)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
