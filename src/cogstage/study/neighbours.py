"""A baseline that gives reasons without a model: known facts about similar terms.

For "h r t" it names training facts that keep one end, "i r t" and "h r j", where i is like h and j is like t by the
cosine of their PPMI rows. The reasons of a model should be better than these.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cogstage.graph.cooccurrence import Graph
from cogstage.knowledge.dataset import Dataset
from cogstage.study.sources import ExplainedPair, Pair, Source, WeightedTriple


def reasons_of_neighbours(name: str, graph_path: Path, dataset_path: Path, pairs: Sequence[Pair], most: int) -> Source:
    """The ``most`` most similar known facts of each pair; a pair without any has no prediction.

    The probability is that of at least one of them carrying over, each with its cosine as the chance: 1 - Π(1 - cos).
    """
    graph, dataset = Graph.load(graph_path), Dataset.load(dataset_path)
    dataset.check_fits(graph.vocabulary)
    rows = graph.ppmi()
    lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
    facts = dataset.for_fitting().train_facts()
    names, node = graph.vocabulary.name, graph.vocabulary.index

    def like(one: int, others: np.ndarray) -> np.ndarray:
        products = (rows[others] @ rows[one].T).toarray().ravel()
        similarity: np.ndarray = products / np.maximum(lengths[others] * lengths[one], 1e-12)
        return similarity

    predictions: dict[Pair, ExplainedPair] = {}
    for pair in pairs:
        if pair[0] not in node or pair[2] not in node:
            continue
        head, tail = node[pair[0]], node[pair[2]]
        same = facts.relation == dataset.relations.index(pair[1])
        heads = facts.head[same & (facts.tail == tail) & (facts.head != head)]
        tails = facts.tail[same & (facts.head == head) & (facts.tail != tail)]
        weighed = [(weight, i, tail) for weight, i in zip(like(head, heads), heads, strict=True)]
        weighed += [(weight, head, j) for weight, j in zip(like(tail, tails), tails, strict=True)]
        best = sorted((entry for entry in weighed if entry[0] > 0), key=lambda entry: (-entry[0], *entry[1:]))[:most]
        if best:
            reasons = tuple(
                WeightedTriple(names[i], pair[1], names[j], float(weight), known=True) for weight, i, j in best
            )
            probability = 1.0 - float(np.prod([1.0 - min(reason.weight, 1.0) for reason in reasons]))
            predictions[pair] = ExplainedPair(names[head], pair[1], names[tail], probability, reasons)
    return Source(name, predictions, {})
