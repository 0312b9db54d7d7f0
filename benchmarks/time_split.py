"""Would it have found what was found later? Text and facts up to a year against facts stated after it.

For each cut year the graph counts documents up to that year, train and dev are facts stated by then, and test are
facts stated later between the same graph's concepts, with as many negatives whose heads and tails are drawn as often as
in them. Reported apart: pairs never counted together, pairs with an end that stands in no training fact, and facts by
how many years after the cut they were stated. The hundred best candidates that were not known at the cut are compared
with what was stated later, year by year.

``--random`` measures what the text of a cut supports where later facts are known, too: a random split of all facts on
the same graph, dev pairs, with facts stated after the cut reported apart.

Facts whose year is not known count as neither; they are nowhere a negative. ``--unsure`` names years that say "about
then": their facts are dated only where the cut lies after that year.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Collection, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.harness import report
from benchmarks.studies import (
    CONCEPTS,
    built_dataset,
    built_graph,
    comparison_rows,
    need_files,
    part_auroc,
    study_folder,
    study_parser,
)

if TYPE_CHECKING:
    from cogstage.baselines.contract import Method
    from cogstage.evaluation.results import Comparison
    from cogstage.graph.cooccurrence import Graph
    from cogstage.knowledge.dataset import Dataset

TOP = 100
RANKED = ("cogstage-all", "recognition", "repel+rescal+fresh", "popularity-product")  # whose best candidates are shown
BATCH = 50_000
PERIODS = ((1, 5), (6, 10), (11, 15), (16, 25))  # years after the cut


def dated_facts_until(source: Path, out: Path, cut: int, unsure: Sequence[int]) -> Path:
    """The dated facts as they may be used at a cut: a year of ``unsure`` after the cut is no date."""
    with source.open(encoding="utf-8", newline="") as given, out.open("w", encoding="utf-8", newline="") as written:
        rows = csv.DictReader(given, delimiter="\t")
        table = csv.writer(written, delimiter="\t", lineterminator="\n")
        table.writerow(["head", "relation", "tail", "date"])
        for row in rows:
            year = row["date"][:4]
            known = year and not (int(year) in unsure and int(year) > cut)
            table.writerow([row["head"], row["relation"], row["tail"], year if known else ""])
    return out


def cut_inputs(folder: Path, data: Path, dated: Path, cut: int, unsure: Sequence[int]) -> tuple[Graph, Dataset, Path]:
    """The graph, the data set and the table of facts of a cut."""
    from cogstage.graph.options import BuildOptions
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.table import facts_from_table

    options = BuildOptions(**CONCEPTS, until=date(cut, 12, 31))  # type: ignore[arg-type]
    graph = built_graph(folder / f"graph-{cut}", data / "documents.jsonl.gz", data / "lexicon.tsv", options)
    table = dated_facts_until(dated, folder / f"facts-{cut}.tsv", cut, unsure)
    built = built_dataset(
        folder / f"data-{cut}",
        lambda out: build_dataset(graph, facts_from_table(table), out, split="time", before=cut + 1),
    )
    return graph, built, table


def parts(
    graph: Graph, data: Dataset, relation: str, stated: Mapping[tuple[int, int], int], cut: int
) -> dict[str, np.ndarray]:
    """Which test pairs are reported apart: (M,) bool each. Facts of a period stand beside negatives of their heads."""
    from cogstage.knowledge.time_split import never_counted

    pairs, facts = data.pairs(relation, "test"), data.facts("train")
    head, tail = np.isin(pairs.head, facts.head), np.isin(pairs.tail, facts.tail)
    never = never_counted(graph, pairs)
    found = {
        "never together": never,
        "counted together": ~never,
        "both ends in training facts": head & tail,
        "head in no training fact": ~head,
        "tail in no training fact": ~tail,
    }
    both = zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)
    after = np.array([stated.get(pair, cut) - cut for pair in both])  # years after the cut
    for first, last in PERIODS:
        of_period = (pairs.label == 1) & (after >= first) & (after <= last)
        beside = (pairs.label == 0) & np.isin(pairs.head, pairs.head[of_period])
        found[f"{first} to {last} years later"] = of_period | beside
    return found


def stated_in(table: Path, graph: Graph, relation: str) -> dict[tuple[int, int], int]:
    """The year of every fact of the relation between two nodes, 0 where it is not known."""
    index = {concept: node for node, concept in enumerate(graph.vocabulary.concept)}
    found: dict[tuple[int, int], int] = {}
    with table.open(encoding="utf-8", newline="") as handle:
        for row in csv.DictReader(handle, delimiter="\t"):
            head, tail = index.get(row["head"]), index.get(row["tail"])
            if row["relation"] == relation and head is not None and tail is not None:
                found[head, tail] = int(row["date"] or 0)
    return found


def best_candidates(
    method: Method, data: Dataset, relation: str, known: Collection[tuple[int, int]], top: int = TOP
) -> list[tuple[int, int]]:
    """The likeliest pairs of a training head and a training tail that are not ``known``, likeliest first."""
    number = data.relations.index(relation)
    facts = data.facts("train")
    own = facts.relation == number
    heads, tails = np.unique(facts.head[own]), np.unique(facts.tail[own])
    best: list[tuple[float, int, int]] = []
    step = max(1, BATCH // len(tails))
    for at in range(0, len(heads), step):
        chosen = heads[at : at + step]
        head, tail = np.repeat(chosen, len(tails)), np.tile(tails, len(chosen))
        new = head != tail
        head, tail = head[new], tail[new]
        score = method.scores(head, tail, relation)
        order = np.argsort(-score, kind="stable")
        fresh = ((-float(score[row]), int(head[row]), int(tail[row])) for row in order)
        taken = [row for row, _ in zip((row for row in fresh if row[1:] not in known), range(top), strict=False)]
        best = sorted(best + taken)[:top]
    return [(head, tail) for _, head, tail in best]


def hits_by_year(
    candidates: Sequence[tuple[int, int]], stated: Mapping[tuple[int, int], int], cut: int, years: Sequence[int]
) -> dict[str, float]:
    """The share of the candidates that were stated after the cut, by each year."""
    when = [stated.get(pair, 0) for pair in candidates]
    return {f"by {last}": float(np.mean([cut < year <= last for year in when])) for last in years}


def measure_cut(
    folder: Path, graph: Graph, data: Dataset, table: Path, cut: int, options: argparse.Namespace
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], dict[str, Any]]:
    """Rows of the comparison, rows of the best candidates, and what the leakage report says of the split."""
    from cogstage.evaluation.compare import compare, dataset_name

    seeds = 1 if options.quick else options.seeds
    result = compare(
        graph,
        data,
        options.methods.split(","),
        seeds,
        folder / f"compare-{cut}",
        jobs=options.jobs,
        ranking_heads=0,
        plots=False,
        test=options.test,
    )
    name, (relation, *_) = dataset_name(data), data.relations
    rows = comparison_rows(result, name)
    if options.test:
        apart = parts(graph, data, relation, stated_in(table, graph, relation), cut)
        for row, method in zip(rows, result.methods, strict=True):
            row |= {what: part_auroc(result, name, method, relation, mask) for what, mask in apart.items()}
        sizes = {what: int(mask.sum()) for what, mask in apart.items()}
    else:
        sizes = {}
    ranked = _best(graph, data, table, cut, relation, result) if options.test else []
    about = {"nodes": graph.n_nodes, "edges": graph.n_edges, "test pairs": sizes, **dict(data.leakage["time"])}
    return [{"cut": cut, **row} for row in rows], [{"cut": cut, **row} for row in ranked], about


def measure_random_split(
    folder: Path, graph: Graph, table: Path, cut: int, options: argparse.Namespace
) -> list[dict[str, Any]]:
    """Rows of a random split of the facts of all years: AUROC on dev pairs, and on those stated after the cut."""
    from cogstage.evaluation.compare import compare, dataset_name
    from cogstage.knowledge.build import build_dataset
    from cogstage.knowledge.table import facts_from_table

    data = built_dataset(
        folder / f"data-{cut}-random",
        lambda out: build_dataset(graph, facts_from_table(table), out, negatives="degree"),
    )
    methods, seeds = options.methods.split(","), 1 if options.quick else options.seeds
    where = folder / f"compare-{cut}-random"
    result = compare(graph, data, methods, seeds, where, jobs=options.jobs, ranking_heads=0, plots=False)
    name, (relation, *_) = dataset_name(data), data.relations
    pairs, stated = data.pairs(relation, "dev"), stated_in(table, graph, relation)
    year = np.array([stated.get(pair, 0) for pair in zip(pairs.head.tolist(), pairs.tail.tolist(), strict=True)])
    later = (pairs.label == 0) | (year > cut)
    return [
        {"cut": cut, **row, "stated after the cut": part_auroc(result, name, method, relation, later)}
        for row, method in zip(comparison_rows(result, name), result.methods, strict=True)
    ]


def _best(
    graph: Graph, data: Dataset, table: Path, cut: int, relation: str, result: Comparison
) -> list[dict[str, Any]]:
    from cogstage.evaluation.methods import find, title

    stated, rows = stated_in(table, graph, relation), []
    last = max(stated.values())
    years = sorted({cut + 3, cut + 5, cut + 10, last} & set(range(cut + 1, last + 1)))
    known = {pair for pair, year in stated.items() if year <= cut}
    for name in (method for method in RANKED if method in result.methods):
        method = find(name)
        method.fit(graph, data.for_fitting(), "all" if method.joint else relation, 0)
        found = hits_by_year(best_candidates(method, data, relation, known), stated, cut, years)
        rows.append({"best 100 of": title(name), **found})
    facts = data.facts("train")
    possible = len(np.unique(facts.head)) * len(np.unique(facts.tail)) - len(facts)
    later = data.facts("test")
    reach = np.isin(later.head, facts.head) & np.isin(later.tail, facts.tail)
    rows.append({"best 100 of": "chance", f"by {last}": round(float(reach.sum() / possible), 4)})
    return rows


def main(argv: list[str] | None = None) -> None:
    """A table per cut, and one of the best candidates."""
    options = study_parser(__doc__)
    options.add_argument(
        "--dated", help="table head, relation, tail, date (default: ../dated/causes.tsv beside --data)"
    )
    options.add_argument("--cuts", type=int, nargs="+", default=[1991, 2000, 2008], help="cut years")
    options.add_argument("--unsure", type=int, nargs="*", default=[1992], help="years that say 'about then'")
    options.add_argument("--test", action="store_true", help="test figures; without it, those of dev pairs alone")
    options.add_argument("--random", action="store_true", help="a random split of the facts of all years instead")
    chosen = options.parse_args(argv)
    data = Path(chosen.data or "literature")
    dated = Path(chosen.dated or data.parent / "dated" / "causes.tsv")
    files = (data / "documents.jsonl.gz", data / "lexicon.tsv", dated)
    need_files(*files)
    cuts = chosen.cuts[:1] if chosen.quick else chosen.cuts
    rows: list[dict[str, Any]] = []
    ranked: list[dict[str, Any]] = []
    about: dict[str, Any] = {"seeds": 1 if chosen.quick else chosen.seeds, "split": "test" if chosen.test else "dev"}
    with study_folder(chosen, "time_split") as folder:
        for cut in cuts:
            graph, built, table = cut_inputs(folder, data, dated, cut, chosen.unsure)
            if chosen.random:
                rows += measure_random_split(folder, graph, table, cut, chosen)
                continue
            compared, best, about[str(cut)] = measure_cut(folder, graph, built, table, cut, chosen)
            rows, ranked = rows + compared, ranked + best
    report("time_split_random" if chosen.random else "time_split", rows, chosen.out, about, files)
    if ranked:
        report("time_split_candidates", ranked, chosen.out, None, files)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
