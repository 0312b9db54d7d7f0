"""A trained network on another graph: the new counts take the place of the old, stages 2 and 3 stay as they are.

Terms are matched by their keys. υ is learned again from the new counts with υ' held fixed: υ' gives the vectors their
meaning, so stage 2 reads the new υ as it read the old. A term that the network has never met is folded in first:

    υ_i  = (Σ_j PPMI(i,j)·υ'_j)·(Σ_j υ'_j·υ'_jᵀ)⁻¹        over the terms j that both graphs have

so that υ'_j·υ_i is as near PPMI(i,j) as can be, which is how the SVD starts; υ'_i likewise, with υ in the place of υ'.
ρ is the new graph's A on the right singular vectors of the old one. With A = U·S·Vᵀ and ρ = U·√S that is

    ρ_new = A_new·V/√S = A_new·Aᵀ·ρ/S²        and S is the diagonal of ρᵀ·ρ

The SVD is truncated after a few iterations, so a term that both graphs have keeps the small rest ρ - A·V/√S.
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch.nn import functional as F

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.ppmi import Ppmi
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.network import PER_TERM, Network
from cogstage.model.recall import BATCH, PpmiWithFacts, RecallTargets
from cogstage.training.distributed import Processes
from cogstage.training.fitting import one_thread
from cogstage.training.optimiser import Adam
from cogstage.training.staged import Phase
from cogstage.triples import Triples

RIDGE = 1e-3  # of the mean diagonal, so that the inverse exists


def places(old: Vocabulary, new: Vocabulary) -> np.ndarray:
    """For each node of ``new`` the node of ``old`` with the same key, or -1. int64 (V',)."""
    return np.array([old.index.get(term, -1) for term in new.term], np.int64)


def move_facts(facts: Triples, place: np.ndarray, old_nodes: int) -> Triples:
    """The facts whose two ends the new graph has, by its numbers."""
    new = np.full(old_nodes, -1, np.int64)
    new[place[place >= 0]] = np.flatnonzero(place >= 0)
    head, tail = new[facts.head], new[facts.tail]
    kept = (head >= 0) & (tail >= 0)
    if not kept.any():
        raise UsageError("no training fact of the model has both ends in the other graph; are the terms keyed alike?")
    return Triples(head[kept].astype(np.int32), facts.relation[kept], tail[kept].astype(np.int32))


def move_network(
    network: Network, own: tuple[Graph, Triples], other: tuple[Graph, Triples], place: np.ndarray, seed: int
) -> Network:
    """A copy of the network whose rows are the nodes of the other graph and whose υ and ρ fit its counts.

    ``own`` and ``other`` are each a graph and the training facts by its numbers.
    """
    ppmi = other[0].lazy_ppmi(network.config.ppmi_shift, network.config.ppmi_smoothing)
    moved = _renumbered(network, place)
    _fold_in(moved, ppmi, place >= 0)
    _learn_recall(moved, ppmi, seed)
    with torch.no_grad():
        vectors = network.recognition.fact_vectors.numpy()
        moved.recognition.fact_vectors.copy_(
            torch.from_numpy(_move_fact_vectors(vectors, _matrix(network, *own), _matrix(network, *other), place))
        )
    return moved.eval()


def _matrix(network: Network, graph: Graph, facts: Triples) -> PpmiWithFacts:
    config = network.config
    ppmi = graph.lazy_ppmi(config.ppmi_shift, config.ppmi_smoothing)
    rows = np.stack([facts.head, facts.relation, facts.tail], 1)
    return PpmiWithFacts.from_facts(ppmi, rows, network.relations, config.fact_weight)


def _move_fact_vectors(vectors: np.ndarray, own: PpmiWithFacts, other: PpmiWithFacts, place: np.ndarray) -> np.ndarray:
    """ρ (V', d) for the other graph; columns that the own one lacks count nothing."""
    size = (vectors.astype(np.float64) ** 2).sum(axis=0)  # S
    right = own.T @ (vectors * np.divide(1.0, size**2, out=np.zeros_like(size), where=size > 1e-9))  # V/√S
    old_terms, new_terms = own.shape[0], other.shape[0]
    k, term = np.divmod(other.columns, new_terms)
    keys = np.where(place[term] >= 0, k * old_terms + place[term], -1)
    at = np.minimum(np.searchsorted(own.columns, keys), len(own.columns) - 1)
    source = np.concatenate([place, np.where(own.columns[at] == keys, old_terms + at, -1)])
    moved = np.where(source[:, None] >= 0, right[source], 0.0)
    rest = np.where(place[:, None] >= 0, (vectors - own @ right)[place], 0.0)
    result: np.ndarray = (other @ moved + rest).astype(np.float32)
    return result


def _renumbered(network: Network, place: np.ndarray) -> Network:
    """A copy with a row per node of the new graph; rows of new terms are zero."""
    moved = copy.deepcopy(network)
    known = torch.from_numpy(place >= 0)
    from_old = torch.from_numpy(np.maximum(place, 0))
    for name in PER_TERM:
        owner, _, parameter = name.rpartition(".")
        values = moved.get_parameter(name).detach()[from_old] * known[:, None]
        learned = moved.get_parameter(name).requires_grad
        setattr(moved.get_submodule(owner), parameter, torch.nn.Parameter(values, requires_grad=learned))
    return moved


@torch.no_grad()
def _fold_in(network: Network, ppmi: Ppmi, known: np.ndarray) -> None:
    """Vectors of the terms that the network has not met, from those it has."""
    new = np.flatnonzero(~known)
    if not len(new):
        return
    recall = network.recall
    for vectors, other, matrix in ((recall.term, recall.context, ppmi), (recall.context, recall.term, ppmi.T)):
        basis = other.double().numpy() * known[:, None]  # rows of new terms are 0
        square = basis.T @ basis
        square += RIDGE * np.trace(square) / len(square) * np.eye(len(square))
        solved = np.linalg.solve(square, (matrix @ basis)[new].T).T
        vectors[torch.from_numpy(new)] = torch.from_numpy(solved).to(vectors.dtype)


def _learn_recall(network: Network, ppmi: Ppmi, seed: int) -> None:
    """Minimise L_n over υ alone."""
    config, recall, targets = network.config, network.recall, RecallTargets.from_ppmi(ppmi)
    nodes = targets.nodes
    recall.context.requires_grad_(False)
    steps = config.recall_passes * -(-len(nodes) // BATCH)
    phase = Phase(1, "Stage 1, recall", max(steps, 1), max(steps, 1))
    adam = Adam([("term", recall.term)], config.recall_rate, config.clip, {}, Processes())
    rng = np.random.default_rng([seed, 11])
    with one_thread():
        for step in range(steps):
            chosen = rng.choice(nodes, size=min(BATCH, len(nodes)), replace=False)
            terms = F.embedding(torch.from_numpy(chosen), recall.term, sparse=True)
            (recall.loss(terms, targets.rows(chosen)) / len(chosen)).backward()  # type: ignore[no-untyped-call]
            adam.step(phase.factor(step))
    recall.context.requires_grad_(True)
