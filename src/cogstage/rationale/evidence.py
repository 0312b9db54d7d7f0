"""What can be checked about a rationale: counts in the graph, training facts, usual types of a relation's ends.

Kept with the model as flat arrays that several processes can map from one file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.triples import TripleIndex, Triples, UsualTypes


@dataclass(frozen=True)
class Evidence:
    """Symmetric counts as CSR rows with sorted columns, and the training facts as sorted keys.

    Facts are keyed as :meth:`Triples.keys` does; ``relation`` counts in ``relations``.
    """

    vocabulary: Vocabulary
    relations: tuple[str, ...]
    start: np.ndarray  # int64 (V+1,)
    neighbour: np.ndarray  # int32 (2E,)
    count: np.ndarray  # int64 (2E,)
    marginal: np.ndarray  # float64 (V,), n_i
    facts: np.ndarray  # int64 (F,), sorted

    @classmethod
    def gather(cls, graph: Graph, facts: Triples, relations: Sequence[str]) -> Evidence:
        """From the graph and the *training* facts a model was fitted on."""
        counts = graph.matrix.tocsr()
        counts.sort_indices()
        return cls(
            graph.vocabulary,
            tuple(relations),
            counts.indptr.astype(np.int64),
            counts.indices.astype(np.int32),
            counts.data.astype(np.int64),
            np.asarray(counts.sum(axis=1), dtype=np.float64).ravel(),
            np.unique(facts.keys(graph.n_nodes)),
        )

    def tensors(self) -> dict[str, torch.Tensor]:
        """The arrays to store with a model."""
        names = ("start", "neighbour", "count", "marginal", "facts")
        return {name: torch.from_numpy(np.ascontiguousarray(getattr(self, name))) for name in names}

    @classmethod
    def of_tensors(
        cls, tensors: Mapping[str, torch.Tensor], vocabulary: Vocabulary, relations: Sequence[str]
    ) -> Evidence:
        """What :meth:`tensors` gave, without a copy."""
        return cls(vocabulary, tuple(relations), **{name: tensor.numpy() for name, tensor in tensors.items()})

    def counts(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """How often each pair was counted together; 0 for never (and for a term with itself)."""
        first, last = self.start[one].copy(), self.start[np.asarray(one) + 1].copy()
        end = last.copy()
        while np.any(first < last):  # one bisection step for all pairs at a time
            middle = (first + last) // 2
            below = (first < last) & (self.neighbour[np.minimum(middle, len(self.neighbour) - 1)] < other)
            last = np.where((first < last) & ~below, middle, last)
            first = np.where(below, middle + 1, first)
        if not len(self.neighbour):
            return np.zeros(len(first), np.int64)
        place = np.minimum(first, len(self.neighbour) - 1)
        found = (first < end) & (self.neighbour[place] == other)
        return np.where(found, self.count[place], 0)

    def ppmi(self, one: np.ndarray, other: np.ndarray) -> np.ndarray:
        """PPMI of each pair, 0 where they were never counted together."""
        return self.counts_and_ppmi(one, other)[1]

    def counts_and_ppmi(self, one: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How often each pair was counted together, and its PPMI."""
        together = self.counts(one, other)
        expected = self.marginal[one] * self.marginal[other] / max(self._total, 1.0)
        ratio = np.divide(together, expected, out=np.ones(len(together)), where=together > 0)
        return together, np.maximum(0.0, np.log(ratio))

    @cached_property
    def _total(self) -> float:
        return float(self.marginal.sum())

    @cached_property
    def triples(self) -> TripleIndex:
        """The training facts, to look up."""
        nodes = len(self.vocabulary)
        return TripleIndex(Triples.of_keys(self.facts, nodes), len(self.relations), nodes)

    def is_fact(self, head: np.ndarray, relation: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Whether each triple is a training fact; relations from R on are the inverses, read backwards."""
        return self.triples.contains(head, relation, tail)

    @cached_property
    def usual_types(self) -> UsualTypes:
        """The types that each relation's training facts usually join."""
        facts = Triples.of_keys(self.facts, len(self.vocabulary))
        return UsualTypes(self.vocabulary.type, facts, len(self.relations))

    def types_fit(self, head: int, relation: int, tail: int) -> bool | None:
        """Whether the types of the two ends are usual for the relation; None where a type is not known."""
        return self.usual_types.fit(head, relation, tail)
