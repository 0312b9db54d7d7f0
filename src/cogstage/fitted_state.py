"""What a model has learned: its terms, counts, facts and relations, and the checks of questions about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.pair_counts import PairCounts
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model_folder import Fitted
from cogstage.rationale.corrections import numbered
from cogstage.rationale.explain import Explainer
from cogstage.rationale.predictor import Predictor
from cogstage.rationale.record import Triple
from cogstage.training.calibration import Calibration
from cogstage.triples import TripleIndex

if TYPE_CHECKING:
    from typing_extensions import Self

FROM_FITTED = ("predictor", "explainer", "facts")  # computed on first use

Terms = Sequence[str | int] | np.ndarray
"""Names, synonyms or keys of terms, or node ids: a list, an array or a column of a frame."""


class FittedState:
    """The part of :class:`cogstage.CogStage` that holds what it learned."""

    _fitted: Fitted | None = None
    _verdicts: Mapping[Triple, bool] = {}

    def _use(self, fitted: Fitted) -> None:
        self._fitted = fitted
        for name in FROM_FITTED:
            self.__dict__.pop(name, None)

    def __copy__(self) -> Self:
        copy = object.__new__(type(self))
        copy.__dict__.update(self.__dict__)
        return copy

    @property
    def fitted(self) -> Fitted:
        """Everything that :meth:`fit` learned; a :class:`UsageError` before that."""
        if self._fitted is None:
            raise UsageError("the model is not fitted yet; call fit() or load()")
        return self._fitted

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that the model predicts."""
        return tuple(self.fitted.relations[target] for target in self.fitted.targets)

    @property
    def all_relations(self) -> tuple[str, ...]:
        """All relations of the data set, including those that the model only uses in reasons."""
        return self.fitted.relations

    @property
    def vocabulary(self) -> Vocabulary:
        """The terms of the graph."""
        return self.fitted.vocabulary

    @property
    def counts(self) -> PairCounts:
        """The co-occurrence counts that explanations cite."""
        return self.fitted.counts

    @property
    def graph(self) -> Graph:
        """The graph, rebuilt from the counts in the model."""
        return self.fitted.graph

    @property
    def metrics(self) -> dict[str, Any]:
        """Figures on dev pairs and the training history."""
        return self.fitted.metrics

    @property
    def calibration(self) -> dict[str, Calibration]:
        """Shift and slope of the log-odds, for each relation."""
        return self.fitted.calibration

    @cached_property
    def facts(self) -> TripleIndex:
        """Index of the training facts, for looking up whether a triple is known."""
        return TripleIndex(self.fitted.facts, len(self.all_relations), len(self.vocabulary))

    @cached_property
    def predictor(self) -> Predictor:
        """The network with corrections applied."""
        predictor = self.fitted.predictor()
        verdicts = self._verdicts
        return predictor.revised(numbered(verdicts, self.vocabulary, self.all_relations)) if verdicts else predictor

    @cached_property
    def explainer(self) -> Explainer:
        """Converts arrays of reasons into prediction records."""
        return self.fitted.explainer(self.facts)

    @property
    def privacy(self) -> str:
        """How the counts are protected: "none", suppressed, or differentially private."""
        return self.fitted.privacy

    def check_relation(self, relation: str) -> None:
        """Raise a :class:`UsageError` unless the model predicts the relation.

        Parameters
        ----------
        relation
            Name of a relation.
        """
        if relation not in self.relations:
            raise UsageError(f"the model does not know the relation {relation}; it knows {', '.join(self.relations)}")

    def check_pair(self, head: int, tail: int) -> None:
        """Raise a :class:`UsageError` unless head and tail are two different nodes of the vocabulary.

        Parameters
        ----------
        head, tail
            Node ids.
        """
        for node in (head, tail):
            if not 0 <= node < len(self.vocabulary):
                raise UsageError(f"there is no node {node}; the vocabulary has {len(self.vocabulary):,} terms")
        if head == tail:
            raise UsageError(f"head and tail are the same term: {self.vocabulary.name[head]}")

    def ends(self, relation: str, side: str) -> np.ndarray:
        """Return all heads or all tails of the training facts of a relation.

        Parameters
        ----------
        relation
            One of :attr:`relations`.
        side
            "head" or "tail".

        Returns
        -------
        numpy.ndarray
            int64 (n,), sorted node ids.
        """
        facts = self.fitted.facts
        chosen = facts.relation == self._number(relation)
        return np.unique((facts.head if side == "head" else facts.tail)[chosen]).astype(np.int64)

    def _pair(self, head: str | int, tail: str | int) -> tuple[np.ndarray, np.ndarray]:
        """The node ids of one pair, each as an array of one."""
        heads, tails = self._ids([head]), self._ids([tail])
        self.check_pair(int(heads[0]), int(tails[0]))
        return heads, tails

    def _number(self, relation: str) -> int:
        self.check_relation(relation)
        return self.all_relations.index(relation)

    def _nodes(self, head: Terms, tail: Terms) -> tuple[np.ndarray, np.ndarray]:
        heads, tails = self._ids(head), self._ids(tail)
        if heads.shape != tails.shape or heads.ndim != 1:
            raise UsageError("heads and tails must be two lists of the same length")
        for nodes in (heads, tails):
            if len(nodes) and not (nodes.min() >= 0 and nodes.max() < len(self.vocabulary)):
                raise UsageError(f"a node id is out of range; the vocabulary has {len(self.vocabulary):,} terms")
        return heads, tails

    def _ids(self, terms: Terms) -> np.ndarray:
        """The node ids of terms, int64; raise for an unknown name."""
        array = np.asarray(terms, None if hasattr(terms, "dtype") else object)  # numbers stay numbers beside names
        if array.dtype.kind in "iu" or array.size == 0:
            return array.astype(np.int64)
        find = self.vocabulary.find
        try:
            ids = [find(term) if isinstance(term, str) else index(term) for term in array.ravel().tolist()]
        except TypeError as error:
            raise UsageError(f"a term is a name or a node id: {error}") from None
        return np.array(ids, np.int64).reshape(array.shape)
