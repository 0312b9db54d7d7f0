"""Facts from a table with head, relation, tail, and optionally the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from cogstage.choices import Ambiguity, check_choice
from cogstage.frames import takes_frames
from cogstage.input_files import Paths, listed
from cogstage.knowledge.facts import Facts, Statement, year_of
from cogstage.knowledge.matching import Names, how, unmatched_rows
from cogstage.knowledge.names import code_key, end_rank
from cogstage.tables import BadRows, read_rows

OTHER_NAMES = {"subject": "head", "predicate": "relation", "object": "tail", "sources": "source", "year": "date"}
UNKNOWN = "unknown to the lexicon or graph"
OTHER_TYPE = "known only as another type"


class FactRow(NamedTuple):
    """A stated fact whose ends are given by codes and names, the best first."""

    head: tuple[str, ...]
    relation: str
    tail: tuple[str, ...]
    source: str = ""
    year: int | None = None
    head_type: str = ""
    tail_type: str = ""


@takes_frames("paths")
def facts_from_table(
    paths: Paths,
    names: Names | None = None,
    ambiguity: Ambiguity = "first",
    bad: BadRows | None = None,
) -> Facts:
    """Read facts from one or several tables.

    Parameters
    ----------
    paths
        Tables (files, or a frame) with the columns head, relation and tail, and optionally source, date (a year or a
        day), head_type and tail_type.
    names
        Names of a lexicon or graph. Heads and tails that are not its concepts are matched by code, then by name and
        type: the type in the table, or those that fit the relation. Names without a match stay unchanged and are listed
        in ``Facts.unmatched``.
    ambiguity
        What to do with a name that matches several concepts of one type and namespace. A name of concepts of different
        types or namespaces is left out and reported, except with "all".
    bad
        How to handle rows that cannot be read.

    Returns
    -------
    Facts
        Sorted, without duplicates; ``made_with["names"]`` counts how names were matched.

    Examples
    --------
    >>> rows = ["head,relation,tail,source", "aspirin,may_treat,headache,label", "aspirin,causes,bleeding,label"]
    >>> _ = Path("facts.csv").write_text("\\n".join(rows))
    >>> cs.facts_from_table("facts.csv").relations
    {'causes': 1, 'may_treat': 1}
    """
    bad = bad if bad is not None else BadRows()

    def rows() -> Iterator[FactRow]:
        optional = ["source", "date", "head_type", "tail_type"]
        for row in read_rows(paths, ["head", "relation", "tail"], optional, bad, OTHER_NAMES):
            relation, source = str(row["relation"]).strip(), str(row["source"] or "")
            year = year_of(row["date"])
            if year is None and row["date"] not in (None, ""):
                bad.report(f"{row.where('date')}: {row['date']} is not a date; write a year or YYYY-MM-DD")
                continue
            head, tail = ((str(row[end]).strip(),) for end in ("head", "tail"))
            types = (str(row[f"{end}_type"] or "").strip() for end in ("head", "tail"))
            yield FactRow(head, relation, tail, source, year, *types)

    made_with = {"from": "table", "files": [Path(path).name for path in listed(paths)]}
    return facts_from_rows(rows(), names, ambiguity, bad, made_with)


def facts_from_rows(
    stated: Iterable[FactRow], names: Names | None, ambiguity: Ambiguity, bad: BadRows, made_with: Mapping[str, Any]
) -> Facts:
    """Facts of rows whose ends are given by codes and names, the best first, matched to ``names``."""
    check_choice("ambiguity", ambiguity, Ambiguity)
    seen: dict[tuple[tuple[str, ...], str, int, str], tuple[str, ...]] = {}
    counted: set[str] = set()
    counts: Counter[str] = Counter()
    unmatched: Counter[str] = Counter()
    several: dict[str, tuple[str, ...]] = {}

    def concepts(alternatives: tuple[str, ...], relation: str, end: int, type: str) -> tuple[str, ...]:
        key, name = (alternatives, relation, end, type), alternatives[-1]
        if key not in seen:
            candidates, kind = _match(alternatives, names)
            fitting = candidates if names is None else _of_type(candidates, names, relation, end, type)
            if candidates and not fitting:
                kind = OTHER_TYPE
            elif names is not None and len({_kind(concept, names) for concept in fitting}) > 1 and ambiguity != "all":
                kind, several[name], fitting = "ambiguous, of different types: left out", fitting, ()
            elif len(fitting) > 1:
                kind, several[name] = "ambiguous", fitting
                fitting = {"first": fitting[:1], "all": fitting, "skip": ()}[ambiguity]
            counts[kind] += name not in counted
            counted.add(name)
            seen[key] = fitting
            if kind in (UNKNOWN, OTHER_TYPE):
                unmatched.setdefault(name, 0)
        if name in unmatched:
            unmatched[name] += 1
        return seen[key]

    def rows() -> Iterator[Statement]:
        for row in stated:
            heads = concepts(row.head, row.relation, 0, row.head_type)
            tails = concepts(row.tail, row.relation, 1, row.tail_type)
            yield from (Statement(head, row.relation, tail, row.source, row.year) for head in heads for tail in tails)

    facts = Facts.from_statements(rows(), {**made_with, "ambiguous": ambiguity})
    details: dict[str, object] = {"bad rows": bad.count, "names": dict(sorted(counts.items()))}
    if names is not None:
        ends = zip(facts.head, facts.tail, strict=True)
        details["with both ends in the lexicon or graph"] = sum(names.concepts.issuperset(pair) for pair in ends)
    if several:
        details["ambiguous names"] = [f"{name}: {', '.join(found[:5])}" for name, found in sorted(several.items())[:20]]
    return replace(facts, made_with={**facts.made_with, **details}, unmatched=unmatched_rows(unmatched, names))


def _match(alternatives: tuple[str, ...], names: Names | None) -> tuple[tuple[str, ...], str]:
    """The concepts that codes or names stand for, and how they came to them; the first that has any decides."""
    if names is None:
        return alternatives[:1], "used unchanged"
    for name in alternatives:
        if name in names.concepts:
            return (name,), "used unchanged"
        code = code_key(name)
        if code is not None and code in names.by_code:
            return (names.by_code[code],), "matched by source code"
    for name in alternatives:
        found, step = names.find(name)
        if step is not None:
            return found, "matched " + how(step)
    return alternatives[:1], UNKNOWN


def _of_type(candidates: tuple[str, ...], names: Names, relation: str, end: int, type: str) -> tuple[str, ...]:
    """The candidates of the given type, or those whose type fits this end of the relation best."""
    types = {concept: names.types.get(concept, "") for concept in candidates}
    if type:
        same = tuple(concept for concept in candidates if types[concept] == type)
        return same or names.allowed(candidates, frozenset({type}))
    ranks = {concept: end_rank(relation, end, types[concept]) for concept in candidates}
    return tuple(concept for concept in candidates if ranks[concept] == min(ranks.values()) < 2)


def _kind(concept: str, names: Names) -> tuple[str, str]:
    """Type and namespace of a concept."""
    namespace, mark, _ = concept.partition(":")
    return names.types.get(concept, ""), namespace if mark else ""
