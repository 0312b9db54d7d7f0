"""Evidence agrees with the graph and the facts it was gathered from."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.rationale.evidence import Evidence
from cogstage.triples import Triples

NODES = 7


def graph_of(edges: dict[tuple[int, int], int]) -> Graph:
    keys = sorted(edges)
    source, target = (np.array([key[end] for key in keys], np.int32) for end in (0, 1))
    names = tuple(f"t{i}" for i in range(NODES))
    types = ("drug",) * 3 + ("disorder",) * 3 + ("",)
    vocabulary = Vocabulary(names, names, names, types, np.ones(NODES, np.int64))
    return Graph(vocabulary, source, target, np.array([edges[key] for key in keys], np.int64))


EDGES = st.dictionaries(
    st.tuples(st.integers(0, NODES - 1), st.integers(0, NODES - 1)).filter(lambda pair: pair[0] < pair[1]),
    st.integers(1, 50),
)
NO_FACTS = Triples(np.empty(0, np.int32), np.empty(0, np.int16), np.empty(0, np.int32))


@given(EDGES)
def test_counts_and_ppmi_equal_the_matrices(edges: dict[tuple[int, int], int]) -> None:
    graph = graph_of(edges)
    evidence = Evidence.gather(graph, NO_FACTS, ("may_treat",))
    one, other = (grid.ravel() for grid in np.meshgrid(np.arange(NODES), np.arange(NODES)))
    assert np.array_equal(evidence.counts(one, other), graph.matrix.toarray()[one, other])
    assert evidence.ppmi(one, other) == pytest.approx(graph.ppmi().toarray()[one, other])


def test_facts_are_found_forwards_and_as_inverses() -> None:
    facts = Triples(np.array([0, 1], np.int32), np.array([0, 1], np.int16), np.array([3, 4], np.int32))
    evidence = Evidence.gather(graph_of({(0, 1): 2}), facts, ("may_treat", "causes"))
    head, relation, tail = np.array([0, 3, 0, 4, 3, 0]), np.array([0, 2, 1, 3, 0, 2]), np.array([3, 0, 3, 1, 0, 3])
    assert evidence.is_fact(head, relation, tail).tolist() == [True, True, False, True, False, False]


def test_types_fit_what_training_facts_usually_join() -> None:
    facts = Triples(np.array([0, 1, 2], np.int32), np.zeros(3, np.int16), np.array([3, 4, 5], np.int32))
    evidence = Evidence.gather(graph_of({}), facts, ("may_treat",))
    assert evidence.types_fit(0, 0, 5) is True
    assert evidence.types_fit(5, 1, 0) is True  # the inverse, read backwards
    assert evidence.types_fit(3, 0, 0) is False
    assert evidence.types_fit(6, 0, 3) is None


def test_tensors_give_the_same_evidence_back() -> None:
    graph = graph_of({(0, 1): 2, (1, 5): 7})
    evidence = Evidence.gather(graph, NO_FACTS, ("may_treat",))
    again = Evidence.of_tensors(evidence.tensors(), graph.vocabulary, ("may_treat",))
    assert again.counts(np.array([1, 5]), np.array([5, 0])).tolist() == [7, 0]
