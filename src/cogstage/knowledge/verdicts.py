"""Verdicts of readers as training data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from cogstage.knowledge.dataset import FittingView, Pairs
from cogstage.triples import TripleIndex, Triples


def view_with_verdicts(view: FittingView, verdicts: Mapping[tuple[int, int, int], bool], n_nodes: int) -> FittingView:
    """A fitting view with verdicts on triples (head, relation number, tail); relations from R on are inverses.

    A right triple is a training fact and a positive training pair. A wrong triple is a negative training pair, and no
    training fact even if it was one. Neither is a dev pair any more.
    """
    relations = len(view.relations)
    forward = {(h, r, t) if r < relations else (t, r - relations, h): right for (h, r, t), right in verdicts.items()}
    right, wrong = (_triples([triple for triple, is_right in forward.items() if is_right == side]) for side in (1, 0))
    of_right, of_wrong = (TripleIndex(triples, relations, n_nodes) for triples in (right, wrong))
    facts = view.train_facts()
    kept = ~_contains(of_wrong, facts) & ~_contains(of_right, facts)
    facts = Triples.join([Triples(facts.head[kept], facts.relation[kept], facts.tail[kept]), right])
    pairs = dict(view._pairs)
    for number, name in enumerate(view.relations):
        for split in ("train", "dev"):
            own = pairs[name, split]
            of_pair = np.full(len(own), number)
            marked = of_right.contains(own.head, of_pair, own.tail) | of_wrong.contains(own.head, of_pair, own.tail)
            parts = [Pairs(own.head[~marked], own.tail[~marked], own.label[~marked])]
            if split == "train":
                parts += [_pairs(triples, number, label) for triples, label in ((right, 1), (wrong, 0))]
            pairs[name, split] = Pairs(
                *(np.concatenate([getattr(part, end) for part in parts]) for end in ("head", "tail", "label"))
            )
    known = TripleIndex(facts, relations, n_nodes)
    return replace(view, _pairs=pairs, _train_facts=facts, _known=known)


def _triples(numbered: list[tuple[int, int, int]]) -> Triples:
    head, relation, tail = np.array(sorted(numbered), np.int64).reshape(-1, 3).T
    return Triples(head.astype(np.int32), relation.astype(np.int16), tail.astype(np.int32))


def _contains(index: TripleIndex, triples: Triples) -> np.ndarray:
    return index.contains(triples.head, triples.relation.astype(np.int64), triples.tail)


def _pairs(triples: Triples, relation: int, label: int) -> Pairs:
    own = triples.relation == relation
    return Pairs(triples.head[own], triples.tail[own], np.full(own.sum(), label, np.int8))
