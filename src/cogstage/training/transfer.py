"""A trained network on another graph: the new counts take the place of the old, stages 2 and 3 stay as they are.

Terms are matched by their keys. υ is learned again from the new counts with υ' held fixed: υ' gives the vectors their
meaning, so stage 2 reads the new υ as it read the old. A term that the network has never met is folded in first:

    υ_i  = (Σ_j PPMI(i,j)·υ'_j)·(Σ_j υ'_j·υ'_jᵀ)⁻¹        over the terms j that both graphs have

so that υ'_j·υ_i is as near PPMI(i,j) as can be, which is how the SVD starts; υ'_i likewise, with υ in the place of υ'.
"""

from __future__ import annotations

import copy

import numpy as np
import scipy.sparse as sp
import torch
from torch.nn import functional as F

from cogstage.errors import UsageError
from cogstage.graph.cooccurrence import Graph
from cogstage.graph.ppmi import Ppmi
from cogstage.graph.vocabulary import Vocabulary
from cogstage.model.network import PER_TERM, Network
from cogstage.model.recall import RecallTargets
from cogstage.training.distributed import Processes
from cogstage.training.fitting import few_threads
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


def move_network(network: Network, graph: Graph, place: np.ndarray, seed: int) -> Network:
    """A copy of the network whose rows are the nodes of ``graph`` and whose υ fits its counts."""
    ppmi = graph.lazy_ppmi(network.config.ppmi_shift, network.config.ppmi_smoothing)
    moved = _renumbered(network, place)
    _fold_in(moved, ppmi.csr(), place >= 0)
    _learn_recall(moved, ppmi, seed)
    return moved.eval()


def _renumbered(network: Network, place: np.ndarray) -> Network:
    """A copy with a row per node of the new graph; rows of new terms are zero."""
    moved = copy.deepcopy(network)
    known = torch.from_numpy(place >= 0)
    from_old = torch.from_numpy(np.maximum(place, 0))
    for name in PER_TERM:
        owner, _, parameter = name.rpartition(".")
        values = moved.get_parameter(name).detach()[from_old] * known[:, None]
        setattr(moved.get_submodule(owner), parameter, torch.nn.Parameter(values))
    return moved


@torch.no_grad()
def _fold_in(network: Network, ppmi: sp.csr_matrix, known: np.ndarray) -> None:
    """Vectors of the terms that the network has not met, from those it has."""
    new = np.flatnonzero(~known)
    if not len(new):
        return
    recall, old = network.recall, np.flatnonzero(known)
    rows, columns = ppmi[new][:, old], ppmi[old][:, new].T.tocsr()
    for vectors, other, counts in ((recall.term, recall.context, rows), (recall.context, recall.term, columns)):
        basis = other[torch.from_numpy(old)].double().numpy()
        square = basis.T @ basis
        square += RIDGE * np.trace(square) / len(square) * np.eye(len(square))
        solved = np.linalg.solve(square, (counts @ basis).T).T
        vectors[torch.from_numpy(new)] = torch.from_numpy(solved).to(vectors.dtype)


def _learn_recall(network: Network, ppmi: Ppmi, seed: int) -> None:
    """Minimise L_n over υ alone."""
    config, recall, targets = network.config, network.recall, RecallTargets.from_ppmi(ppmi)
    nodes = targets.nodes
    recall.context.requires_grad_(False)
    steps = config.recall_passes * -(-len(nodes) // config.recall_batch)
    phase = Phase(1, "Stage 1, recall", max(steps, 1), max(steps, 1))
    adam = Adam([("term", recall.term)], config.recall_rate, config.clip, {}, Processes())
    rng = np.random.default_rng([seed, 11])
    with few_threads():
        for step in range(steps):
            chosen = rng.choice(nodes, size=min(config.recall_batch, len(nodes)), replace=False)
            terms = F.embedding(torch.from_numpy(chosen), recall.term, sparse=True)
            (recall.loss(terms, targets.rows(chosen)) / len(chosen)).backward()  # type: ignore[no-untyped-call]
            adam.step(phase.factor(step))
    recall.context.requires_grad_(True)
