"""Train on one half of the literature, answer on the other: does a model travel, and what of terms it never met?

The halves have different sources and about as much text. Concepts in at least five documents of both make the shared
vocabulary; facts are split once, on it. A model trained on one half answers with the counts of the other
(``evaluate --graph``), beside the same model at home and a model trained there on the same facts. New terms are
concepts that only the second half has; cold heads are in the graph, but in no training fact.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import report
from benchmarks.studies import CONCEPTS, built_dataset, built_graph, need_files, study_folder, study_parser

if TYPE_CHECKING:
    from cogstage.estimator import CogStage
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset, Pairs

FIRST = ("pubmed21n1298", "ohsumed")  # 47 of the 96 MB of text
SPLIT = "dev"


def halves(documents: Path, folder: Path, first: tuple[str, ...]) -> list[Path]:
    """The documents of the sources ``first``, and all others, as two files."""
    from cogstage.tables import open_bytes

    paths = [folder / "first.jsonl", folder / "second.jsonl"]
    if not all(path.exists() for path in paths):
        parts = [path.with_suffix(".part") for path in paths]
        with open_bytes(documents) as lines, parts[0].open("wb") as here, parts[1].open("wb") as there:
            for line in lines:
                (here if json.loads(line)["source"] in first else there).write(line)
        for part, path in zip(parts, paths, strict=True):
            part.rename(path)
    return paths


def shared_lexicon(lexicon: Path, graphs: list[Graph], out: Path) -> Path:
    """The rows of the lexicon whose concept every graph has."""
    kept = set.intersection(*(set(graph.vocabulary.concept) for graph in graphs))
    heading, *lines = lexicon.read_text(encoding="utf-8").splitlines(keepends=True)
    column = heading.rstrip("\n").split("\t").index("concept")
    chosen = [line for line in lines if line.rstrip("\n").split("\t")[column] in kept]
    out.write_text(heading + "".join(chosen), encoding="utf-8")
    return out


def fitted(out: Path, graph: Graph, data: Dataset, seed: int, **options: Any) -> CogStage:
    """The model in ``out``, trained if it is not there."""
    from cogstage.estimator import CogStage

    if not out.exists():
        CogStage("all", seed=seed, **options).fit(graph, data).save(out)
    return CogStage.load(out)


def macro_auroc(
    model: CogStage, data: Dataset, split: str, end: str = "head", nodes: np.ndarray | None = None
) -> dict[str, Any]:
    """AUROC by relation and on average, and of how many pairs: all, or those whose ``end`` is one of ``nodes``."""
    from cogstage.statistics import auroc

    found: dict[str, float | None] = {}
    count = 0
    for relation in model.relations:
        pairs: Pairs = data.pairs(relation, split)
        mask = np.ones(len(pairs), bool) if nodes is None else nodes[getattr(pairs, end)]
        value = auroc(pairs.label[mask], model.logits(pairs.head[mask], pairs.tail[mask], relation))
        found[relation] = None if value is None else round(value, 4)
        count += int(mask.sum())
    known = [value for value in found.values() if value is not None]
    return {"pairs": count, **found, "AUROC": round(float(np.mean(known)), 4) if known else None}


def main(argv: list[str] | None = None, first: tuple[str, ...] = FIRST, **training: Any) -> None:
    """A row per situation; means over seeds."""
    from cogstage.graph.options import BuildOptions
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.table import facts_from_table

    options = study_parser(__doc__, seeds=1).parse_args(argv)
    data = Path(options.data or "literature")
    files = (data / "documents.jsonl.gz", data / "lexicon.tsv", data / "facts.tsv")
    need_files(*files)
    documents, lexicon, table = files
    facts = facts_from_table(table)
    counted = BuildOptions(**CONCEPTS)  # type: ignore[arg-type]
    with study_folder(options, "transfer") as folder:
        texts = halves(documents, folder, first)
        own = [built_graph(folder / f"own-{text.stem}", text, lexicon, counted) for text in texts]
        words = shared_lexicon(lexicon, own, folder / "lexicon.tsv")
        shared = BuildOptions(**{**CONCEPTS, "min_count": 1})  # type: ignore[arg-type]
        here, there = (built_graph(folder / f"shared-{text.stem}", text, words, shared) for text in texts)
        split = built_dataset(folder / "data", lambda out: build_dataset(here, facts, out))
        cold = built_dataset(folder / "data-cold", lambda out: build_dataset(here, facts, out, split="cold-head"))
        wide = built_dataset(folder / "data-wide", lambda out: build_dataset(own[1], facts, out))
        rows: list[dict[str, Any]] = []
        for seed in range(options.seeds):
            home = fitted(folder / f"first-{seed}", here, split, seed, **training)
            rows += [{"situation": "trained and asked on the first half", **macro_auroc(home, split, SPLIT)}]
            moved = home.on_graph(there)
            rows += [{"situation": "trained on the first, asked on the second", **macro_auroc(moved, split, SPLIT)}]
            native = fitted(folder / f"second-{seed}", there, split, seed, **training)
            rows += [{"situation": "trained and asked on the second half", **macro_auroc(native, split, SPLIT)}]
            heads = fitted(folder / f"cold-{seed}", here, cold, seed, **training)
            rows += [{"situation": "heads in no training fact", **macro_auroc(heads, cold, SPLIT)}]
            grown = home.on_graph(own[1])
            known = np.array([term in home.vocabulary.index for term in own[1].vocabulary.term])
            for end in ("head", "tail"):
                figures = [macro_auroc(grown, wide, part, end, ~known) for part in ("train", "dev", "test")]
                rows += [{"situation": f"{end} that training never met", **_pooled(figures)}]
    notes = {"nodes of both": here.n_nodes, "edges": [here.n_edges, there.n_edges], "seeds": options.seeds}
    notes |= {"nodes of the second half alone": int((~known).sum()), "split": SPLIT}
    report("transfer", _means(rows), options.out, notes, files)


def _pooled(figures: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of several splits, weighed by their pairs; none of the facts has been seen in training."""
    weight = np.array([figure["pairs"] for figure in figures], np.float64)
    pooled: dict[str, Any] = {"pairs": int(weight.sum())}
    for name in figures[0]:
        there = [(w, figure[name]) for w, figure in zip(weight, figures, strict=True) if figure[name] is not None]
        if name != "pairs":
            values, weights = [value for _, value in there], [w for w, _ in there]
            pooled[name] = round(float(np.average(values, weights=weights)), 4) if sum(weights) else None
    return pooled


def _means(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The mean of each situation over seeds."""
    situations: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        situations.setdefault(row["situation"], []).append(row)
    result = []
    for situation, alike in situations.items():
        values = {name: [row[name] for row in alike] for name in alike[0] if name != "situation"}
        means = {n: None if None in v else round(float(np.mean(v)), 4) for n, v in values.items()}
        result.append({"situation": situation, **means})
    return result


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
