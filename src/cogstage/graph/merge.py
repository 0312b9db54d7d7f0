"""Merge graphs, for example of several sites or months."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import check_target, file_hash
from cogstage.corpus.lexicon import Lexicon
from cogstage.corpus.readers import open_reader
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.build import BuildResult, build_folder
from cogstage.graph.build_inputs import resolve_options
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.edges import Edges
from cogstage.graph.options import BuildOptions
from cogstage.graph.renumbering import Renumbering
from cogstage.graph.runs import add_up, as_stored
from cogstage.graph.vocabulary import Vocabulary
from cogstage.input_files import Paths
from cogstage.locks import lock_folder
from cogstage.provenance import licences_of
from cogstage.tables import BadRows

SAME = (
    *("unit", "window", "per", "level", "context", "count", "ambiguity", "variants", "any_case", "context_rules"),
    *("order", "roll_up", "values", "pairs_per_patient"),
)
TOTALS = ("documents", "units", "groups", "skipped")


def merge_graphs(graphs: Sequence[Graph], names: Sequence[str] | None = None) -> Graph:
    """The graph whose counts are the sums of those of ``graphs``; ``names`` are used in messages.

    Sums are exact where no unit of counting lies in two graphs: always for documents and sentences, and for windows,
    visits and patients if no patient is in two of them. What may not hold is written to ``made_with["merged"]``.
    """
    names = [f"graph {number}" for number in range(1, len(graphs) + 1)] if names is None else list(names)
    if len(graphs) < 2:
        raise UsageError("merging needs at least two graphs")
    made = [graph.made_with for graph in graphs]
    _check_alike(made, names)
    nodes = Renumbering.from_keys(term for graph in graphs for term in graph.vocabulary.term)
    maps = np.split(nodes.new, np.cumsum([graph.n_nodes for graph in graphs])[:-1])
    ordered = all(graph.in_order is not None for graph in graphs)
    stored = []
    for graph, node in zip(graphs, maps, strict=True):
        order = graph.in_order if ordered else None
        stored.append(as_stored(Edges(node[graph.source], node[graph.target], graph.count, None, order).upward()))
    edges = add_up(np.concatenate(stored))
    vocabulary = _vocabulary(nodes.keys, graphs, maps)
    return Graph(vocabulary, edges.source, edges.target, edges.count, _made_with(made), edges.order)


def _check_alike(made: Sequence[Mapping[str, Any]], names: Sequence[str]) -> None:
    """Raise unless the counts mean the same and no input was counted twice."""
    first = made[0]
    for other, name in zip(made[1:], names[1:], strict=True):
        if (first.get("private") is None) != (other.get("private") is None):
            raise UsageError(f"only one of {names[0]} and {name} is private; their sum would not be private")
        for option in SAME:
            if (first.get(option) or None) != (other.get(option) or None):
                raise UsageError(
                    f"{names[0]} was counted with {option} {first.get(option)}, {name} with {other.get(option)}; "
                    "their counts cannot be added"
                )
    if any(each.get("values") == "ppmi" for each in made):
        raise UsageError("graphs with PPMI values instead of counts cannot be merged")
    seen: dict[str, int] = {}  # the part that has a file
    for part, each in enumerate(made):
        for file in each.get("inputs") or []:
            before = seen.setdefault(file["sha256"], part)
            if before != part:
                shown = file.get("file", file["sha256"][:12])
                raise UsageError(
                    f"{shown} was counted in {names[before]} and in {names[part]}; it would be counted twice"
                )


def _vocabulary(terms: list[str], graphs: Sequence[Graph], maps: Sequence[np.ndarray]) -> Vocabulary:
    """All nodes with summed counts; names come from the first graph that has the node."""
    count = np.zeros(len(terms), np.int64)
    concept, name, kind = list(terms), list(terms), [""] * len(terms)
    synonyms: set[tuple[str, int]] = set()
    for graph, node in zip(reversed(graphs), reversed(maps), strict=True):
        words = graph.vocabulary
        count[node] += words.count
        for at, to in enumerate(node.tolist()):
            concept[to] = words.concept[at]
            if words.name[at] != words.term[at] or words.type[at]:
                if name[to] not in (terms[to], words.name[at]):
                    synonyms.add((name[to], to))
                name[to], kind[to] = words.name[at], words.type[at]
        synonyms.update((synonym, int(node[at])) for synonym, at in words.synonyms)
    listed = sorted(((s, n) for s, n in synonyms), key=lambda pair: (pair[1], pair[0]))
    return Vocabulary(tuple(terms), tuple(concept), tuple(name), tuple(kind), count, tuple(listed))


def _made_with(made: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The shared options, the summed totals, and notes on the accuracy of the sums."""
    shared = {name: value for name, value in made[0].items() if name not in (*TOTALS, "inputs")}
    result = {**shared, "how": "merge", "licences": licences_of(*made), **_sums(made), **_ranges(made)}
    notes = _notes(made)
    if made[0].get("private") is not None:
        result["private"] = _budget([each["private"] for each in made])
        notes.append("privacy budgets are added up: they hold for a patient who is in every part")
    result["merged"] = {"parts": len(made), "exact": not notes, "notes": notes}
    return result


