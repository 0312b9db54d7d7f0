"""Prediction records say what the forward pass gave, and nothing that it did not."""

from __future__ import annotations

import numpy as np
import pytest
from small_model import small_data

from cogstage.errors import UsageError
from cogstage.rationale.cogstage import CogStage
from cogstage.rationale.discover import discover
from cogstage.rationale.filters import Filter
from cogstage.relations import inverse

PAIRS = (np.array([0, 4, 10, 102]), np.array([1, 7, 133, 5]))


def test_top_rationales_are_the_highest_products_of_attention_and_probability(model: CogStage) -> None:
    heads, tails = PAIRS
    records = model.predict_batch(heads, tails, "may_treat", k=7)
    for row, record in enumerate(records):
        assumptions = model.assumptions(heads[row : row + 1], tails[row : row + 1], "may_treat")
        expected = []
        for place in range(assumptions.pair_head.shape[1]):
            for number in range(assumptions.relation_probability.shape[2]):
                p = float(assumptions.relation_probability[0, place, number])
                score = float(assumptions.attention[0, place]) * p
                if score > 0:
                    a, b = int(assumptions.pair_head[0, place]), int(assumptions.pair_tail[0, place])
                    name = model.explainer.relation_name(number)
                    expected.append((score, model.vocabulary.term[a], name, model.vocabulary.term[b]))
        expected.sort(key=lambda entry: -entry[0])
        assert [r.score for r in record.rationales] == pytest.approx([e[0] for e in expected[:7]], rel=1e-5)
        shown = {(r.head.key, r.relation, r.tail.key) for r in record.rationales}
        cut = min((score for score, *_ in expected[:7]), default=0.0)
        assert shown <= {entry[1:] for entry in expected if entry[0] >= cut * (1 - 1e-6)}


def test_contributions_of_all_triples_and_unrecognised_pairs_make_up_the_logit(model: CogStage) -> None:
    assumptions = model.assumptions([4], [7], "may_treat")
    total = float((assumptions.attention * assumptions.value).sum() + assumptions.bias.detach())
    assert float(assumptions.logit) == pytest.approx(total, abs=1e-5)


def test_no_rationale_restates_its_target_in_either_direction(model: CogStage) -> None:
    _, data = small_data()
    for relation in model.relations:
        pairs = data.pairs(relation, "test")
        for record in model.predict_batch(pairs.head[:100], pairs.tail[:100], relation, k=50):
            target = (record.head.key, relation, record.tail.key)
            for r in record.rationales:
                assert (r.head.key, r.relation, r.tail.key) != target
                assert (r.tail.key, inverse(r.relation), r.head.key) != target


def test_evidence_in_the_record_is_that_of_graph_and_facts(model: CogStage) -> None:
    graph, data = small_data()
    facts = data.facts("train")
    known = {
        (int(h), data.relations[r], int(t)) for h, r, t in zip(facts.head, facts.relation, facts.tail, strict=True)
    }
    index = graph.vocabulary.index
    counts, ppmi = graph.matrix, graph.ppmi()
    for record in model.predict_batch(*PAIRS, "causes", k=20):
        assert record.known_fact == ((index[record.head.key], "causes", index[record.tail.key]) in known)
        for r in record.rationales:
            a, b = index[r.head.key], index[r.tail.key]
            forward = (a, r.relation, b) if not r.relation.endswith("_inverse") else (b, inverse(r.relation), a)
            assert r.known_fact == (forward in known)
            assert r.cooccurrence == (int(counts[a, b]) or None)
            for target, end, recall in ((record.head, a, r.head_recall), (record.tail, b, r.tail_recall)):
                together = int(counts[index[target.key], end])
                assert recall.count == (together or None)
                assert recall.ppmi == (pytest.approx(ppmi[index[target.key], end], abs=1e-6) if together else None)


def test_ranks_follow_recall_probabilities(model: CogStage) -> None:
    record = model.predict_batch([4], [7], "may_treat", k=50)[0]
    by_term = {r.head.key: r.head_recall for r in record.rationales}
    ordered = sorted(by_term.values(), key=lambda recall: recall.rank)
    assert [recall.probability for recall in ordered] == sorted((r.probability for r in ordered), reverse=True)


def test_more_rationales_than_there_are_gives_all_of_them(model: CogStage) -> None:
    few, many = (model.predict_batch([4], [7], "may_treat", k=k)[0] for k in (3, 10**6))
    assert len(few.rationales) == 3
    assert few.rationales == many.rationales[:3]
    assert len(many.rationales) >= many.assumptions


def test_filter_looks_beyond_the_first_k(model: CogStage) -> None:
    everything = model.predict_batch([4], [7], "may_treat", k=200)[0].rationales
    last = everything[-1].head.name
    found = model.predict_batch([4], [7], "may_treat", k=2, choose=Filter(through=last))[0].rationales
    assert found
    assert all(last in (r.head.name, r.tail.name) for r in found)


def test_a_model_without_calibration_says_so(model: CogStage) -> None:
    kept = dict(model.calibration)
    try:
        model.calibration.clear()
        record = model.predict("C004", "C007", "may_treat")
    finally:
        model.calibration.update(kept)
    assert not record.calibrated
    assert record.probability == record.raw_probability


@pytest.mark.parametrize("new_only", [False, True])
@pytest.mark.parametrize("side", ["head", "tail"])
def test_discover_equals_ranking_every_candidate(model: CogStage, side: str, new_only: bool) -> None:
    given = 4 if side == "head" else 7
    pool = [n for n in model.ends("may_treat", "tail" if side == "head" else "head").tolist() if n != given]
    heads, tails = ([given] * len(pool), pool) if side == "head" else (pool, [given] * len(pool))
    records = model.predict_batch(heads, tails, "may_treat", 0)
    records = [record for record in records if not (new_only and record.known_fact)]
    expected = sorted((record.raw_probability for record in records), reverse=True)[:10]
    found = discover(model, "may_treat", **{side: given}, top=10, new_only=new_only)
    assert [record.raw_probability for record in found] == pytest.approx(expected)
    assert not any(record.rationales for record in found)
    if new_only:
        assert not any(record.known_fact for record in found)


def test_discover_needs_just_one_end(model: CogStage) -> None:
    with pytest.raises(UsageError, match="head or a tail"):
        discover(model, "may_treat", head=1, tail=2)
    with pytest.raises(UsageError, match="knows"):
        discover(model, "may_prevent", head=1)


def test_same_term_twice_is_wrong_use(model: CogStage) -> None:
    with pytest.raises(UsageError, match="the same term"):
        model.predict("C004", "remedy 4")
