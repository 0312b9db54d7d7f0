"""Roll-up: replace codes by broader concepts, through OMOP vocabulary tables or a table of parents."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.corpus.formats.omop import table_files
from cogstage.corpus.records import as_concept
from cogstage.errors import CogstageError, UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.edges import Edges
from cogstage.graph.naming import check_vocabulary
from cogstage.graph.renumbering import Renumbering
from cogstage.graph.runs import add_up, as_stored
from cogstage.graph.vocabulary import Vocabulary
from cogstage.numbering import every_pair
from cogstage.tables import column_names, read_rows

ORDINALS = {"1": "ATC 1st", "2": "ATC 2nd", "3": "ATC 3rd", "4": "ATC 4th", "5": "ATC 5th"}
LEVELS = "standard, ingredient, atc1 to atc5, snomed1 to snomed9"


@dataclass(frozen=True)
class RollUp:
    """The concepts that replace each code (one or several), and their names.

    A code without an entry stays as it is.
    """

    level: str
    parents: Mapping[str, tuple[str, ...]]
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)  # (name, type)
    unchanged: int = 0  # codes that are at this level already

    def unused(self, codes: Collection[str]) -> str | None:
        """What to say where none of these codes is rolled up, as if they were written in another way."""
        if self.parents or self.unchanged or not codes:
            return None
        return f"{self.level} contains none of the {len(codes):,} codes, such as {', '.join(sorted(codes)[:3])}"


def read_roll_up(level: str | Path, codes: Collection[str], vocabulary: Path | str | None = None) -> RollUp:
    """How these codes are rolled up: a level of OMOP's vocabulary in the folder ``vocabulary``, or a table.

    Levels: ``standard`` (Maps to), ``ingredient`` (RxNorm), ``atc1`` ... ``atc5``, ``snomed1`` ... ``snomed9``
    (that many levels below the top of SNOMED). A table has the code in its first column and its parent in the second,
    and may have the parent's ``name`` and ``type``; a code with several rows has several parents.
    """
    text = str(level)
    if re.fullmatch(r"standard|ingredient|atc[1-5]|snomed[1-9]", text):
        check_vocabulary(vocabulary)
        if vocabulary is None:
            raise UsageError(f"rolling up to {text} needs a folder with OMOP's CONCEPT tables (`vocabulary`)")
        return _of_omop(text, set(codes), Path(vocabulary))
    if not Path(level).exists():
        raise UsageError(f"{text} is neither a level ({LEVELS}) nor a table of codes and their parents")
    return _of_table(Path(level), set(codes))


def _of_table(path: Path, codes: set[str]) -> RollUp:
    columns = column_names(path)
    if len(columns) < 2:
        raise CogstageError(f"{path}:1: expected two columns, the code and its parent; found one")
    parents: dict[str, dict[str, None]] = {}
    names: dict[str, tuple[str, str]] = {}
    for row in read_rows(path, columns[:2], [c for c in ("name", "type") if c in columns[2:]]):
        code, parent = str(row[columns[0]]).strip(), str(row[columns[1]]).strip()
        if code in codes:
            parents.setdefault(code, {})[parent] = None
            if row["name"]:
                names.setdefault(parent, (str(row["name"]), str(row["type"] or "")))
    return RollUp(path.name, {code: tuple(sorted(above)) for code, above in parents.items()}, names)


def _of_omop(level: str, codes: set[str], folder: Path) -> RollUp:
    """Through ``Maps to`` to standard concepts, then through CONCEPT_ANCESTOR to the level."""
    standard: dict[str, set[str]] = {}
    needed = _files(folder, "concept_relationship", required=level == "standard")
    for row in _rows(needed, ["concept_id_1", "concept_id_2", "relationship_id"], ["invalid_reason"]):
        one = as_concept(row["concept_id_1"])
        if one in codes and row["relationship_id"] == "Maps to" and not row["invalid_reason"]:
            standard.setdefault(one, set()).add(as_concept(row["concept_id_2"]))
    meant = {code: standard.get(code, {code}) for code in codes}
    at_level = standard
    if level != "standard":
        at_level = above = _ancestors(level, set().union(*meant.values()) if meant else set(), folder)
        meant = {code: set().union(*(above.get(each, {each}) for each in concepts)) for code, concepts in meant.items()}
    parents = {code: tuple(sorted(concepts)) for code, concepts in meant.items() if concepts != {code}}
    unchanged = sum(code in at_level and concepts == {code} for code, concepts in meant.items())
    wanted = {parent for concepts in parents.values() for parent in concepts}
    names = {}
    for row in _rows(_files(folder, "concept"), ["concept_id", "concept_name"], ["domain_id"]):
        if (concept := as_concept(row["concept_id"])) in wanted:
            names[concept] = (str(row["concept_name"]), str(row["domain_id"] or "").lower())
    return RollUp(level, parents, names, unchanged)


def _ancestors(level: str, concepts: set[str], folder: Path) -> dict[str, set[str]]:
    """The ancestors at the level of each concept that has any."""
    of_snomed = level.startswith("snomed")
    usable = set()
    for row in _rows(_files(folder, "concept"), ["concept_id", "vocabulary_id", "concept_class_id"]):
        source, kind = str(row["vocabulary_id"]), str(row["concept_class_id"])
        if of_snomed:
            fits = source == "SNOMED"
        elif level == "ingredient":
            fits = source in ("RxNorm", "RxNorm Extension") and kind == "Ingredient"
        else:
            fits = source == "ATC" and kind == ORDINALS[level[-1]]
        if fits:
            usable.add(as_concept(row["concept_id"]))
    above = _above(folder, concepts, usable)
    if not of_snomed:
        return {concept: set(ancestors) for concept, ancestors in above.items()}
    reached = set().union(*above.values()) if above else set()
    at_level = _at_depth(int(level[-1]), _above(folder, reached, usable))
    ancestors_of = {concept: at_level & set(ancestors) for concept, ancestors in above.items()}
    return {concept: ancestors for concept, ancestors in ancestors_of.items() if ancestors}


def _above(folder: Path, concepts: set[str], usable: set[str]) -> dict[str, dict[str, int]]:
    """The usable ancestors of each concept, itself among them, and how many levels up each is."""
    ancestors_of: dict[str, dict[str, int]] = {concept: {concept: 0} for concept in concepts & usable}
    columns = ["ancestor_concept_id", "descendant_concept_id", "min_levels_of_separation"]
    for row in _rows(_files(folder, "concept_ancestor"), columns):
        below, above = as_concept(row["descendant_concept_id"]), as_concept(row["ancestor_concept_id"])
        if below in concepts and above in usable:
            ancestors_of.setdefault(below, {})[above] = int(as_concept(row["min_levels_of_separation"]) or 0)
    return ancestors_of


def _at_depth(depth: int, above: Mapping[str, Mapping[str, int]]) -> set[str]:
    """The concepts that are ``depth`` levels below a top of the hierarchy: one that has no ancestor but itself."""
    tops = {concept for concept, ancestors in above.items() if set(ancestors) == {concept}}
    distance = ((concept, [up for top, up in ancestors.items() if top in tops]) for concept, ancestors in above.items())
    return {concept for concept, ups in distance if ups and min(ups) == depth}


def _files(folder: Path, table: str, required: bool = True) -> list[Path]:
    files = table_files(folder, table)
    if required and not files:
        raise UsageError(f"{folder} contains no table {table}; download it with the vocabularies (Athena)")
    return files


def _rows(files: list[Path], required: list[str], optional: list[str] | None = None) -> Iterator[Any]:
    return read_rows(files, required, optional or ()) if files else iter(())


def roll_up_graph(graph: Graph, roll_up: RollUp) -> Graph:
    """Roll up the codes of a graph; raise if the summed counts would not be exact.

    A unit that has two codes of one concept must count once for it. Counts alone tell that only if no two such codes
    share a unit: their edge must be missing because they were never together, not because it was left out.
    """
    parents = Renumbering.from_keys(graph.vocabulary.term, roll_up.parents)
    keys, starts, flat = parents.keys, parents.starts, parents.new
    _check_exact(graph, roll_up, starts, flat, keys)
    # every pair of parents of every edge, and the parents that one code has together
    edge, one, other = every_pair(starts, flat, graph.source, graph.target)
    edges = Edges(one, other, graph.count[edge], None, None if graph.in_order is None else graph.in_order[edge])
    edges = edges.upward()
    several = np.flatnonzero(np.diff(starts) > 1)
    code, mine, yours = every_pair(starts, flat, several, several)
    apart = mine < yours
    code, mine, yours = several[code[apart]], mine[apart], yours[apart]
    together = Edges(
        np.concatenate([edges.source, mine]),
        np.concatenate([edges.target, yours]),
        np.concatenate([edges.count, graph.vocabulary.count[code]]),
        None,
        None if edges.order is None else np.concatenate([edges.order, np.zeros((len(code), 3), np.int32)]),
    )
    edges = add_up(as_stored(together.where(together.count > 0)))
    made_with = {**graph.made_with, "roll_up": roll_up.level}
    words = _rolled_vocabulary(graph.vocabulary, roll_up, keys, starts, flat)
    return Graph(words, edges.source, edges.target, edges.count, made_with, edges.order)


def _check_exact(graph: Graph, roll_up: RollUp, starts: np.ndarray, flat: np.ndarray, keys: list[str]) -> None:
    made, advice = graph.made_with, "build the graph again with `roll_up` instead"
    if len(flat) == len(keys) == graph.n_nodes:
        return  # only new names
    if made.get("values") == "ppmi":
        raise CogstageError("the graph has PPMI values instead of counts, which cannot be added")
    for option, plain, why in (
        ("private", None, "its counts are noisy"),
        ("suppress_below", 0, "edges and terms of few patients are missing, so sums would be too small"),
        ("min_count", 1, "rare terms are missing, so sums would be too small"),
    ):
        if (made.get(option) or plain) != plain:
            raise CogstageError(f"the graph was built with {option} {made[option]}: {why}; {advice}")
    if made.get("per") == "patient" or graph.in_order is not None:
        what = "patients" if made.get("per") == "patient" else "the order in time"
        raise CogstageError(
            f"the graph counts {what}: two codes of a concept at different times would count twice; {advice}"
        )
    edge, one, other = every_pair(starts, flat, graph.source, graph.target)
    both = np.flatnonzero(one == other)
    if len(both):
        at = int(edge[both[0]])
        names = " and ".join(graph.vocabulary.name[end] for end in (graph.source[at], graph.target[at]))
        raise CogstageError(
            f"{names} both become {keys[int(one[both[0]])]} and co-occur {int(graph.count[at]):,} times, "
            f"so sums would count these units twice; {advice}"
        )


def _rolled_vocabulary(
    words: Vocabulary, roll_up: RollUp, keys: list[str], starts: np.ndarray, flat: np.ndarray
) -> Vocabulary:
    owner = np.repeat(np.arange(len(words)), np.diff(starts))
    count = np.zeros(len(keys), np.int64)
    np.add.at(count, flat, words.count[owner])
    concept, name, kind = list(keys), list(keys), [""] * len(keys)
    for node, key in enumerate(keys):
        old = words.index.get(key)
        if key in roll_up.names:
            name[node], kind[node] = roll_up.names[key]
        elif old is not None:
            concept[node], name[node], kind[node] = words.concept[old], words.name[old], words.type[old]
    kept = [(synonym, int(flat[starts[at]])) for synonym, at in words.synonyms if words.term[at] not in roll_up.parents]
    listed = tuple(sorted(kept, key=lambda pair: (pair[1], pair[0])))
    return Vocabulary(tuple(keys), tuple(concept), tuple(name), tuple(kind), count, listed)
