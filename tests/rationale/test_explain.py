"""Prediction records say what the decision gave, and nothing that it did not."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from small_model import small_data

from cogstage.errors import CogstageError, UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.corrections import Correction, Corrections, split_triple
from cogstage.rationale.discover import candidates, discover, left_out_text
from cogstage.rationale.filters import Filter
from cogstage.rationale.record import Prediction
from cogstage.rationale.text import prediction_text
from cogstage.rationale.wording import negated
from cogstage.relations import inverse, phrase

PAIRS = (np.array([0, 4, 10, 102]), np.array([1, 7, 133, 5]))


def test_evidence_in_the_record_is_that_of_graph_and_facts(model: CogStage) -> None:
    graph, data = small_data()
    facts = data.facts("train")
    known = {
        (int(h), data.relations[r], int(t)) for h, r, t in zip(facts.head, facts.relation, facts.tail, strict=True)
    }
    index = graph.vocabulary.index
    counts, ppmi = graph.matrix, graph.ppmi()
    for record in model.predict_batch(*PAIRS, "causes"):
        assert record.known_fact == ((index[record.head.key], "causes", index[record.tail.key]) in known)
        assert record.types_fit is True
        assert record.reasons
        for r in record.reasons:
            a, b = index[r.head.key], index[r.tail.key]
            forward = (a, r.relation, b) if not r.relation.endswith("_inverse") else (b, inverse(r.relation), a)
            assert r.known_fact == (forward in known)
            assert r.relation_probability == 1.0 if r.known_fact else 0 < r.relation_probability < 1
            assert r.count == (int(counts[a, b]) or None)
            assert r.ppmi == (pytest.approx(ppmi[a, b], abs=1e-5) if counts[a, b] else None)
            for target, end, association in (
                (record.head, a, r.head_association),
                (record.tail, b, r.tail_association),
            ):
                if association is None:
                    assert index[target.key] == end
                    continue
                together = int(counts[index[target.key], end])
                assert association.count == (together or None)
                wanted = pytest.approx(ppmi[index[target.key], end], abs=1e-5) if together else None
                assert association.ppmi == wanted
                assert -1 <= association.similarity <= 1
                assert 0 < association.weight <= 1


def test_fewer_reasons_leave_the_sum_as_it_is(model: CogStage) -> None:
    whole = model.predict_batch([4], [7], "may_treat")[0]
    for k in (0, 1, 3):
        some = model.predict_batch([4], [7], "may_treat", k=k)[0]
        assert len(some.reasons) == k
        assert some.reasons == whole.reasons[:k]
        assert some.logit == whole.logit
        assert some.baseline + some.pair_share + sum(r.share for r in some.reasons) + some.rest == pytest.approx(
            some.logit, abs=1e-9
        )


def test_filter_moves_what_it_hides_into_the_rest(model: CogStage) -> None:
    whole = model.predict_batch([4], [7], "may_treat")[0]
    through = whole.reasons[-1].tail.name
    found = model.predict_batch([4], [7], "may_treat", choose=Filter(through=through.lower()[:-1]))[0]
    assert found.reasons
    assert all(through[:-1] in r.head.name + r.tail.name for r in found.reasons)
    assert found.baseline + found.pair_share + sum(r.share for r in found.reasons) + found.rest == pytest.approx(
        found.logit, abs=1e-9
    )


def test_text_shows_a_sum_that_can_be_added_up(model: CogStage) -> None:
    record = model.predict_batch([4], [7], "may_treat")[0]
    text = prediction_text(record)
    lines = text.splitlines()
    last = next(n for n, line in enumerate(lines) if line.startswith("  sum"))  # counts alone follow
    numbers = [float(line[66:76]) for line in lines[1 : last + 1] if line[66:76].strip()]
    assert len(numbers) == len(record.reasons) + 4  # baseline, two summands of the pair, the sum
    assert sum(numbers[:-1]) == pytest.approx(numbers[-1], abs=0.0005 * len(numbers) + 1e-9)
    for r in record.reasons:
        believed = r.known_fact or r.relation_probability >= 0.5
        words = phrase(r.relation) if believed else negated(r.relation)
        assert f"{r.head.name} {words} {r.tail.name}" in text


def test_corrections_hold_for_every_prediction(model: CogStage, tmp_path) -> None:  # type: ignore[no-untyped-def]
    record = model.predict_batch([4], [7], "may_treat")[0]
    worst = record.reasons[0]
    entry = Correction(worst.head.name, worst.relation, worst.tail.key, "wrong", "R1", "2026-01-01", "no")
    path = tmp_path / "corrections.tsv"
    Corrections((entry,)).write(path)
    assert Corrections.read(path).entries == (entry,)
    corrected = model.corrected(Corrections.read(path)).predict_batch([4], [7], "may_treat")[0]
    assert corrected == record.without(worst.triple)
    assert corrected.logit != record.logit
    assert model.predict_batch([4], [7], "may_treat")[0] == record  # the model itself is as it was
    # the inverse triple is the same statement
    turned = Correction(worst.tail.key, inverse(worst.relation), worst.head.key, "wrong")
    assert model.corrected(Corrections((turned,))).predict_batch([4], [7], "may_treat")[0] == corrected


def test_wrong_corrections_are_named(model: CogStage, tmp_path) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(UsageError, match="must be right, wrong or withdrawn"):
        Correction("a", "may_treat", "b", "maybe")
    with pytest.raises(UsageError, match="does not know the relation"):
        model.corrected(Corrections((Correction("C004", "cures", "C007", "right"),)))
    (tmp_path / "c.tsv").write_text("head\trelation\ttail\tverdict\nC004\tmay_treat\tC007\tperhaps\n")
    with pytest.raises(UsageError, match=r"c\.tsv:2: the verdict must be right, wrong or withdrawn, not perhaps"):
        Corrections.read(tmp_path / "c.tsv")
    assert split_triple("Drug number 4 may treat Disorder number 7", ["may_treat"])[1] == "may_treat"
    assert split_triple("A causes_inverse B", ["causes"]) == ("A", "causes_inverse", "B")
    with pytest.raises(UsageError, match="is not a triple"):
        split_triple("aspirin headache", ["may_treat"])


def test_a_record_from_a_file_cannot_be_asked_again(model: CogStage) -> None:
    record = Prediction.from_json(model.predict("C004", "C007", "may_treat").to_json())
    with pytest.raises(CogstageError, match="predict the pair again"):
        record.without(record.reasons[0].triple)


def fitting(model: CogStage, relation: str, side: str, given: int) -> list[int]:
    """Terms of the types that at least 1 % of the relation's facts have opposite a term of this type, facts or not."""
    types, facts = model.vocabulary.type, model.fitted.facts
    number = model.all_relations.index(relation)
    ends = [(h, t) for h, r, t in zip(facts.head, facts.relation, facts.tail, strict=True) if r == number]
    at = 0 if side == "head" else 1
    opposite = Counter(types[pair[1 - at]] for pair in ends if types[pair[at]] == types[given])
    return [n for n, kind in enumerate(types) if opposite[kind] >= 0.01 * len(ends)]


