"""The profile of a pair in records and models: verdicts, base rates, corrections, alternatives."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sample_predictions import judged, prediction

from cogstage.estimator import CogStage
from cogstage.rationale.corrections import Correction, Corrections
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction

RATES = st.floats(0.001, 0.999)


@pytest.fixture(scope="module")
def model(small_model_folder: Path) -> CogStage:
    return CogStage.load(small_model_folder)


def test_the_profile_has_every_relation_with_its_own_log_odds(model: CogStage) -> None:
    pairs = np.random.default_rng(0).choice(len(model.vocabulary), (30, 2), replace=True)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    expected = {name: model.logits(pairs[:, 0], pairs[:, 1], name) for name in model.relations}
    for relation in model.relations:
        for row, record in enumerate(model.predict_batch(pairs[:, 0], pairs[:, 1], relation, 0)):
            assert {entry.relation for entry in record.profile} == set(model.relations)
            for entry in record.profile:
                assert entry.logit == pytest.approx(expected[entry.relation][row], abs=1e-9)
                assert entry.probability == pytest.approx(1 / (1 + np.exp(-entry.logit)))
            assert record.profile_entry.logit == pytest.approx(record.logit, abs=1e-9)
            assert record.profile_entry.known_fact == record.known_fact
            assert record.profile_entry.types_fit == record.types_fit
            alone = {entry.relation: entry for entry in model.relations_of(*map(int, pairs[row]))}
            for entry in record.profile:  # sums of float32 depend on the size of the batch
                logit = pytest.approx(entry.logit, abs=1e-5)
                probability = pytest.approx(entry.probability, abs=1e-5)
                assert alone[entry.relation] == replace(entry, logit=logit, probability=probability)


def test_known_facts_come_first_and_are_never_called_unlikely(model: CogStage) -> None:
    facts = model.fitted.facts
    for head, tail in zip(facts.head[:40].tolist(), facts.tail[:40].tolist(), strict=True):
        record = model.predict(head, tail)
        assert record.verdict == "known fact"
        rare = record.with_base_rate(1e-6)
        assert rare.verdict == "known fact"
        assert rare.probability < 0.5
        assert "unlikely" not in rare.statement
        assert f"the model alone: {'<0.01' if rare.probability < 0.01 else ''}" in rare.statement


@given(st.lists(st.integers(-50, 50), min_size=3, max_size=3, unique=True), st.booleans(), RATES, RATES)
def test_a_base_rate_judges_the_whole_profile_and_can_be_taken_back(
    tenths: list[int], known: bool, one: float, other: float
) -> None:
    named = {name: n / 10 for name, n in zip(("may_treat", "causes", "contraindicates"), tenths, strict=True)}
    assume(all(abs(logit + np.log(one / (1 - one))) > 1e-9 for logit in named.values()))
    record = judged(prediction(4), named, known=("causes",) if known else ())
    direct, detour = record.with_base_rate(one), record.with_base_rate(other).with_base_rate(one)
    assert [entry.relation for entry in direct.profile] == [entry.relation for entry in detour.profile]
    for first, second in zip(direct.profile, detour.profile, strict=True):
        assert first.logit == pytest.approx(second.logit, abs=1e-9)
        assert first.verdict == second.verdict
    assert direct.profile_entry.logit == pytest.approx(direct.logit, abs=1e-9)
    shift = np.log(one / (1 - one))
    literal = judged(prediction(4), {n: v + shift for n, v in named.items()}, known=("causes",) if known else ())
    assert [entry.verdict for entry in literal.profile] == [entry.verdict for entry in direct.profile]


def test_a_base_rate_can_turn_a_contradiction_into_an_answer() -> None:
    record = judged(prediction(4), {"may_treat": 1.0, "causes": 2.0})
    assert (record.verdict, record.contradicted_by) == ("contradicted", "causes")
    assert record.with_base_rate(0.2).verdict == "unlikely"
    assert record.with_base_rate(0.2).contradicted_by is None


def test_filters_and_shorter_lists_keep_the_profile() -> None:
    record = prediction(9)
    for shown in (record.top(2), Filter(known_only=True).apply(record), record.showing(record.reasons[:1])):
        assert shown.profile == record.profile
    assert Prediction.from_json(record.to_json()).profile == record.profile


def test_corrections_of_the_pair_itself_count(model: CogStage) -> None:
    pair = next(
        (head, tail)
        for head in range(0, 60, 2)
        for tail in range(1, 60, 2)
        if model.predict(head, tail).verdict == "likely"
    )
    record = model.predict(*pair)
    names = record.head.key, record.relation, record.tail.key
    right, wrong = (model.corrected(Corrections((Correction(*names, word),))) for word in ("right", "wrong"))
    confirmed, refused = right.predict(*pair, record.relation), wrong.predict(*pair, record.relation)
    assert (confirmed.verdict, confirmed.known_fact) == ("known fact", True)
    assert refused.verdict == "unlikely"
    assert refused.with_base_rate(0.999).verdict == "unlikely"
    assert "marked wrong by a reader" in refused.statement
    assert right.predict(*pair).relation == record.relation
    assert model.predict(*pair) == record


def test_a_fact_marked_wrong_is_known_no_more(model: CogStage) -> None:
    facts = model.fitted.facts
    head, tail = int(facts.head[0]), int(facts.tail[0])
    record = model.predict(head, tail, model.all_relations[int(facts.relation[0])])
    wrong = Corrections((Correction(record.head.key, record.relation, record.tail.key, "wrong"),))
    refused = model.corrected(wrong).predict(head, tail, record.relation)
    assert (refused.verdict, refused.known_fact) == ("unlikely", False)


def test_a_question_that_does_not_apply_names_those_that_would(model: CogStage) -> None:
    types = model.explainer.types
    assert types is not None
    drug, disorder = (int(model.ends("may_treat", side)[0]) for side in ("head", "tail"))
    record = model.predict(disorder, drug, "may_treat")
    assert record.verdict == "does not apply"
    swapped = record.alternatives[0]
    assert (swapped.head.key, swapped.relation, swapped.tail.key) == (record.tail.key, "may_treat", record.head.key)
    assert f"“{record.tail.name} may treat {record.head.name}”" in record.statement
    assert model.predict(drug, disorder, "may_treat").alternatives == ()


def test_a_sibling_of_a_fitting_type_is_offered(model: CogStage) -> None:
    """A disorder whose name begins like that of a drug takes the place of a drug at the tail."""
    drug, other = (int(node) for node in model.ends("may_treat", "head")[:2])
    disorder = int(model.ends("may_treat", "tail")[0])
    names = list(model.vocabulary.name)
    names[other], names[disorder] = "Acid", "Acid, Stomach Disease"
    explainer = replace(model.explainer, vocabulary=replace(model.vocabulary, name=tuple(names)), _terms={})
    offered = explainer.alternatives(drug, "may_treat", other)
    assert "Acid, Stomach Disease" in [alternative.tail.name for alternative in offered]
