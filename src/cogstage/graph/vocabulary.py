"""The nodes of a graph: keys, names, types, and lookup of user input."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.corpus.tokens import casefold_text
from cogstage.errors import UsageError
from cogstage.graph.term_search import TermSearch, other_names


class UnknownTerm(UsageError):
    """A term that is not in the vocabulary, with the nearest that are."""

    def __init__(self, text: str, suggestions: list[str], stands_for: str = "") -> None:
        hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else ""
        hint = f" ({stands_for}), which is not in this graph" if stands_for else hint
        super().__init__(f"unknown term: {text}{hint}")
        self.suggestions = suggestions


@dataclass(frozen=True)
class Vocabulary:
    """Node ``i`` is ``term[i]`` (unique key: the term itself, or the concept in a concept graph).

    ``name`` is what people read, ``type`` its semantic type (drug, disorder, symptom, ...; may be empty), ``count`` in
    how many units it occurs. ``synonyms`` are further names, each with the node it stands for.
    """

    term: tuple[str, ...]
    concept: tuple[str, ...]
    name: tuple[str, ...]
    type: tuple[str, ...]
    count: np.ndarray  # int64 (V,)
    synonyms: tuple[tuple[str, int], ...] = field(default=(), repr=False)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self):,} terms)"

    def __len__(self) -> int:
        return len(self.term)

    @cached_property
    def index(self) -> dict[str, int]:
        """Node of an exact key."""
        return {term: node for node, term in enumerate(self.term)}

    @cached_property
    def hash(self) -> str:
        """Identity of the node numbering: two artefacts fit together if theirs is the same."""
        return hashlib.sha256("\n".join(self.term).encode()).hexdigest()

    @cached_property
    def casefolded(self) -> dict[str, int]:
        """Node by casefolded key, name or synonym; where names clash keys win, then names, then the commoner node."""
        node_of: dict[str, int] = {}
        by_count = np.argsort(-self.count, kind="stable").tolist()
        for names in (self.term, self.name):
            for node in by_count:
                node_of.setdefault(casefold_text(names[node]), node)
        for synonym, node in sorted(self.synonyms, key=lambda pair: -int(self.count[pair[1]])):
            node_of.setdefault(casefold_text(synonym), node)
        return node_of

    @cached_property
    def search(self) -> TermSearch:
        """Finds terms as people type them; built when a name is first looked up that is not exact."""
        return TermSearch(self)

    def find(self, text: str) -> int:
        """Find the node for ``text``; raise with suggestions unless it is beyond doubt."""
        node = self.index.get(text, self.casefolded.get(casefold_text(text)))
        if node is None:
            match = self.search.resolve(text)
            if match is None:
                stands_for = other_names().get(casefold_text(text), ("",))[0]
                raise UnknownTerm(text, [] if stands_for else self.search.suggestions(text), stands_for)
            node = match.node
        return node

    def suggest(self, text: str, most: int = 5) -> list[str]:
        """Names most similar to ``text``, best first."""
        return [self.name[match.node] for match in self.search.spelt_alike(text, most)]

    def write(self, folder: Path, file: str = "terms.parquet") -> None:
        """Write ``terms.parquet`` (and ``synonyms.parquet`` if there are any) into ``folder``."""
        table = pa.table(
            {
                "id": pa.array(np.arange(len(self), dtype=np.int32)),
                "term": pa.array(self.term, pa.string()),
                "concept": pa.array(self.concept, pa.string()),
                "name": pa.array(self.name, pa.string()),
                "type": pa.array(self.type, pa.string()),
                "count": pa.array(self.count, pa.int64()),
            }
        )
        pq.write_table(table, folder / file, compression="zstd")
        if self.synonyms:
            names, nodes = zip(*self.synonyms, strict=True)
            table = pa.table({"id": pa.array(nodes, pa.int32()), "synonym": pa.array(names, pa.string())})
            pq.write_table(table, folder / "synonyms.parquet", compression="zstd")

    @classmethod
    def read(cls, folder: Path, file: str = "terms.parquet") -> Vocabulary:
        """Read the nodes and synonyms of a graph folder."""
        with pq.ParquetFile(folder / file) as opened:  # pq.read_table would load pandas where it is installed
            columns = opened.read().to_pydict()
        synonyms: tuple[tuple[str, int], ...] = ()
        if (folder / "synonyms.parquet").exists():
            with pq.ParquetFile(folder / "synonyms.parquet") as opened:
                table = opened.read().to_pydict()
            synonyms = tuple(zip(table["synonym"], table["id"], strict=True))
        return cls(
            term=tuple(columns["term"]),
            concept=tuple(columns["concept"]),
            name=tuple(columns["name"]),
            type=tuple(columns["type"]),
            count=np.asarray(columns["count"], dtype=np.int64),
            synonyms=synonyms,
        )

    @classmethod
    def from_terms(cls, terms: Sequence[str], count: Iterable[int] | None = None) -> Vocabulary:
        """A vocabulary of bare terms: each its own concept and name."""
        terms = tuple(terms)
        counts = np.zeros(len(terms), np.int64) if count is None else np.fromiter(count, np.int64, len(terms))
        return cls(terms, terms, terms, ("",) * len(terms), counts)
