"""Practice cases with known answers, and feedback on them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from study_material import crossover_study, small_study
from study_pages import join

from cogstage.errors import CogstageError, UsageError
from cogstage.study.folder import OpenStudy
from cogstage.study.practice import read_practice
from cogstage.study.protocol import Study, study_from_dict

Make = Callable[[Study], OpenStudy]
TABLE = """head,relation,tail,label,probability,reason_head,reason_relation,reason_tail,weight,feedback
aspirin,causes,anaemia,0,0.8,ibuprofen,causes,anaemia,1.0,Bleeding <b> does; aspirin alone does not.
aspirin,causes,anaemia,0,0.8,aspirin,may_treat,pain,-0.5,
insulin,may_treat,diabetes,1,0.9,metformin,may_treat,diabetes,1.0,Of course.
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "practice.csv"
    path.write_text(TABLE.replace("-0.5,\n", "-0.5,see above\n"))
    return path


def test_known_answers_are_told_after_practice(make_study: Make, table: Path) -> None:
    cases = read_practice(table, 5)
    assert [(c.text, c.label, c.outcome, c.feedback[:8]) for c in cases] == [
        ("aspirin causes anaemia", 0, "false_positive", "Bleeding"),
        ("insulin may treat diabetes", 1, "true_positive", "Of cours"),
    ]
    study = crossover_study(practice=cases)
    assert study_from_dict(study.to_dict()) == study
    opened = make_study(study)
    invitation = opened.access.invite("Dr A")
    browser, headers = join(opened, invitation)
    assert "Practice case 1 of 2" in browser.get("/practice").text
    fields = {"form_token": next(iter(headers.values()))}
    wrong = browser.post("/practice?case=1", data={**fields, "verdict": "yes"}).text
    assert "Not quite" in wrong
    assert "Bleeding &lt;b&gt; does" in wrong
    assert "/practice?case=2" in wrong
    right = browser.post("/practice?case=2", data={**fields, "verdict": "yes"}).text
    assert "<h1>Right</h1>" in right
    assert "Start with the cases" in right
    assert browser.post("/practice?case=0", data=fields).headers["location"] == "/case/1"
    assert opened.answers.all() == []


def test_practice_needs_labels_and_a_crossover(table: Path, tmp_path: Path) -> None:
    unlabelled = tmp_path / "unlabelled.csv"
    unlabelled.write_text(TABLE.replace("label,", "old,").replace("-0.5,\n", "-0.5,x\n"))
    with pytest.raises(CogstageError, match="`label`"):
        read_practice(unlabelled, 5)
    with pytest.raises(UsageError, match="`practice`"):
        small_study(practice=read_practice(table, 5))


def test_without_a_table_the_practice_case_is_the_same_for_all(make_study: Make) -> None:
    opened = make_study(crossover_study())
    browser, headers = join(opened, opened.access.invite("Dr A"))
    assert "aspirin" in browser.get("/practice").text
    answer = browser.post("/practice?case=1", data={"form_token": next(iter(headers.values()))})
    assert answer.headers["location"] == "/case/1"
