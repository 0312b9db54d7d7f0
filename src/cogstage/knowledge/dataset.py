"""Data sets: train, dev and test pairs per relation, and the view that models are fitted on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from cogstage.artefact import read_folder, safe_name
from cogstage.choices import NegativeKind, SplitName, check_choice
from cogstage.errors import CogstageError, LeakageError, UsageError
from cogstage.graph.folder import read_columns
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.pairs import NO_PAIRS as NO_PAIRS
from cogstage.knowledge.pairs import Pairs as Pairs
from cogstage.knowledge.pairs import RankingQuestions as RankingQuestions
from cogstage.knowledge.pairs import pykeen_triples
from cogstage.reporting.table import Table
from cogstage.triples import TripleIndex, Triples

SPLITS: tuple[str, ...] = get_args(SplitName)
NEGATIVES: tuple[str, ...] = get_args(NegativeKind)


@dataclass(frozen=True)
class FittingView:
    """The part of a data set that may be used for fitting: training facts, and training and dev pairs.

    Fit on ``train_facts()`` and ``pairs(relation, "train")`` only. ``pairs(relation, "dev")`` is for early stopping,
    model selection and calibration. The test split is refused. ``is_taken`` covers training facts only, so that
    sampling negatives does not reveal which pairs are held out.

    Attributes
    ----------
    relations
        Names of the relations.
    vocabulary_hash
        Hash of the nodes of the graph that the data set was built on.
    sources
        Sources of the counts and the facts, with their licences.

    Examples
    --------
    >>> view = cs.Dataset.load("data").for_fitting()
    >>> facts = view.train_facts()
    >>> bool(view.is_taken(facts.head, facts.tail).all())
    True
    """

    relations: tuple[str, ...]
    vocabulary_hash: str
    _pairs: Mapping[tuple[str, str], Pairs] = field(repr=False)
    _train_facts: Triples = field(repr=False)
    _known: TripleIndex = field(repr=False)  # the training facts
    sources: Mapping[str, Any] = field(default_factory=dict, repr=False)  # of counts and facts, with licences
    _negatives: Mapping[tuple[str, str, str], Pairs] = field(default_factory=dict, repr=False)

    def train_facts(self) -> Triples:
        """Return the training facts.

        Returns
        -------
        Triples
            Node ids and relation numbers of the facts of all relations.
        """
        return self._train_facts

    def pairs(self, relation: str, split: str) -> Pairs:
        """Return the labelled pairs of a relation and split.

        Parameters
        ----------
        relation
            One of ``relations``.
        split
            "train" or "dev".

        Returns
        -------
        Pairs
            Node ids and labels; 1 means that the relation holds.

        Raises
        ------
        LeakageError
            If ``split`` is "test".
        """
        if split == "test":
            raise LeakageError(
                f"the test pairs of {relation} were requested during fitting; use the Dataset for evaluation"
            )
        return _labelled(self._pairs, relation, split)

    def negatives(self, relation: str, split: str, kind: str) -> Pairs:
        """Return the saved negatives of a kind.

        Parameters
        ----------
        relation, split
            As for :meth:`pairs`.
        kind
            "uniform", "degree" or "hard".

        Returns
        -------
        Pairs
            Node ids with label 0; none if the data set has no negatives of this kind.
        """
        if split == "test":
            raise LeakageError(
                f"the test negatives of {relation} were requested during fitting; use the Dataset for evaluation"
            )
        return self._negatives.get((kind, relation, split), NO_PAIRS)

    def is_taken(self, head: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Return whether each pair has a training fact of any relation, in either direction.

        Parameters
        ----------
        head, tail
            Node ids, (n,) each.

        Returns
        -------
        numpy.ndarray
            bool (n,). Sample only pairs with False as negatives.
        """
        return self._known.has_relation(head, tail)


