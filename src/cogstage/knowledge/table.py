"""Facts from a table that people bring: head, relation, tail, and where there is one the source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from cogstage.graph.vocabulary import fold
from cogstage.knowledge.facts import Facts
from cogstage.knowledge.matching import Names, check_rule
from cogstage.tables import BadRows, read_rows

OTHER_NAMES = {"subject": "head", "predicate": "relation", "object": "tail", "sources": "source"}


def facts_from_table(
    paths: str | Path | Sequence[str | Path],
    names: Names | None = None,
    ambiguous: str = "first",
    bad: BadRows | None = None,
) -> Facts:
    """Facts of one or several tables.

    With ``names``, heads and tails that are not concepts there are matched by their folded name; one that fits
    several concepts is treated as ``ambiguous`` says: the ``first``, ``all`` of them, or ``skip``. Those that fit none
    stay as they are. ``made_with["names"]`` counts what happened.
    """
    check_rule(ambiguous)
    bad = bad or BadRows()
    seen: dict[str, tuple[str, ...]] = {}
    counts: Counter[str] = Counter()

    def concepts(name: str) -> tuple[str, ...]:
        if name not in seen:
            seen[name], kind = _match(name, names, ambiguous)
            counts[kind] += 1
        return seen[name]

    def rows() -> Iterator[tuple[str, str, str, str]]:
        for row in read_rows(paths, ["head", "relation", "tail"], ["source"], bad, OTHER_NAMES):
            relation, source = str(row["relation"]).strip(), str(row["source"] or "")
            for head in concepts(str(row["head"]).strip()):
                for tail in concepts(str(row["tail"]).strip()):
                    yield head, relation, tail, source

    listed = [paths] if isinstance(paths, (str, Path)) else list(paths)
    facts = Facts.of(rows(), {"from": "table", "files": [Path(path).name for path in listed], "ambiguous": ambiguous})
    made_with = {**facts.made_with, "bad rows": bad.count, "names": dict(sorted(counts.items()))}
    return Facts(facts.head, facts.relation, facts.tail, facts.source, made_with)


def _match(name: str, names: Names | None, ambiguous: str) -> tuple[tuple[str, ...], str]:
    """The concepts a name stands for, and by which way it came to them."""
    if names is None or name in names.concepts:
        return (name,), "taken as they stand"
    found = names.concepts_of.get(fold(name), ())
    if not found:
        return (name,), "unknown to the lexicon or graph"
    if len(found) == 1:
        return found, "matched by name"
    return {"first": found[:1], "all": found, "skip": ()}[ambiguous], "ambiguous"