def _sums(made: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Totals and input files, as far as all parts know theirs."""
    known = [name for name in (*TOTALS, "inputs") if all(each.get(name) is not None for each in made)]
    return {name: sum((each[name] for each in made), [] if name == "inputs" else 0) for name in known}


def _ranges(made: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Corpora, years and thresholds that hold for all parts."""
    corpora = list(dict.fromkeys(str(each["corpus"]) for each in made if each.get("corpus")))
    years = [year for each in made for year in each.get("years") or ()]
    cuts = [each.get("until") for each in made]
    ranges: dict[str, Any] = {
        "corpus": "; ".join(corpora) or None,
        "years": [min(years), max(years)] if years else None,
        "until": None if None in cuts else max(cut for cut in cuts if cut is not None),
    }
    for option, choose in (("min_count", max), ("suppress_below", min)):
        values = [each[option] for each in made if each.get(option) is not None]
        if values:
            ranges[option] = choose(values)
    return ranges


def _notes(made: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why the sums may differ from counts of all documents together."""
    notes = []
    if made[0].get("unit") not in ("document", "sentence") or made[0].get("per") == "patient":
        notes.append("a patient, window or visit with records in several parts was counted in each of them")
    if any((each.get("min_count") or 1) > 1 or each.get("suppress_below") for each in made):
        notes.append("counts are lower bounds: what was left out of a part is not in the sum")
    if len({str([file["sha256"] for file in each.get("lexicon") or []]) for each in made}) > 1:
        notes.append("lexicons differ: a term that only one of them has was counted in that part alone")
    return notes


def _budget(budgets: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The privacy of the sum, for a patient who is in every part."""
    return {
        **budgets[0],
        "epsilon": sum(each["epsilon"] for each in budgets),
        "delta": sum(each["delta"] for each in budgets),
        "threshold": min(each["threshold"] for each in budgets),
        "parts": list(budgets),
    }


def merge_folders(paths: Sequence[Path | str], out: Path | str) -> Graph:
    """Merge graph folders into a new one."""
    for number, path in enumerate(paths):
        if Path(path).resolve() in [Path(before).resolve() for before in paths[:number]]:
            raise UsageError(f"{path} was given twice; it would count twice")
    merged = merge_graphs([Graph.load(path) for path in paths], [str(path) for path in paths])
    merged.save(out)
    return merged


def add_documents(
    graph: Path | str,
    documents: Paths,
    out: Path | str,
    lexicon: Paths | Lexicon | None = None,
    options: BuildOptions | None = None,
    **build: Any,
) -> BuildResult:
    """Count documents that a graph does not have yet and write the sum to ``out``, which may be the graph itself.

    Files whose hash the graph records are left out. ``build`` goes to :func:`cogstage.graph.build.build_folder`.
    """
    older, out, options = Graph.load(graph), Path(out), options or BuildOptions()
    if options.keep_examples:
        raise UsageError("`keep_examples` needs all documents of a graph and cannot be combined with `add_to`")
    if options.unit == "auto" and older.made_with.get("unit") is not None:
        options = replace(options, unit=older.made_with["unit"])
    reader = open_reader(documents, options.format, bad=BadRows(skip=True), **options.reader)
    level = build.get("roll_up")
    asked = {**resolve_options(options, documents).as_meta(), "roll_up": None if level is None else Path(level).name}
    _check_alike([older.made_with, asked], [str(graph), "the new documents"])  # before they are counted
    known = {file["sha256"] for file in older.made_with.get("inputs") or []}
    new = [file for file in reader.files_on_disk if file_hash(file) not in known]
    if not new:
        raise CogstageError(f"{graph} already contains all of these documents; nothing was counted")
    if len(new) < len(reader.files_on_disk):
        if reader.takes_folder:
            raise UsageError(f"{graph} already contains some of these tables; give a folder that has only new ones")
        documents = list(new)
    check_target(out, "graph")
    with lock_folder(out):
        part = out.parent / f".{out.name}.added"
        try:
            built = build_folder(documents, part, lexicon, options, **build)
            merged = merge_graphs([older, Graph.load(part)], [str(graph), "the new documents"])
            merged.save(out)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return replace(built, nodes=merged.n_nodes, edges=merged.n_edges)
