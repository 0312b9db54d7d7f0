"""Drawing cases, placing them for reviewers, and the blind form."""

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from study_material import SECRET, crossover_study, small_study, sources, write_sources

from cogstage.errors import CogstageError, UsageError
from cogstage.study.blind import AnswerError, BlindForm
from cogstage.study.draw import StudyOptions, draw_study
from cogstage.study.placement import Placement, place_cases
from cogstage.study.protocol import study_from_dict
from cogstage.study.report import build_report
from cogstage.study.results import analyse
from cogstage.study.sources import WeightedTriple, read_records, read_source


def test_default_cases_are_correctly_predicted_positives() -> None:
    made, labels = sources()
    study = draw_study(made, labels, StudyOptions(seed=1))
    assert len(study.cases) == 30
    assert {case.outcome for case in study.cases} == {"true_positive"}
    assert {len(entry.rationales) for case in study.cases for entry in case.sets} == {5}
    assert len({(case.head, case.tail) for case in study.cases}) == 30
    again = draw_study(made, labels, StudyOptions(seed=1))
    assert again.cases == study.cases
    assert again.id != study.id
    assert draw_study(made, labels, StudyOptions(seed=2)).cases != study.cases


def test_options_add_wrong_predictions_repeats_and_an_arm() -> None:
    study = small_study(cases=10, false_positives=3, false_negatives=2, repeats=4, without_rationales=5)
    firsts = [case for case in study.cases if case.repeat_of is None]
    assert Counter(case.outcome for case in firsts) == {"true_positive": 15, "false_positive": 3, "false_negative": 2}
    for case in study.cases:
        assert case.label == (0 if case.outcome == "false_positive" else 1)
        if case.repeat_of:
            assert study.case(case.repeat_of).sets == case.sets
    assert len(study.cases) - len(firsts) == 4


def test_rationales_are_the_best_by_score() -> None:
    made, _ = sources()
    case = small_study(per_set=2).cases[0]
    prediction = made[0].predictions[case.head, "may_treat", case.tail]
    best = sorted(prediction.reasons, key=lambda entry: -abs(entry.weight))[:2]
    assert [r.tail for r in case.set_of("open").rationales] == [r.tail for r in best]


def test_rationales_are_said_forwards_and_once() -> None:
    """A source that also says "is treated by" would be known by it."""
    made, labels = sources()
    turned = {
        pair: replace(
            entry,
            reasons=(
                WeightedTriple("fever", "may_treat_inverse", "aspirin", 0.9),
                WeightedTriple("aspirin", "may_treat", "fever", 0.8),
                WeightedTriple("stroke", "causes_inverse", "smoking", 0.7),
            ),
        )
        for pair, entry in made[0].predictions.items()
    }
    study = draw_study([replace(made[0], predictions=turned), made[1]], labels, StudyOptions(cases=2))
    for case in study.cases:
        shown = [triple.text for triple in case.set_of("open").rationales]
        assert shown == ["aspirin may treat fever", "smoking causes stroke"]


def test_only_cases_with_distinct_sets_are_drawn_and_the_others_counted() -> None:
    """Ten of 30 cases have the same reasons in both sets, in another order or with other weights."""
    (one, two), labels = sources()
    alike = dict(list(one.predictions.items())[:10])
    turned = {
        pair: replace(entry, reasons=tuple(replace(r, weight=1.5 * r.weight) for r in reversed(entry.reasons)))
        for pair, entry in alike.items()
    }
    closed = replace(two, predictions=two.predictions | turned)
    study = draw_study([one, closed], labels, StudyOptions(cases=20, repeats=5, per_set=7))
    assert study.same_sets_left_out == 10
    assert all(set(c.sets[0].rationales) != set(c.sets[1].rationales) for c in study.cases)
    assert study_from_dict(json.loads(json.dumps(study.to_dict()))) == study
    report = build_report(analyse(study, [], draws=10)).markdown()
    assert "left out because two sources give the same reasons: 10" in report
    with pytest.raises(UsageError, match=r"share only 20 .*10 more have two sets with the same reasons"):
        draw_study([one, closed], labels, StudyOptions(cases=21, per_set=7))


def test_the_first_source_alone_may_judge() -> None:
    made, labels = sources()
    with pytest.raises(UsageError, match="share only 30"):
        draw_study(made, labels, StudyOptions(cases=36))
    assert len(draw_study(made, labels, StudyOptions(cases=36, judged_by="first")).cases) == 36


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"cases": 0}, "at least one case"),
        ({"cases": -1, "false_positives": 3}, "negative"),
        ({"repeats": 5}, "`repeats`"),
        ({"per_set": 0}, "`per_set`"),
        ({"threshold": 1.0}, "`threshold`"),
        ({"judged_by": "me"}, "`judged_by`"),
        ({"relation": "causes"}, "share no labelled pair"),
    ],
)
def test_wrong_options_say_so(options: dict[str, object], word: str) -> None:
    with pytest.raises(UsageError, match=word):
        small_study(**options)