def test_discover_ranks_terms_without_facts_of_the_relation(model: CogStage) -> None:
    everything = {p.head.key for p in discover(model, "may_treat", tail=7, top=1000)}
    with_facts = {p.head.key for p in discover(model, "may_treat", tail=7, top=1000, with_facts=True)}
    assert with_facts < everything
    pool = candidates(model, "may_treat", None, 7)
    assert {model.vocabulary.term[node] for node in pool.tolist()} == everything
    assert left_out_text(model, "may_treat", len(pool)) == (
        f"may treat: {len(pool)} terms ranked; {len(model.vocabulary) - 1 - len(pool)} left out,"
        " because their types do not fit the relation"
    )


@pytest.mark.parametrize("new_only", [False, True])
@pytest.mark.parametrize("side", ["head", "tail"])
def test_discover_equals_ranking_every_candidate(model: CogStage, side: str, new_only: bool) -> None:
    given = 4 if side == "head" else 7
    pool = [n for n in fitting(model, "may_treat", side, given) if n != given]
    heads, tails = ([given] * len(pool), pool) if side == "head" else (pool, [given] * len(pool))
    records = model.predict_batch(heads, tails, "may_treat", 0)
    records = [record for record in records if not (new_only and record.known_fact)]
    order = sorted(records, key=lambda record: (record.verdict == "contradicted", -record.logit))
    listed = discover(model, "may_treat", **{side: given}, top=10, new_only=new_only)  # type: ignore[arg-type]
    assert [record.logit for record in listed] == pytest.approx([record.logit for record in order[:10]])
    assert [record.rank for record in listed] == list(range(1, len(listed) + 1))
    assert not any(record.reasons for record in listed)
    assert all(record.types_fit for record in listed)
    every = discover(model, "may_treat", **{side: given}, top=1000, new_only=new_only, drop_contradicted=True)  # type: ignore[arg-type]
    kept = [record.logit for record in order if record.verdict != "contradicted"]
    assert [record.logit for record in every] == pytest.approx(kept)


def test_discover_refuses_a_term_whose_type_never_stands_there(
    model: CogStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    types, relation = model.explainer.types, "may_treat"
    assert types is not None
    tails, heads = model.ends(relation, "tail"), set(model.ends(relation, "head").tolist())
    kinds = {model.vocabulary.type[node] for node in heads}
    given = next(node for node in tails.tolist() if model.vocabulary.type[node] not in kinds)
    with monkeypatch.context() as context:
        context.delattr("cogstage.trained_model.TrainedModel.profiles")  # nothing is ranked first
        with pytest.raises(UsageError, match="as head; give it as `tail` instead"):
            discover(model, relation, head=given)
    assert discover(model, relation, tail=given)


def test_discover_needs_one_end(model: CogStage) -> None:
    with pytest.raises(UsageError, match="a head or a tail"):
        discover(model, "may_treat")
    with pytest.raises(UsageError, match="top must be at least 1"):
        discover(model, "may_treat", head=4, top=0)


ANYTHING = st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=30)


@given(who=ANYTHING, why=ANYTHING)
@example(who='Dr "Bob"', why='"')
def test_a_table_of_corrections_is_the_same_when_it_is_written_again(who: str, why: str) -> None:
    """Quotes that were doubled with every verdict would make a table grow until nobody can read it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "corrections.tsv"
        Corrections((Correction("C004", "may_treat", "C007", "wrong", who, "", why),)).write(path)
        first = path.read_bytes()
        assert len(first) < 400
        for _ in range(3):
            Corrections.read(path).write(path)
        assert path.read_bytes() == first
