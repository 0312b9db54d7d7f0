"""A trained network on another graph: the new counts replace the old ones, stages 2 and 3 stay as they are.

Terms are matched by their keys. υ and ρ of the new graph are its rows of PPMI and [P | λ·F] on the right singular
vectors of the old graph. With A = U·S·Vᵀ and υ = U·√S that is

    υ_new = A_new·V/√S = A_new·Aᵀ·υ/S²        and S is the diagonal of υᵀ·υ

The SVD is truncated after a few iterations, so a term that both graphs have keeps the small rest υ - A·V/√S.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.network import Network
from cogstage.model.recall import fact_columns, unit_rows, with_facts
from cogstage.triples import Triples


def matching_nodes(old: Vocabulary, new: Vocabulary) -> np.ndarray:
    """For each node of ``new`` the node of ``old`` with the same key, or -1. int64 (V',)."""
    return np.array([old.index.get(term, -1) for term in new.term], np.int64)


def move_facts(facts: Triples, match: np.ndarray, old_nodes: int) -> Triples:
    """The facts whose two ends the new graph has, by its numbers."""
    new = np.full(old_nodes, -1, np.int64)
    new[match[match >= 0]] = np.flatnonzero(match >= 0)
    head, tail = new[facts.head], new[facts.tail]
    kept = (head >= 0) & (tail >= 0)
    if not kept.any():
        raise UsageError("no training fact of the model has both ends in the other graph; are the terms keyed alike?")
    return Triples(head[kept].astype(np.int32), facts.relation[kept], tail[kept].astype(np.int32))


def move_network(
    network: Network, own: tuple[Graph, Triples], other: tuple[Graph, Triples], match: np.ndarray
) -> Network:
    """A copy of the network whose rows are the nodes of the other graph.

    ``own`` and ``other`` are each a graph and the training facts by its numbers.
    """
    config, relations = network.config, len(network.recognition.ppmi)
    counts, tables, keys = [], [], []
    for graph, facts in (own, other):
        counts.append(graph.ppmi(config.ppmi_shift, config.ppmi_smoothing).astype(np.float32))
        rows = np.stack([facts.head, facts.relation, facts.tail], 1)
        table, columns = fact_columns(rows, relations, graph.n_nodes)
        tables.append(with_facts(unit_rows(counts[-1]), table, config.fact_weight))
        keys.append(columns)
    source = _matching_columns(keys[0], keys[1], match, own[0].n_nodes)
    offset = np.where(match[:, None] >= 0, network.recognition.offset[match], 0).astype(np.float32)
    return replace(
        network,
        term=_move_vectors(network.term, counts[0], counts[1], match, match),
        fact=_move_vectors(network.fact, tables[0], tables[1], match, source),
        recognition=replace(network.recognition, offset=offset),
    )


def _matching_columns(own: np.ndarray, other: np.ndarray, match: np.ndarray, old_terms: int) -> np.ndarray:
    """For each column of the other graph's [P | λ·F] the same column of the own one, or -1."""
    k, term = np.divmod(other, len(match))
    wanted = np.where(match[term] >= 0, k * old_terms + match[term], -1)
    at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
    return np.concatenate([match, np.where(own[at] == wanted, old_terms + at, -1)])


def _move_vectors(
    vectors: np.ndarray, own: sp.csr_matrix, other: sp.csr_matrix, match: np.ndarray, source: np.ndarray
) -> np.ndarray:
    """Vectors (V', d) of the other graph's terms; its columns without a ``source`` in the own matrix count nothing."""
    size = (vectors.astype(np.float64) ** 2).sum(axis=0)  # S
    right = own.T @ (vectors * np.divide(1.0, size**2, out=np.zeros_like(size), where=size > 1e-9))  # V/√S
    moved = np.where(source[:, None] >= 0, right[source], 0.0)
    rest = np.where(match[:, None] >= 0, (vectors - own @ right)[match], 0.0)
    result: np.ndarray = (other @ moved + rest).astype(np.float32)
    return result
