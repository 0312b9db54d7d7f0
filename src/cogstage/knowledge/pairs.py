"""Labelled pairs and ranking questions of a data set, also as frames, and its facts for PyKEEN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from cogstage.choices import FrameLibrary
from cogstage.errors import CogstageError
from cogstage.frames import to_frame
from cogstage.graph.vocabulary import Vocabulary
from cogstage.triples import Triples


@dataclass(frozen=True)
class Pairs:
    """Labelled pairs of one relation and split, as node ids."""

    head: np.ndarray  # int32 (M,)
    tail: np.ndarray  # int32 (M,)
    label: np.ndarray  # int8 (M,), 1 where the relation holds

    def __len__(self) -> int:
        return len(self.label)

    def to_frame(self, vocabulary: Vocabulary | None = None, library: FrameLibrary = "pandas") -> Any:
        """A table of head, tail and label: node ids, or the keys of the terms if a vocabulary is given."""
        ends = (self.head, self.tail)
        columns = ends if vocabulary is None else [[vocabulary.term[node] for node in end.tolist()] for end in ends]
        return to_frame(pa.table([*map(pa.array, columns), pa.array(self.label)], ["head", "tail", "label"]), library)


NO_PAIRS = Pairs(np.empty(0, np.int32), np.empty(0, np.int32), np.empty(0, np.int8))


@dataclass(frozen=True)
class RankingQuestions:
    """One ranking question for each row: which of ``candidates`` are tails of ``head[i]``?

    ``answer[i]`` is the position of the true tail in ``candidates``; ``known[i]`` are the positions of other true
    tails of that head in any split, which a filtered ranking leaves out.
    """

    head: np.ndarray  # int32 (Q,)
    candidates: np.ndarray  # int32 (C,)
    answer: np.ndarray  # int32 (Q,)
    known: tuple[np.ndarray, ...]


def pykeen_triples(facts: Triples, vocabulary: Vocabulary, relations: tuple[str, ...]) -> Any:
    """The facts as a PyKEEN TriplesFactory whose entities are the nodes."""
    try:
        import torch
        from pykeen.triples import TriplesFactory
    except ImportError:
        raise CogstageError("PyKEEN is not installed; install cogstage[baselines]") from None
    triples = np.stack([facts.head, facts.relation, facts.tail], axis=1).astype(np.int64)
    entities = {term: node for node, term in enumerate(vocabulary.term)}
    numbers = {relation: number for number, relation in enumerate(relations)}
    return TriplesFactory(torch.from_numpy(triples), entities, numbers)
