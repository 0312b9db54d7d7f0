"""Corrections of triples: right triples count as known facts, wrong triples as not recognised."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cogstage.artefact import write_text
from cogstage.errors import UsageError
from cogstage.frames import takes_frames
from cogstage.graph.vocabulary import Vocabulary
from cogstage.input_files import Paths
from cogstage.rationale.record import Triple
from cogstage.relations import RelationIndex, inverse, phrase
from cogstage.reporting.escape import spreadsheet
from cogstage.tables import read_rows
from cogstage.triples import TripleIndex, Triples

COLUMNS = ("head", "relation", "tail", "verdict", "who", "when", "why")
VERDICTS = {"right": True, "wrong": False}
WITHDRAWN = "withdrawn"  # takes back the verdicts before it


@dataclass(frozen=True)
class Correction:
    """One verdict on a triple; terms are keys or names."""

    head: str
    relation: str
    tail: str
    verdict: str  # right, wrong or withdrawn
    who: str = ""
    when: str = ""
    why: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in (*VERDICTS, WITHDRAWN):
            raise UsageError(f"the verdict must be right, wrong or withdrawn, not {self.verdict}")


@dataclass(frozen=True)
class Corrections:
    """A list of corrections: triples marked right or wrong. The last one of a triple counts, unless it was withdrawn.

    Parameters
    ----------
    entries
        The corrections, oldest first.

    Examples
    --------
    >>> rows = ["head,relation,tail,verdict", "Drug number 4,may_treat,Disorder number 7,right"]
    >>> _ = Path("corrections.csv").write_text("\\n".join(rows))
    >>> corrections = cs.Corrections.read("corrections.csv")
    >>> len(corrections), cs.CogStage.load("model").corrected(corrections).relations
    (1, ('may_treat', 'causes'))
    """

    entries: tuple[Correction, ...] = ()

    def __len__(self) -> int:
        return len(self.entries)

    @classmethod
    @takes_frames("path")
    def read(cls, path: Paths) -> Corrections:
        """Read a table of corrections.

        Parameters
        ----------
        path
            Table (a file or a frame): head, relation, tail, verdict, and optionally who, when and why.

        Returns
        -------
        Corrections
            One entry per row, in the order of the table.
        """
        found = []
        for row in read_rows(path, required=COLUMNS[:4], optional=COLUMNS[4:]):
            values = {name: str(row[name] or "") for name in COLUMNS}
            try:
                found.append(Correction(**values))
            except UsageError as error:
                raise UsageError(f"{row.where()}: {error}") from None
        return cls(tuple(found))

    def write(self, path: Path | str) -> None:
        """Write the corrections as TSV; the file is replaced at once, never partly written.

        Parameters
        ----------
        path
            File to write.
        """
        stream = io.StringIO()
        # Quotes are letters, as for the reader: quoted ones would be doubled whenever the table is written again.
        writer = csv.writer(stream, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONE, quotechar=None)
        writer.writerow(COLUMNS)
        for entry in self.entries:
            values = [" ".join(getattr(entry, name).split()) for name in COLUMNS]
            writer.writerow([*values[:4], *map(spreadsheet, values[4:])])  # keys are read back as they are
        write_text(Path(path), stream.getvalue())

    def adding(self, entry: Correction) -> Corrections:
        """Return a copy with one more correction at the end.

        Parameters
        ----------
        entry
            The new correction; it overrides earlier ones of the same triple.

        Returns
        -------
        Corrections
            A new list; this one stays as it is.
        """
        return Corrections((*self.entries, entry))

    def verdicts(self, vocabulary: Vocabulary, relations: Iterable[str]) -> dict[Triple, bool]:
        """Return the verdict on each triple, in both directions.

        Parameters
        ----------
        vocabulary
            Nodes in which to look up the terms.
        relations
            Names of the known relations.

        Returns
        -------
        dict
            Maps triples (key of the head, relation, key of the tail) to True for right or False for wrong.

        Raises
        ------
        UsageError
            If a term or relation is unknown.
        """
        known = set(relations)
        found: dict[Triple, bool] = {}
        for entry in self.entries:
            if entry.relation not in known and inverse(entry.relation) not in known:
                raise UsageError(
                    f"correction of {entry.head} {entry.relation} {entry.tail}: the model does not know the relation;"
                    f" it knows {', '.join(sorted(known))}"
                )
            head, tail = (vocabulary.term[vocabulary.find(text)] for text in (entry.head, entry.tail))
            for triple in ((head, entry.relation, tail), (tail, inverse(entry.relation), head)):
                if entry.verdict == WITHDRAWN:
                    found.pop(triple, None)
                else:
                    found[triple] = VERDICTS[entry.verdict]
        return found


def numbered(
    verdicts: Mapping[Triple, bool], vocabulary: Vocabulary, relations: Sequence[str]
) -> dict[tuple[int, int, int], bool]:
    """Verdicts by node ids and relation numbers; raise if a term or relation is unknown."""
    index = RelationIndex(relations)
    found = {}
    for (head, relation, tail), right in verdicts.items():
        if relation not in index.all_names[:-1]:
            raise UsageError(f"the model does not know the relation {relation}; it knows {', '.join(relations)}")
        found[vocabulary.find(head), index.number(relation), vocabulary.find(tail)] = right
    return found


def marked_triples(
    verdicts: Mapping[tuple[int, int, int], bool], relations: int, nodes: int
) -> tuple[TripleIndex | None, TripleIndex | None]:
    """Indexes of the triples that were marked right and wrong; None where there are none."""
    indexes = []
    for marked in (True, False):
        forward = {
            (h, r, t) if r < relations else (t, r - relations, h)
            for (h, r, t), right in verdicts.items()
            if right == marked
        }
        head, relation, tail = np.array(sorted(forward), np.int64).reshape(-1, 3).T
        triples = Triples(head.astype(np.int32), relation.astype(np.int16), tail.astype(np.int32))
        indexes.append(TripleIndex(triples, relations, nodes) if forward else None)
    return indexes[0], indexes[1]


def split_triple(text: str, relations: Iterable[str]) -> Triple:
    """``Sunitinib causes Hemolysis`` as head, relation and tail; the relation's name or phrase stands between."""
    names = [name for relation in relations for name in (relation, inverse(relation))]
    for words, name in sorted(((w, n) for n in names for w in (n, phrase(n))), key=lambda entry: -len(entry[0])):
        head, separator, tail = text.partition(f" {words} ")
        if separator and head.strip() and tail.strip():
            return head.strip(), name, tail.strip()
    raise UsageError(f'{text!r} is not a triple; write for example "Aspirin may_treat Headache"')


def gather_corrections(
    path: Path | str | None, without: Iterable[str], assume: Iterable[str], relations: Sequence[str]
) -> Corrections:
    """The verdicts of a table, if there is one, then triples to leave out and triples to take for facts, as text."""
    verdicts = Corrections() if path is None else Corrections.read(path)
    for texts, verdict in ((without, "wrong"), (assume, "right")):
        for text in texts:
            verdicts = verdicts.adding(Correction(*split_triple(text, relations), verdict))
    return verdicts