def test_sources_are_files_of_records_with_labels(tmp_path: Path) -> None:
    for path, source in zip(write_sources(tmp_path), sources()[0], strict=True):
        read = read_source(source.name, path, {}, 5)
        assert read.predictions == source.predictions
        assert read.labels == sources()[1]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("{", "2: "),
        ("[1]", "JSON object"),
        ('{"schema": 2}', "prediction record of schema 2"),
        ('{"schema": 4}', "not a prediction record"),
        ('{"schema": 99}', "schema 99"),
        ("repeat", "twice"),
        ("label", "neither 0 nor 1"),
    ],
)
def test_broken_records_are_named_by_line(tmp_path: Path, line: str, word: str) -> None:
    (path, _) = write_sources(tmp_path)
    first = path.read_text().splitlines()[0]
    if line == "repeat":
        line = first
    if line == "label":
        line = json.dumps({**json.loads(path.read_text().splitlines()[1]), "label": 2})
    path.write_text(f"{first}\n{line}\n")
    with pytest.raises(CogstageError, match=word) as caught:
        read_records("open", path)
    assert f"{path}:2" in str(caught.value)


def test_sources_that_are_not_there_or_not_records(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        read_source("a", tmp_path / "none.jsonl", {}, 5)
    with pytest.raises(UsageError, match="not a model or graph"):
        read_source("a", tmp_path, {}, 5)
    (tmp_path / "a.txt").write_text("x")
    with pytest.raises(UsageError, match="unknown table format"):
        read_source("a", tmp_path / "a.txt", {}, 5)
    (tmp_path / "a.jsonl").write_text("\n")
    with pytest.raises(CogstageError, match="no prediction record"):
        read_source("a", tmp_path / "a.jsonl", {}, 5)


def test_a_study_survives_its_json() -> None:
    for study in (small_study(repeats=1), crossover_study(consent="I agree.", contact="a@b")):
        again = study_from_dict(json.loads(json.dumps(study.to_dict())))
        assert again == study
        assert again.hash == study.hash


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 50), st.integers(1, 12), st.integers(0, 12), st.integers(0, 5))
def test_placements_show_every_case_once_and_repeats_late(number: int, cases: int, repeats: int, bare: int) -> None:
    study = small_study(cases=cases, repeats=min(repeats, cases), without_rationales=bare)
    placed = place_cases(study, number, SECRET)
    assert place_cases(study, number, SECRET) == placed
    assert [p.position for p in placed] == list(range(1, len(study.cases) + 1))
    assert sorted(p.case_key for p in placed) == sorted(case.key for case in study.cases)
    assert all(sorted(p.set_order) == ["closed", "open"] for p in placed)
    position = {p.case_key: p.position for p in placed}
    bare_keys = {p.case_key for p in placed if p.bare}
    for case in study.cases:
        if case.repeat_of:
            assert position[case.key] > position[case.repeat_of]
            assert not {case.key, case.repeat_of} & bare_keys
    assert len(bare_keys) == min(bare, len([c for c in study.cases if not c.repeat_of]) - min(repeats, cases))


def test_set_order_is_fair_over_reviewers_and_cases() -> None:
    study = small_study(cases=30)
    orders = Counter(p.set_order[0] for number in range(1, 21) for p in place_cases(study, number, SECRET))
    assert 240 < orders["open"] < 360  # of 600; five standard deviations
    assert len({tuple(p.case_key for p in place_cases(study, n, SECRET)) for n in range(1, 21)}) == 20


fields = st.one_of(
    st.sampled_from(
        ["familiar-head", "familiar-tail", "trust", "comment", "compare", "rank-A", "rank-C", "score-B-4", "verdict"]
    ),
    st.builds("{}-{}-{}".format, st.sampled_from(["score", "rank"]), st.sampled_from("ABCD"), st.integers(-2, 7)),
    st.text(max_size=12),
)
values = st.one_of(
    st.sampled_from(["0", "1", "2", "3", "4", "n", "yes", "kind_of", "A", "B", "same"]), st.text(max_size=8)
)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(fields, values), max_size=12), st.booleans(), st.booleans())
def test_stored_answers_come_back_as_the_same_fields(
    clicks: list[tuple[str, str]], three_sets: bool, bare: bool
) -> None:
    worlds = ("open", "closed", "third") if three_sets else ("open", "closed")
    study = small_study(worlds, without_rationales=1)
    form = BlindForm(study, study.cases[0], Placement(1, study.cases[0].key, worlds[::-1], bare))
    stored: dict[str, str] = {}
    expected: dict[str, str] = {}
    for field, value in clicks:
        try:
            items = form.to_items(field, value)
        except AnswerError:
            continue
        stored.update(items)
        expected[field] = items.get("comment", value)
        assert all(len(item) <= 64 for item in items)
        assert items.keys() <= form.needed | {"comment"}
    assert set(form.missing(stored)) == form.fields.keys() - expected.keys()
    assert form.to_fields(stored) == expected


def test_the_blind_form_names_no_source() -> None:
    study = small_study()
    form = BlindForm(study, study.cases[0], Placement(1, study.cases[0].key, ("closed", "open")))
    assert [entry.letter for entry in form.sets] == ["A", "B"]
    assert form.sets[0].rationales == study.cases[0].set_of("closed").rationales
    assert form.to_items("compare", "A") == {"rank:closed": "1", "rank:open": "2"}
    assert form.to_items("compare", "same") == {"rank:closed": "1", "rank:open": "1"}
    assert form.to_items("score-B-0", "3") == {"score:open:0": "3"}
    with pytest.raises(AnswerError) as caught:
        form.to_items("score-B-0", "9")
    assert "open" not in str(caught.value)
    assert form.to_items("comment", " a\x00b\ud800 ") == {"comment": "ab?"}
