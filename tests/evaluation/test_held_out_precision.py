"""Precision on held-out facts, counted triple by triple: training facts are neither hits nor misses."""

from __future__ import annotations

import numpy as np
import pytest
from small_model import small_data

from cogstage.estimator import CogStage
from cogstage.evaluation.faithfulness import measure_faithfulness
from cogstage.triples import Triples


def both_ways(facts: Triples, relations: int) -> set[tuple[int, int, int]]:
    """The facts as plain triples, and each read backwards."""
    rows = list(zip(facts.head.tolist(), facts.relation.tolist(), facts.tail.tolist(), strict=True))
    return set(rows) | {(tail, relation + relations, head) for head, relation, tail in rows}


def test_training_facts_count_neither_way(model: CogStage) -> None:
    _, data = small_data()
    relation, k = "may_treat", 5
    target, relations = model.all_relations.index(relation), len(model.all_relations)
    measured = measure_faithfulness(model, data, relation, pairs=10_000, ks=(k,))
    train = both_ways(data.facts("train"), relations)
    held_out = both_ways(data.facts("dev"), relations) | both_ways(data.facts("test"), relations)
    pairs = data.pairs(relation, "test")
    positive = model.logits(pairs.head, pairs.tail, relation) >= 0
    expected, skipped = [], 0
    for head, tail in zip(pairs.head[positive], pairs.tail[positive], strict=True):
        found = model.predictor.removable(np.array([head]), np.array([tail]), target)
        ranked = np.argsort(-found.score[0], kind="stable")[: 8 * k]
        shown = [at for at in ranked.tolist() if found.recognised[0, at] and found.score[0, at] > 0]
        triples = [(int(found.head[0, at]), int(found.relation[0, at]), int(found.tail[0, at])) for at in shown]
        unseen = [triple for triple in triples if triple not in train]
        skipped += len(triples) - len(unseen)
        first = unseen[:k]
        expected.append(np.mean([triple in held_out for triple in first]) if first else np.nan)
    assert skipped > 0  # otherwise nothing is shown here
    values = measured.values[f"precision@{k} on held-out facts, top"]
    assert values == pytest.approx(np.array(expected), nan_ok=True)
