"""Facts: (head, relation, tail) between concepts, each with the sources that state it."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import new_folder, read_folder, write_text
from cogstage.choices import FrameLibrary
from cogstage.errors import CogstageError
from cogstage.frames import to_frame
from cogstage.reporting.escape import spreadsheet
from cogstage.reporting.release import release_markdown

FILES = ("facts.parquet",)
COLUMNS = ("head", "relation", "tail", "source")
JOIN = ";"  # between the sources of one fact


class Statement(NamedTuple):
    """One row of a source: a fact, its source, and the year since when it is known, if given."""

    head: str
    relation: str
    tail: str
    source: str
    year: int | None = None


def year_of(date: object) -> int | None:
    """The year of a date that is written as a year or begins with one (1991, 1991-05-02, 1991.0); else None."""
    found = re.fullmatch(
        r"(\d{4})(?:\.0|[-/.]?\d{2}(?:[-/.]?\d{2})?(?:[T ].*)?)?", str("" if date is None else date).strip()
    )
    return int(found.group(1)) if found else None


@dataclass(frozen=True)
class Facts:
    """Facts between concepts, sorted by relation, head and tail, without duplicates and self-relations.

    Create them with :meth:`of`, which sorts and merges.

    Parameters
    ----------
    head, relation, tail, source
        One entry per fact. ``source`` lists the sources of a fact, joined by ``;``.
    made_with
        How the facts were made, for ``meta.json``.
    matched
        For facts that were matched to a lexicon or graph: which concept of the facts each of its concepts or terms
        corresponds to. A concept that is not listed corresponds to itself.
    year
        Earliest year in which a source stated each fact; None if unknown.
    unmatched
        Names without a node: name, frequency and nearest nodes.

    Examples
    --------
    >>> treats = [("D1", "may_treat", "D2", source) for source in ("label", "textbook")]
    >>> facts = cs.Facts.from_statements([*treats, ("D1", "causes", "D3", "label")])
    >>> len(facts), facts.relations, facts.source
    (2, {'causes': 1, 'may_treat': 1}, ('label', 'label;textbook'))
    """

    head: tuple[str, ...]
    relation: tuple[str, ...]
    tail: tuple[str, ...]
    source: tuple[str, ...]
    made_with: Mapping[str, Any] = field(default_factory=dict)
    matched: Mapping[str, str] = field(default_factory=dict, repr=False)
    year: tuple[int | None, ...] = field(default=(), repr=False)
    unmatched: tuple[tuple[str, int, str], ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        if not self.year:
            object.__setattr__(self, "year", (None,) * len(self.head))

    def __len__(self) -> int:
        return len(self.head)

    @classmethod
    def from_statements(
        cls,
        rows: Iterable[tuple[str, str, str, str] | Statement],
        made_with: Mapping[str, Any] | None = None,
        matched: Mapping[str, str] | None = None,
    ) -> Facts:
        """Create facts from statements in any order; duplicates are merged and self-relations dropped.

        Parameters
        ----------
        rows
            Rows (head, relation, tail, source), optionally with a year as fifth value.
        made_with
            How the facts were made, for ``meta.json``.
        matched
            Which concept of the facts each concept or term of a graph corresponds to.

        Returns
        -------
        Facts
            Sorted facts; ``made_with["rows"]`` counts duplicates and self-relations.
        """
        sources: dict[tuple[str, str, str], frozenset[str]] = {}
        shared: dict[frozenset[str], frozenset[str]] = {}  # few combinations, many facts: one object for each
        years: dict[tuple[str, str, str], int] = {}
        read = to_themselves = 0
        for row in rows:
            head, relation, tail, source, year = Statement(*row)
            read += 1
            if head == tail:
                to_themselves += 1
                continue
            key = (relation, head, tail)
            stated_by = sources.get(key, frozenset()).union(filter(None, source.split(JOIN)))
            sources[key] = shared.setdefault(stated_by, stated_by)
            if year is not None:
                years[key] = min(year, years.get(key, year))
        ordered = sorted(sources)
        counts = {"read": read, "self": to_themselves, "duplicate": read - to_themselves - len(ordered)}
        return cls(
            head=tuple(key[1] for key in ordered),
            relation=tuple(key[0] for key in ordered),
            tail=tuple(key[2] for key in ordered),
            source=tuple(JOIN.join(sorted(sources[key])) for key in ordered),
            made_with={**(made_with or {}), "rows": counts},
            matched=dict(matched or {}),
            year=tuple(years.get(key) for key in ordered),
        )

    @cached_property
    def relations(self) -> dict[str, int]:
        """Number of facts of each relation, by name."""
        return dict(sorted(Counter(self.relation).items()))

    def sources(self, relations: Iterable[str] | None = None) -> dict[str, int]:
        """Count the facts of each source.

        Parameters
        ----------
        relations
            Relations to count; None for all.

        Returns
        -------
        dict
            Number of facts by source; a fact with several sources counts for each.
        """
        names = set(self.relations if relations is None else relations)
        stated = [sources for sources, relation in zip(self.source, self.relation, strict=True) if relation in names]
        return dict(sorted(Counter(name for sources in stated for name in sources.split(JOIN) if name).items()))

    @cached_property
    def hash(self) -> str:
        """SHA-256 of the triples and their matches; sources do not change it."""
        digest = hashlib.sha256()
        for names in sorted(self.matched.items()):
            digest.update("\t".join(names).encode() + b"\n")
        for triple in zip(self.head, self.relation, self.tail, strict=True):
            digest.update("\t".join(triple).encode() + b"\n")
        if any(year is not None for year in self.year):
            digest.update(repr(self.year).encode())
        return digest.hexdigest()

    def to_frame(self, library: FrameLibrary = "pandas") -> Any:
        """Return the facts as a table.

        Parameters
        ----------
        library
            "pandas", "polars" or "pyarrow".

        Returns
        -------
        pandas.DataFrame, polars.DataFrame or pyarrow.Table
            Head, relation, tail, source and year, as :func:`facts_from_table` reads them.
        """
        columns = {name: pa.array(getattr(self, name), pa.string()) for name in COLUMNS}
        return to_frame(pa.table({**columns, "year": pa.array(self.year, pa.int16())}), library)

    def save(self, path: Path | str, made_with: Mapping[str, Any] | None = None) -> None:
        """Write the facts folder with a release report.

        Parameters
        ----------
        path
            Folder to write. Existing facts are replaced; any other folder is refused.
        made_with
            How the facts were made, for ``meta.json``; by default ``self.made_with``.
        """
        facts = Facts.from_statements(map(Statement, self.head, self.relation, self.tail, self.source, self.year))
        made_with = dict(self.made_with if made_with is None else made_with)
        about = {**made_with, "facts": len(facts), "relations": facts.relations, "sources": facts.sources()}
        if dated := [year for year in facts.year if year is not None]:
            about["years"] = [min(dated), max(dated)]
        with new_folder(path, "facts", about, release_markdown) as folder:
            columns = {name: pa.array(getattr(facts, name), pa.string()) for name in COLUMNS}
            if any(year is not None for year in facts.year):
                columns["year"] = pa.array(facts.year, pa.int16())
            pq.write_table(pa.table(columns), folder / "facts.parquet", compression="zstd")
            lines = [
                "name\tcount\tnearest",
                *("\t".join(spreadsheet(str(cell)) for cell in row) for row in self.unmatched),
            ]
            write_text(folder / "unmatched.tsv", "\n".join(lines) + "\n")
            if self.matched:
                ours, theirs = zip(*sorted(self.matched.items()), strict=True)
                table = pa.table({"name": pa.array(ours, pa.string()), "concept": pa.array(theirs, pa.string())})
                pq.write_table(table, folder / "matched.parquet", compression="zstd")

    @classmethod
    def load(cls, path: Path | str) -> Facts:
        """Read a facts folder and check its files against their hashes.

        Parameters
        ----------
        path
            Folder written by :meth:`save` or ``cogstage facts``.

        Returns
        -------
        Facts
            The facts, with their sources and matches.

        Raises
        ------
        UsageError
            If ``path`` is not a facts folder.
        CogstageError
            If it is damaged.
        """
        return read_folder(path, "facts", FILES, cls._read)

    @classmethod
    def _read(cls, path: Path, meta: Mapping[str, Any]) -> Facts:
        """Read the files of a folder whose ``meta.json`` was checked."""
        try:
            columns = pq.read_table(path / "facts.parquet").to_pydict()
            head, relation, tail, source = (tuple(columns[name]) for name in COLUMNS)
            matched = {}
            if (path / "matched.parquet").exists():
                table = pq.read_table(path / "matched.parquet", columns=["name", "concept"]).to_pydict()
                matched = dict(zip(table["name"], table["concept"], strict=True))
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            raise CogstageError(f"{path} is damaged ({error}); create the facts again") from error
        if any(value is None for name in COLUMNS for value in columns[name]):
            raise CogstageError(f"{path} is damaged (empty cells in facts.parquet); create the facts again")
        return cls(head, relation, tail, source, meta["made_with"], matched, tuple(columns.get("year", ())))


def counts_text(made_with: Mapping[str, Any]) -> list[str]:
    """What was read, left out and matched, one line each; zeros are not mentioned."""
    lines = []
    for key, value in made_with.items():
        if isinstance(value, Mapping):
            lines += [f"{key}: {name} {count:,}" for name, count in value.items() if isinstance(count, int) and count]
        elif isinstance(value, int) and not isinstance(value, bool) and value:
            lines.append(f"{key}: {value:,}")
    return lines
