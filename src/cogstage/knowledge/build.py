"""Build a data set: facts on a graph, split by pairs of concepts, with negatives, manifest and leakage report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, get_args

import numpy as np

from cogstage.artefact import file_hash, new_folder, to_json, write_text
from cogstage.choices import NegativeKind, SplitKind
from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import SPLITS, Dataset
from cogstage.knowledge.dataset_files import count_facts, write_tables
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.hold_out import HoldOut
from cogstage.knowledge.leakage import leakage_report
from cogstage.knowledge.leakage_text import leakage_text
from cogstage.knowledge.located import Concepts, LocatedFacts, locate
from cogstage.knowledge.negatives import DrawnNegatives, draw_negatives
from cogstage.knowledge.selection import DatasetOptions, select_facts
from cogstage.knowledge.splits import SHARES, split_facts
from cogstage.knowledge.time_split import check_graph_until, time_report, time_warnings
from cogstage.progress import SILENT, Progress
from cogstage.provenance import privacy_text, sources_of
from cogstage.reporting.release import release_markdown


def build_dataset(
    graph: Graph,
    facts: Facts,
    out: Path | str,
    negatives: NegativeKind = "degree",
    split: SplitKind = "random",
    seed: int = 0,
    minimum: int = 100,
    cap: int | None = None,
    relations: tuple[str, ...] | None = None,
    before: int | None = None,
    hold_out: HoldOut | None = None,
    progress: Progress = SILENT,
) -> Dataset:
    """Build a data set: split the facts of a graph, sample negatives and write a leakage report.

    Parameters
    ----------
    graph, facts
        The graph, and facts between its concepts.
    out
        The data set folder to write.
    negatives
        Kind of negatives in ``pairs/``, which models and evaluations use. All three kinds are sampled and saved in
        ``negatives/``.
    split, before
        How to split facts into train, dev and test. With "time", facts stated before the year ``before`` are in train
        and dev, and later facts in test.
    seed
        Random seed; the same input and seed give identical files.
    minimum, cap
        Smallest and largest number of facts per relation; relations with fewer facts are left out.
    relations
        The relations to use; None for all.
    hold_out
        Pairs to exclude from all splits and from the negatives.
    progress
        Receiver of progress reports.

    Returns
    -------
    Dataset
        The data set in ``out``.

    Examples
    --------
    >>> from cogstage.data import embedded
    >>> data = cs.build_dataset(embedded.graph(), embedded.facts(), "built", relations=("contraindicates",), cap=300)
    >>> len(data.facts("train")), data.relations
    (210, ('contraindicates',))
    """
    chosen_relations = None if relations is None else tuple(relations)
    options = DatasetOptions(negatives, split, seed, minimum, cap, chosen_relations, before)
    options.check()
    unknown_until = None if before is None else check_graph_until(graph.made_with, before)
    concepts = Concepts.from_vocabulary(graph.vocabulary, facts.matched)
    progress.start("Matching facts to the graph")
    everything, coverage = locate(facts, graph.vocabulary, concepts)
    selected = select_facts(everything, concepts, graph.vocabulary, facts.matched, options, hold_out, progress)
    chosen = selected.facts
    progress.done(f"{len(chosen):,} pairs with {len(chosen.relations)} relations")

    progress.start("Splitting facts and sampling negatives", len(get_args(NegativeKind)))
    side = split_facts(chosen, concepts, options.split, np.random.default_rng([seed, 1]), before=before or 0)
    _report_unsplittable(chosen, side, progress)
    drawn = {}
    edges = EdgeLookup(graph)
    for mode in get_args(NegativeKind):
        drawn[mode] = draw_negatives(mode, chosen, side, selected.known, concepts, edges, seed, options.split)
        progress.advance(note=mode)
    _report_missing(drawn[options.negatives], progress)
    progress.done()

    progress.start("Checking for leakage")
    report = leakage_report(graph.vocabulary.name, edges, chosen, side, drawn, concepts, options.negatives)
    if before is not None:
        of_mode, until = drawn[options.negatives], graph.made_with.get("until")
        report["time"] = time_report(before, chosen, side, of_mode, edges, until, selected.dated)
        report["warnings"] += time_warnings(report["time"], unknown_until)
    counts = count_facts(chosen, side, drawn[options.negatives])
    privacy = privacy_text(graph.made_with)
    made_with = {**asdict(options), "graph": graph.hash, "facts": facts.hash, "privacy": privacy}
    with new_folder(out, "dataset", made_with, release_markdown) as folder:
        write_tables(folder, graph.vocabulary, chosen, side, drawn, options.negatives)
        write_text(folder / "leakage.json", to_json(report))
        write_text(folder / "leakage.txt", leakage_text(report, counts))
        manifest = {
            "relations": list(chosen.relations),
            "vocabulary_hash": graph.vocabulary.hash,
            "nodes": graph.n_nodes,
            "graph": {"hash": graph.hash, "nodes": graph.n_nodes, "edges": graph.n_edges, "privacy": privacy},
            "facts": {"hash": facts.hash, "facts": len(facts)},
            "sources": _sources(graph, facts, chosen.relations),
            "seed": seed,
            "options": {**asdict(options), "shares": list(SHARES)},
            "counts": counts,
            "coverage": coverage,
            "held out": selected.held_out,
            "left out": {**selected.left_out, "pairs that no split can hold": int(np.sum(side < 0))},
            "negatives wanting": {m: _by_relation(d.short) for m, d in drawn.items()},
            "hard negatives that do not co-occur": _by_relation(drawn["hard"].not_hard),
            "files": {str(f.relative_to(folder)): file_hash(f) for f in sorted(folder.rglob("*")) if f.is_file()},
        }
        write_text(folder / "manifest.json", to_json(manifest))
    progress.done(f"{len(report['warnings'])} warnings in leakage.txt" if report["warnings"] else "none found")
    return Dataset.load(out)


def _sources(graph: Graph, facts: Facts, relations: Sequence[str]) -> dict[str, Any]:
    """Where the counts and the facts of the relations that are used come from."""
    used = {name: facts.relations[name] for name in relations}
    return sources_of(graph.made_with, {**facts.made_with, "sources": facts.sources(relations)}, used)


def _report_unsplittable(facts: LocatedFacts, side: np.ndarray, progress: Progress) -> None:
    count = int(np.sum(side < 0))
    if count:
        progress.say(
            f"warning: {count:,} facts are left out, because their two directions would fall into different splits"
        )
    for index, relation in enumerate(facts.relations):
        sizes = np.bincount(side[(facts.relation == index) & (side >= 0)], minlength=3)
        for split, size in zip(SPLITS, sizes.tolist(), strict=True):
            if not size:
                progress.say(f"warning: {relation} has no {split} facts; more facts or another split are needed")


def _report_missing(drawn: DrawnNegatives, progress: Progress) -> None:
    for (relation, split), count in sorted(drawn.short.items()):
        if count:
            progress.say(
                f"warning: {relation}, {split}: {count:,} negatives missing, because too few pairs match the facts"
            )


def _by_relation(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Nested counts by relation and split, without those that are zero."""
    nested: dict[str, dict[str, int]] = {}
    for (relation, split), count in sorted(counts.items()):
        if count:
            nested.setdefault(relation, {})[split] = count
    return nested