@dataclass(frozen=True)
class Dataset:
    """A data set: facts of a graph, split and labelled. Fit on :meth:`for_fitting` and evaluate on the rest.

    Parameters
    ----------
    relations
        Names of the relations.
    vocabulary_hash, n_nodes
        Hash and number of nodes of the graph that it was built on.
    manifest, leakage
        Manifest and leakage report, as written by :func:`build_dataset`.

    Examples
    --------
    >>> data = cs.Dataset.load("data")
    >>> data.relations
    ('may_treat', 'causes')
    >>> pairs = data.pairs("may_treat", "test")
    >>> len(pairs.head) == len(pairs.tail) == len(pairs.label)
    True
    """

    relations: tuple[str, ...]
    vocabulary_hash: str
    n_nodes: int
    manifest: Mapping[str, Any] = field(repr=False)
    leakage: Mapping[str, Any] = field(repr=False)
    _pairs: Mapping[tuple[str, str], Pairs] = field(repr=False)
    _facts: Mapping[str, Triples] = field(repr=False)
    _negatives: Mapping[tuple[str, str, str], Pairs] = field(default_factory=dict, repr=False)

    def pairs(self, relation: str, split: str) -> Pairs:
        """Return the labelled pairs of a relation and split.

        Parameters
        ----------
        relation
            One of ``relations``.
        split
            "train", "dev" or "test".

        Returns
        -------
        Pairs
            Node ids and labels; 1 means that the relation holds.
        """
        return _labelled(self._pairs, relation, split)

    def negatives(self, relation: str, split: str, kind: str) -> Pairs:
        """Return the saved negatives of a kind.

        Parameters
        ----------
        relation, split
            As for :meth:`pairs`.
        kind
            "uniform", "degree" or "hard".

        Returns
        -------
        Pairs
            Node ids with label 0; none if the data set has no negatives of this kind.
        """
        return self._negatives.get((kind, relation, split), NO_PAIRS)

    def facts(self, split: str) -> Triples:
        """Return the facts of a split.

        Parameters
        ----------
        split
            "train", "dev" or "test".

        Returns
        -------
        Triples
            Node ids and relation numbers of the facts of all relations.
        """
        return self._facts[split]

    def for_fitting(self) -> FittingView:
        """Return the view that models and baselines are fitted on.

        Returns
        -------
        FittingView
            Training facts, training pairs and dev pairs; requesting test pairs raises :class:`LeakageError`.
        """
        return FittingView(
            self.relations,
            self.vocabulary_hash,
            {key: pairs for key, pairs in self._pairs.items() if key[1] != "test"},
            self._facts["train"],
            TripleIndex(self._facts["train"], len(self.relations), self.n_nodes),
            dict(self.manifest.get("sources") or {}),
            {key: pairs for key, pairs in self._negatives.items() if key[2] != "test"},
        )

    def to_pykeen(self, vocabulary: Vocabulary, split: SplitName = "train") -> Any:
        """Return the facts of a split for PyKEEN.

        Parameters
        ----------
        vocabulary
            Nodes of the graph, which become the entities.
        split
            "train", "dev" or "test".

        Returns
        -------
        pykeen.triples.TriplesFactory
            The facts as triples of keys, numbered alike in all splits: entity i is node i.
        """
        self.check_fits(vocabulary)
        check_choice("split", split, SplitName)
        return pykeen_triples(self._facts[split], vocabulary, self.relations)

    def _repr_html_(self) -> str:
        """Pairs and facts of each relation and split, for notebooks."""
        rows = []
        for relation in self.relations:
            pairs = (self._pairs.get((relation, split), NO_PAIRS) for split in SPLITS)
            rows.append((relation, *(f"{int(found.label.sum()):,} of {len(found):,}" for found in pairs)))
        return Table("Data set: facts of all pairs, by split", ("relation", *SPLITS), tuple(rows)).html()

    def ranking(self, relation: str, split: str = "test") -> RankingQuestions:
        """Return the filtered ranking questions of a split: rank the true tail among the tails of the relation.

        Parameters
        ----------
        relation
            One of ``relations``.
        split
            "train", "dev" or "test".

        Returns
        -------
        RankingQuestions
            One question per fact of the split, with the other true tails of its head.
        """
        index = self._index(relation)
        heads: list[np.ndarray] = []
        tails: list[np.ndarray] = []
        for facts in self._facts.values():
            chosen = facts.relation == index
            heads.append(facts.head[chosen])
            tails.append(facts.tail[chosen])
        candidates = np.unique(np.concatenate(tails)).astype(np.int32)
        true_tails: dict[int, list[int]] = {}
        for head, tail in zip(np.concatenate(heads).tolist(), np.concatenate(tails).tolist(), strict=True):
            true_tails.setdefault(head, []).append(tail)
        chosen = self._facts[split].relation == index
        head, tail = self._facts[split].head[chosen], self._facts[split].tail[chosen]
        known = tuple(
            np.searchsorted(candidates, np.unique([other for other in true_tails[h] if other != t])).astype(np.int32)
            for h, t in zip(head.tolist(), tail.tolist(), strict=True)
        )
        return RankingQuestions(head, candidates, np.searchsorted(candidates, tail).astype(np.int32), known)

    def _index(self, relation: str) -> int:
        if relation not in self.relations:
            raise UsageError(f"the data set has no relation {relation}; it has {', '.join(self.relations)}")
        return self.relations.index(relation)

    def check_fits(self, vocabulary: Vocabulary) -> None:
        """Raise a :class:`UsageError` unless the data set was built on a graph with these nodes.

        Parameters
        ----------
        vocabulary
            Nodes of a graph.
        """
        if vocabulary.hash != self.vocabulary_hash:
            raise UsageError("the data set was built on another graph; build it on this graph")

    @classmethod
    def load(cls, path: Path | str) -> Dataset:
        """Read a data set folder and check its files against their hashes.

        Parameters
        ----------
        path
            Folder written by :func:`build_dataset`.

        Returns
        -------
        Dataset
            The data set.

        Raises
        ------
        UsageError
            If ``path`` is not a data set folder.
        CogstageError
            If it is damaged.
        """
        files = ("manifest.json", "leakage.json", *(f"facts_{split}.parquet" for split in SPLITS))
        return read_folder(path, "dataset", files, cls._read)

    @classmethod
    def _read(cls, path: Path, meta: Mapping[str, Any]) -> Dataset:
        """Read the files of a folder whose ``meta.json`` was checked."""
        try:
            manifest = json.loads((path / "manifest.json").read_text(encoding="utf-8"))
            leakage = json.loads((path / "leakage.json").read_text(encoding="utf-8"))
            relations = tuple(safe_name(name, path / "manifest.json") for name in manifest["relations"])
            pairs = {
                (relation, split): _read_pairs(path / "pairs" / relation / f"{split}.parquet")
                for relation in relations
                for split in SPLITS
            }
            negatives = {
                (kind, relation, split): _read_pairs(path / "negatives" / kind / relation / f"{split}.parquet")
                for kind in NEGATIVES
                if (path / "negatives" / kind).is_dir()
                for relation in relations
                for split in SPLITS
            }
            facts = {split: read_triples(path / f"facts_{split}.parquet", relations) for split in SPLITS}
        except (pa.ArrowInvalid, OSError, KeyError, TypeError, ValueError) as error:
            raise CogstageError(f"{path} is damaged ({error}); build the data set again") from error
        about = relations, manifest["vocabulary_hash"], manifest["nodes"]
        return cls(*about, manifest, leakage, pairs, facts, negatives)


def _labelled(pairs: Mapping[tuple[str, str], Pairs], relation: str, split: str) -> Pairs:
    try:
        return pairs[relation, split]
    except KeyError:
        known = ", ".join(sorted({name for name, _ in pairs}))
        raise UsageError(f"the data set has no {split} pairs of {relation}; its relations are {known}") from None


def _read_pairs(path: Path) -> Pairs:
    head, tail, label = read_columns(path, ("head_id", "tail_id", "label"))
    return Pairs(head.astype(np.int32), tail.astype(np.int32), label.astype(np.int8))


def read_triples(path: Path, relations: tuple[str, ...]) -> Triples:
    """The facts of a file as node ids and relation numbers."""
    index = {relation: number for number, relation in enumerate(relations)}
    with pq.ParquetFile(path) as file:
        names = file.read(["relation"]).column("relation").to_pylist()
    head, tail = (column.astype(np.int32) for column in read_columns(path, ("head_id", "tail_id")))
    return Triples(head, np.array([index[name] for name in names], np.int16), tail)
