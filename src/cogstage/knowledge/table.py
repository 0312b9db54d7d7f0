"""Facts from a table with head, relation, tail, and optionally the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from cogstage.choices import Ambiguity, check_choice
from cogstage.input_files import Paths
from cogstage.knowledge.facts import Facts, Statement, year_of
from cogstage.knowledge.matching import Names, how, unmatched_rows
from cogstage.knowledge.names import code_key
from cogstage.tables import BadRows, read_rows

OTHER_NAMES = {"subject": "head", "predicate": "relation", "object": "tail", "sources": "source", "year": "date"}
UNKNOWN = "unknown to the lexicon or graph"


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
        Tables with the columns head, relation and tail, and optionally source and date (a year or a day).
    names
        Names of a lexicon or graph. Heads and tails that are not its concepts are matched by code, then by name. Those
        without a match stay unchanged and are listed in ``Facts.unmatched``.
    ambiguity
        What to do with a name that matches several concepts.
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
    check_choice("ambiguity", ambiguity, Ambiguity)
    bad = bad or BadRows()
    seen: dict[str, tuple[str, ...]] = {}
    counts: Counter[str] = Counter()
    unmatched: Counter[str] = Counter()
    several: dict[str, tuple[str, ...]] = {}

    def concepts(name: str) -> tuple[str, ...]:
        if name not in seen:
            found, kind = _match(name, names)
            counts["ambiguous" if len(found) > 1 else kind] += 1
            if len(found) > 1:
                several[name] = found
                found = {"first": found[:1], "all": found, "skip": ()}[ambiguity]
            seen[name] = found
            if kind == UNKNOWN:
                unmatched[name] = 0
        if name in unmatched:
            unmatched[name] += 1
        return seen[name]

    def rows() -> Iterator[Statement]:
        for row in read_rows(paths, ["head", "relation", "tail"], ["source", "date"], bad, OTHER_NAMES):
            relation, source = str(row["relation"]).strip(), str(row["source"] or "")
            year = year_of(row["date"])
            if year is None and row["date"] not in (None, ""):
                bad.report(f"{row.where('date')}: {row['date']} is not a date; write a year or YYYY-MM-DD")
                continue
            for head in concepts(str(row["head"]).strip()):
                for tail in concepts(str(row["tail"]).strip()):
                    yield Statement(head, relation, tail, source, year)

    listed = [paths] if isinstance(paths, (str, Path)) else list(paths)
    made_with = {"from": "table", "files": [Path(path).name for path in listed], "ambiguous": ambiguity}
    facts = Facts.from_statements(rows(), made_with)
    details: dict[str, object] = {"bad rows": bad.count, "names": dict(sorted(counts.items()))}
    if several:
        details["ambiguous names"] = [f"{name}: {', '.join(found[:5])}" for name, found in sorted(several.items())[:20]]
    return replace(facts, made_with={**facts.made_with, **details}, unmatched=unmatched_rows(unmatched, names))


def _match(name: str, names: Names | None) -> tuple[tuple[str, ...], str]:
    """The concepts a name stands for, and how it came to them."""
    if names is None or name in names.concepts:
        return (name,), "used unchanged"
    code = code_key(name)
    if code is not None and code in names.by_code:
        return (names.by_code[code],), "matched by source code"
    found, step = names.find(name)
    if step is None:
        return (name,), UNKNOWN
    return found, "matched " + how(step)
