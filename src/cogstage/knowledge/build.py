"""Build a data set: facts on a graph, split by pairs of concepts, with negatives, manifest and leakage report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import file_hash, new_folder, to_json, write_text
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.privacy import privacy_text
from cogstage.knowledge.choices import one_of
from cogstage.knowledge.dataset import SPLITS, Dataset
from cogstage.knowledge.edge_lookup import EdgeLookup
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.hold_out import HoldOut, hold_out_report, taken_out
from cogstage.knowledge.leakage import leakage_report
from cogstage.knowledge.leakage_text import leakage_text
from cogstage.knowledge.located import Concepts, Located, locate
from cogstage.knowledge.negatives import Drawn, Negatives, draw_negatives
from cogstage.knowledge.splits import SHARES, SplitKind, split_facts
from cogstage.knowledge.time_split import check_graph_until, dated_facts, time_report, time_warnings
from cogstage.progress import SILENT, Progress

FEW = 1_000  # facts of a relation below which results are shaky; the paper took no relation with fewer


@dataclass(frozen=True)
class BuildOptions:
    """How a data set is built."""

    negatives: Negatives = Negatives.DEGREE  # which negatives stand in pairs/
    split: SplitKind = SplitKind.RANDOM
    seed: int = 0
    minimum: int = 100  # relations with fewer facts in the graph are left out
    cap: int | None = None  # at most so many facts a relation, drawn at random
    relations: tuple[str, ...] | None = None  # only these; None takes all that the facts hold
    before: int | None = None  # with a split by time: train and dev are facts stated before this year, test later ones

    def check(self) -> None:
        """Raise where an option makes no sense."""
        if self.minimum < 1:
            raise UsageError(f"the minimum of facts a relation must be at least 1, not {self.minimum}")
        if self.cap is not None and self.cap < self.minimum:
            raise UsageError(f"the cap of {self.cap} facts a relation lies below the minimum of {self.minimum}")
        if self.seed < 0:
            raise UsageError(f"the seed must not be negative, and is {self.seed}")
        if (self.split is SplitKind.TIME) != (self.before is not None):
            raise UsageError("split=time and before=YEAR belong together; give both or neither")


def build_dataset(
    graph: Graph,
    facts: Facts,
    out: Path | str,
    negatives: Negatives | str = Negatives.DEGREE,
    split: SplitKind | str = SplitKind.RANDOM,
    seed: int = 0,
    minimum: int = 100,
    cap: int | None = None,
    relations: tuple[str, ...] | None = None,
    before: int | None = None,
    hold_out: HoldOut | None = None,
    progress: Progress = SILENT,
) -> Dataset:
    """Build the data set folder ``out`` and return it; the same input and seed give the same bytes.

    All three kinds of negatives are drawn and saved under ``negatives/``; the one named by ``negatives`` also stands
    in ``pairs/``, where models and evaluations read. ``split="time"`` takes facts stated before the year ``before`` for
    train and dev, and later ones for test. Facts that join a pair of ``hold_out`` stand in no split, and the pair is
    nowhere a negative.
    """
    options = BuildOptions(
        one_of(Negatives, negatives, "negatives"),
        one_of(SplitKind, split, "split"),
        seed,
        minimum,
        cap,
        None if relations is None else tuple(relations),
        before,
    )
    options.check()
    unknown_until = None if before is None else check_graph_until(graph.made_with, before)
    concepts = Concepts.of(graph.vocabulary, facts.matched)
    progress.start("Placing the facts on the graph")
    everything, coverage = locate(facts, graph.vocabulary, concepts)
    known = np.unique(everything.pair)
    usable = everything
    kept: dict[str, int] = {}
    held: dict[str, Any] = {}
    if hold_out is not None:
        pairs, missing = hold_out.numbers(graph.vocabulary, concepts, facts.matched)
        known = np.union1d(known, pairs)
        mask, taken = taken_out(usable, pairs)
        usable, held = usable.take(~mask), hold_out_report(hold_out, pairs, missing, taken)
        said = ", ".join(f"{name} {count:,}" for name, count in taken.items()) or "none"
        progress.say(f"held out: {len(pairs):,} pairs of concepts; facts taken out: {said}")
    if before is not None:
        mask, kept = dated_facts(usable, before)
        usable = usable.take(mask)
        progress.say("facts " + ", ".join(f"{what}: {count:,}" for what, count in kept.items()))
    chosen, left_out = _choose(usable, options, progress)
    progress.done(f"{len(chosen):,} pairs hold {len(chosen.relations)} relations")

    progress.start("Splitting and drawing negatives", len(Negatives))
    side = split_facts(chosen, concepts, options.split, np.random.default_rng([seed, 1]), before=before or 0)
    _report_unsplittable(chosen, side, progress)
    drawn = {}
    edges = EdgeLookup(graph)
    for mode in Negatives:
        drawn[mode] = draw_negatives(mode, chosen, side, known, concepts, edges, seed, options.split)
        progress.advance(note=mode.value)
    _report_missing(drawn[options.negatives], progress)
    progress.done()

    progress.start("Looking for leaks")
    report = leakage_report(graph.vocabulary.name, edges, chosen, side, drawn, concepts)
    if before is not None:
        of_mode, until = drawn[options.negatives], graph.made_with.get("until")
        report["time"] = time_report(before, chosen, side, of_mode, edges, until, kept)
        report["warnings"] += time_warnings(report["time"], unknown_until)
    counts = _counts(chosen, side, drawn[options.negatives])
    privacy = privacy_text(graph.made_with)
    made_with = {**asdict(options), "graph": graph.hash, "facts": facts.hash, "privacy": privacy}
    with new_folder(out, "dataset", made_with) as folder:
        _write_tables(folder, graph, chosen, side, drawn, options)
        write_text(folder / "leakage.json", to_json(report))
        write_text(folder / "leakage.txt", leakage_text(report, counts))
        manifest = {
            "relations": list(chosen.relations),
            "vocabulary_hash": graph.vocabulary.hash,
            "nodes": graph.n_nodes,
            "graph": {"hash": graph.hash, "nodes": graph.n_nodes, "edges": graph.n_edges, "privacy": privacy},
            "facts": {"hash": facts.hash, "facts": len(facts)},
            "seed": seed,
            "options": {**asdict(options), "shares": list(SHARES)},
            "counts": counts,
            "coverage": coverage,
            "held out": held,
            "left out": {**left_out, "pairs that no split can hold": int(np.sum(side < 0))},
            "negatives wanting": {m.value: _by_relation(d.short) for m, d in drawn.items()},
            "hard negatives that do not co-occur": _by_relation(drawn[Negatives.HARD].not_hard),
            "files": {str(f.relative_to(folder)): file_hash(f) for f in sorted(folder.rglob("*")) if f.is_file()},
        }
        write_text(folder / "manifest.json", to_json(manifest))
    progress.done(f"{len(report['warnings'])} things to look at in leakage.txt" if report["warnings"] else "none found")
    return Dataset.load(out)


def _choose(facts: Located, options: BuildOptions, progress: Progress) -> tuple[Located, dict[str, Any]]:
    """The facts of the relations that have enough, at most ``cap`` of each; and what was left out."""
    wanted = options.relations or facts.relations
    unknown = [name for name in wanted if name not in facts.relations]
    if unknown:
        raise UsageError(f"no facts of {', '.join(unknown)}; the facts hold {', '.join(facts.relations)}")
    size = np.bincount(facts.relation, minlength=len(facts.relations))
    few: dict[str, int] = {}
    keep = []
    for index, name in enumerate(facts.relations):
        if name not in wanted:
            continue
        if size[index] < options.minimum:
            few[name] = int(size[index])
            progress.say(
                f"warning: {name} is left out: {size[index]:,} facts in the graph, {options.minimum:,} are needed "
                "(minimum)"
            )
            continue
        keep.append(index)
        if size[index] < FEW:
            progress.say(f"warning: {name} has only {size[index]:,} facts in the graph; its results will be shaky")
    if not keep:
        found = ", ".join(f"{name} {count:,}" for name, count in few.items())
        raise CogstageError(
            f"no relation has {options.minimum:,} facts with both ends in the graph ({found}); lower minimum, or "
            "use a graph with more terms"
        )
    mask = np.isin(facts.relation, keep)
    capped: dict[str, int] = {}
    if options.cap is not None:
        rng = np.random.default_rng([options.seed, 2])
        for index in keep:
            rows = np.flatnonzero(facts.relation == index)
            if len(rows) > options.cap:
                order = np.unique(facts.pair[rows], return_inverse=True)[1].ravel()
                rank = rng.permutation(int(order.max()) + 1)[order]  # whole pairs of concepts go or stay
                mask[rows[np.argsort(rank, kind="stable")[options.cap :]]] = False
                capped[facts.relations[index]] = len(rows) - options.cap
    chosen = facts.take(mask)
    renumber = np.full(len(facts.relations), -1, np.int16)
    renumber[keep] = np.arange(len(keep))
    names = tuple(facts.relations[index] for index in keep)
    chosen = Located(names, chosen.head, renumber[chosen.relation], chosen.tail, chosen.pair, chosen.year)
    return chosen, {"relations with too few facts": few, "facts above the cap": capped}


def _report_unsplittable(facts: Located, side: np.ndarray, progress: Progress) -> None:
    count = int(np.sum(side < 0))
    if count:
        progress.say(
            f"warning: {count:,} facts are left out: their two directions fall on different sides of the split"
        )
    for index, relation in enumerate(facts.relations):
        sizes = np.bincount(side[(facts.relation == index) & (side >= 0)], minlength=3)
        for split, size in zip(SPLITS, sizes.tolist(), strict=True):
            if not size:
                progress.say(f"warning: {relation} has no {split} facts; more facts or another split are needed")


def _report_missing(drawn: Drawn, progress: Progress) -> None:
    for (relation, split), count in sorted(drawn.short.items()):
        if count:
            progress.say(f"warning: {relation}, {split}: {count:,} negatives are wanting; too few free pairs are alike")


def _by_relation(counts: Mapping[tuple[str, str], int]) -> dict[str, dict[str, int]]:
    """Nested counts by relation and split, without those that are zero."""
    nested: dict[str, dict[str, int]] = {}
    for (relation, split), count in sorted(counts.items()):
        if count:
            nested.setdefault(relation, {})[split] = count
    return nested


def _counts(facts: Located, side: np.ndarray, drawn: Drawn) -> dict[str, dict[str, int]]:
    """Facts by relation and split, as Table 1 of the paper has them, with the negatives beside them and a total."""
    rows: dict[str, dict[str, int]] = {}
    for index, relation in enumerate(facts.relations):
        sizes = np.bincount(side[(facts.relation == index) & (side >= 0)], minlength=3).tolist()
        rows[relation] = dict(zip(SPLITS, sizes, strict=True))
        rows[relation].update({f"{name} negatives": len(drawn.ends[relation, name][0]) for name in SPLITS})
    rows["total"] = {column: sum(row[column] for row in rows.values()) for column in next(iter(rows.values()))}
    return rows


def _write_tables(
    folder: Path,
    graph: Graph,
    facts: Located,
    side: np.ndarray,
    drawn: Mapping[Negatives, Drawn],
    options: BuildOptions,
) -> None:
    terms = pa.array(graph.vocabulary.term, pa.string())
    relations = pa.array(facts.relations, pa.string())
    for split, name in enumerate(SPLITS):
        here = side == split
        head, tail = facts.head[here], facts.tail[here]
        columns = {
            "head": terms.take(pa.array(head)),
            "relation": relations.take(pa.array(facts.relation[here])),
            "tail": terms.take(pa.array(tail)),
            "head_id": pa.array(head, pa.int32()),
            "tail_id": pa.array(tail, pa.int32()),
        }
        pq.write_table(pa.table(columns), folder / f"facts_{name}.parquet", compression="zstd")
        for index, relation in enumerate(facts.relations):
            chosen = here & (facts.relation == index)
            held = facts.head[chosen], facts.tail[chosen]
            for mode, negatives in drawn.items():
                not_held = negatives.ends[relation, name]
                path = folder / "negatives" / mode.value / relation / f"{name}.parquet"
                _write_pairs(path, terms, *not_held, np.zeros(len(not_held[0]), np.int8))
                if mode is options.negatives:
                    label = np.repeat(np.array([1, 0], np.int8), [len(held[0]), len(not_held[0])])
                    ends = [np.concatenate(both) for both in zip(held, not_held, strict=True)]
                    _write_pairs(folder / "pairs" / relation / f"{name}.parquet", terms, ends[0], ends[1], label)


def _write_pairs(path: Path, terms: pa.Array, head: np.ndarray, tail: np.ndarray, label: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    order = np.lexsort((tail, head))  # the order of the rows says nothing about the label
    head, tail, label = head[order], tail[order], label[order]
    columns = {
        "head": terms.take(pa.array(head)),
        "tail": terms.take(pa.array(tail)),
        "label": pa.array(label, pa.int8()),
        "head_id": pa.array(head, pa.int32()),
        "tail_id": pa.array(tail, pa.int32()),
    }
    pq.write_table(pa.table(columns), path, compression="zstd")
