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
from cogstage.knowledge.dataset import Triples

USUAL_SHARE = 0.01  # two types are usual for a relation if at least this share of its training facts has them


@dataclass(frozen=True)
class Evidence:
    """Symmetric counts as CSR rows with sorted columns, and the training facts as sorted keys.

    Facts are keyed (relation·V + head)·V + tail, where relation counts in ``relations``; an inverse triple is looked up
    as the fact it restates.
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
        nodes = np.int64(graph.n_nodes)
        keys = (facts.relation.astype(np.int64) * nodes + facts.head) * nodes + facts.tail
        return cls(
            graph.vocabulary,
            tuple(relations),
            counts.indptr.astype(np.int64),
            counts.indices.astype(np.int32),
            counts.data.astype(np.int64),
            np.asarray(counts.sum(axis=1), dtype=np.float64).ravel(),
            np.unique(keys),
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

    def is_fact(self, head: np.ndarray, relation: np.ndarray, tail: np.ndarray) -> np.ndarray:
        """Whether each triple is a training fact; relations from R on are the inverses, read backwards."""
        backwards = np.asarray(relation) >= len(self.relations)
        subject, target = np.where(backwards, tail, head), np.where(backwards, head, tail)
        nodes = np.int64(len(self.vocabulary))
        key = (np.where(backwards, relation - len(self.relations), relation).astype(np.int64) * nodes + subject) * nodes
        key = key + target
        if not len(self.facts):
            return np.zeros(key.shape, bool)
        place = np.minimum(np.searchsorted(self.facts, key), len(self.facts) - 1)
        result: np.ndarray = self.facts[place] == key
        return result

    @cached_property
    def usual_types(self) -> tuple[frozenset[tuple[str, str]], ...]:
        """For each relation the pairs of types that its training facts usually join."""
        nodes = np.int64(len(self.vocabulary))
        relation, rest = np.divmod(self.facts, nodes * nodes)
        head, tail = np.divmod(rest, nodes)
        kinds: list[dict[tuple[str, str], int]] = [{} for _ in self.relations]
        types = self.vocabulary.type
        for r, h, t in zip(relation.tolist(), head.tolist(), tail.tolist(), strict=True):
            pair = (types[h], types[t])
            kinds[r][pair] = kinds[r].get(pair, 0) + 1
        return tuple(
            frozenset(pair for pair, number in kind.items() if number >= USUAL_SHARE * sum(kind.values()))
            for kind in kinds
        )

    def types_fit(self, head: int, relation: int, tail: int) -> bool | None:
        """Whether the types of the two ends are usual for the relation; None where a type is not known."""
        if relation >= len(self.relations):
            head, relation, tail = tail, relation - len(self.relations), head
        pair = (self.vocabulary.type[head], self.vocabulary.type[tail])
        return pair in self.usual_types[relation] if all(pair) else None
