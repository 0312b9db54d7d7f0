"""A graph of two communities and a relation that holds within them: the right answer is known to every method."""

from __future__ import annotations

import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.graph.vocabulary import Vocabulary
from cogstage.knowledge.dataset import SPLITS, Dataset, Pairs
from cogstage.triples import Triples

SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}


def two_communities(
    size: int = 100, inside: float = 0.3, across: float = 0.06, seed: int = 0
) -> tuple[Graph, np.ndarray]:
    """A graph of 2·size terms with more and heavier edges within a community, and each term's community."""
    rng = np.random.default_rng(seed)
    community = np.repeat([0, 1], size)
    source, target = np.triu_indices(2 * size, k=1)
    same = community[source] == community[target]
    there = rng.random(len(source)) < np.where(same, inside, across)
    source, target, same = source[there], target[there], same[there]
    count = 1 + rng.poisson(np.where(same, 6, 3))
    vocabulary = Vocabulary.of_terms([f"term {i}" for i in range(2 * size)])
    return Graph(vocabulary, source.astype(np.int32), target.astype(np.int32), count.astype(np.int64)), community


def planted(
    pairs: int = 6000, shuffled: bool = False, relations: tuple[str, ...] = ("may_treat",), seed: int = 0
) -> tuple[Graph, Dataset]:
    """Even terms are heads, odd ones tails; the relation holds where both are of one community.

    ``shuffled`` keeps pairs and graph and draws the labels anew, so that nothing can be learned.
    """
    graph, community = two_communities(seed=seed)
    rng = np.random.default_rng((seed, 1))
    terms = np.arange(graph.n_nodes)
    everything = np.stack(np.meshgrid(terms[::2], terms[1::2], indexing="ij"), axis=-1).reshape(-1, 2)
    made: dict[tuple[str, str], Pairs] = {}
    facts: dict[str, list[tuple[int, int, int]]] = {split: [] for split in SPLITS}
    for number, relation in enumerate(relations):
        chosen = everything[rng.permutation(len(everything))[:pairs]]
        label = (community[chosen[:, 0]] == community[chosen[:, 1]]).astype(np.int8)
        if shuffled:
            label = rng.permutation(label)
        begin = 0
        for split in SPLITS:
            end = begin + int(SHARES[split] * pairs)
            head, tail, held = chosen[begin:end, 0], chosen[begin:end, 1], label[begin:end]
            made[relation, split] = Pairs(head.astype(np.int32), tail.astype(np.int32), held)
            facts[split] += [(h, number, t) for h, t, y in zip(head, tail, held, strict=True) if y]
            begin = end
    triples = {}
    for split, rows in facts.items():
        head, number, tail = np.array(rows, np.int64).reshape(-1, 3).T
        triples[split] = Triples(head.astype(np.int32), number.astype(np.int16), tail.astype(np.int32))
    manifest = {"relations": list(relations), "options": {"negatives": "planted"}}
    return graph, Dataset(relations, graph.vocabulary.hash, graph.n_nodes, manifest, {}, made, triples)
