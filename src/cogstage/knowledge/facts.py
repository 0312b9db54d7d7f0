"""Facts: (head, relation, tail) between concepts, each with the sources that state it."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import new_folder, read_meta
from cogstage.errors import CogstageError

FILES = ("facts.parquet",)
COLUMNS = ("head", "relation", "tail", "source")
JOIN = ";"  # between the sources of one fact


@dataclass(frozen=True)
class Facts:
    """Facts between concept identifiers: sorted by relation, head and tail, no doubles, none from a concept to itself.

    Build them with :meth:`of`, which sees to that. ``source`` names the sources of each fact, joined by ``;``.
    ``matched`` says, for facts that were made for a lexicon or graph, which concept of the facts each concept (or
    term) of theirs stands for; those that are not in it stand for themselves.
    """

    head: tuple[str, ...]
    relation: tuple[str, ...]
    tail: tuple[str, ...]
    source: tuple[str, ...]
    made_with: Mapping[str, Any] = field(default_factory=dict)
    matched: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        return len(self.head)

    @classmethod
    def of(
        cls,
        rows: Iterable[tuple[str, str, str, str]],
        made_with: Mapping[str, Any] | None = None,
        matched: Mapping[str, str] | None = None,
    ) -> Facts:
        """Facts from rows (head, relation, tail, source) in any order.

        Doubles are merged and self relations dropped; ``made_with["rows"]`` says how many of each there were.
        """
        sources: dict[tuple[str, str, str], frozenset[str]] = {}
        shared: dict[frozenset[str], frozenset[str]] = {}  # few combinations, many facts: one object for each
        read = to_themselves = 0
        for head, relation, tail, source in rows:
            read += 1
            if head == tail:
                to_themselves += 1
                continue
            key = (relation, head, tail)
            said = sources.get(key, frozenset()).union(filter(None, source.split(JOIN)))
            sources[key] = shared.setdefault(said, said)
        ordered = sorted(sources)
        counts = {"read": read, "self": to_themselves, "duplicate": read - to_themselves - len(ordered)}
        return cls(
            head=tuple(key[1] for key in ordered),
            relation=tuple(key[0] for key in ordered),
            tail=tuple(key[2] for key in ordered),
            source=tuple(JOIN.join(sorted(sources[key])) for key in ordered),
            made_with={**(made_with or {}), "rows": counts},
            matched=dict(matched or {}),
        )

    @cached_property
    def relations(self) -> dict[str, int]:
        """How many facts each relation has, by name."""
        return dict(sorted(Counter(self.relation).items()))

    @cached_property
    def hash(self) -> str:
        """Identity of the content: the triples and what they were matched to, without their sources."""
        digest = hashlib.sha256()
        for names in sorted(self.matched.items()):
            digest.update("\t".join(names).encode() + b"\n")
        for triple in zip(self.head, self.relation, self.tail, strict=True):
            digest.update("\t".join(triple).encode() + b"\n")
        return digest.hexdigest()

    def save(self, path: Path | str, made_with: Mapping[str, Any] | None = None) -> None:
        """Write the facts folder: it appears whole or not at all."""
        facts = Facts.of(zip(self.head, self.relation, self.tail, self.source, strict=True))
        made_with = dict(self.made_with if made_with is None else made_with)
        with new_folder(path, "facts", {**made_with, "facts": len(facts), "relations": facts.relations}) as folder:
            columns = {name: pa.array(getattr(facts, name), pa.string()) for name in COLUMNS}
            pq.write_table(pa.table(columns), folder / "facts.parquet", compression="zstd")
            if self.matched:
                ours, theirs = zip(*sorted(self.matched.items()), strict=True)
                table = pa.table({"name": pa.array(ours, pa.string()), "concept": pa.array(theirs, pa.string())})
                pq.write_table(table, folder / "matched.parquet", compression="zstd")

    @classmethod
    def load(cls, path: Path | str) -> Facts:
        """Read a facts folder; what is wrong with it is said in one line."""
        path = Path(path)
        meta = read_meta(path, "facts", FILES)
        try:
            columns = pq.read_table(path / "facts.parquet", columns=list(COLUMNS)).to_pydict()
            matched = {}
            if (path / "matched.parquet").exists():
                table = pq.read_table(path / "matched.parquet", columns=["name", "concept"]).to_pydict()
                matched = dict(zip(table["name"], table["concept"], strict=True))
        except (pa.ArrowInvalid, OSError, KeyError) as error:
            raise CogstageError(f"{path} is damaged ({error}); make the facts again") from error
        if any(value is None for name in COLUMNS for value in columns[name]):
            raise CogstageError(f"{path} is damaged (empty cells in facts.parquet); make the facts again")
        head, relation, tail, source = (tuple(columns[name]) for name in COLUMNS)
        return cls(head, relation, tail, source, meta["made_with"], matched)


def counts_text(made_with: Mapping[str, Any]) -> list[str]:
    """What was read, left out and matched, one line each; zeros are not mentioned."""
    lines = []
    for key, value in made_with.items():
        if isinstance(value, Mapping):
            lines += [f"{key}: {name} {count:,}" for name, count in value.items() if isinstance(count, int) and count]
        elif isinstance(value, int) and not isinstance(value, bool) and value:
            lines.append(f"{key}: {value:,}")
    return lines
