"""Disagreements and decisions, without the source of any reason."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable

import pytest
from study_material import crossover_study, small_study
from study_pages import admin

from cogstage.errors import UsageError
from cogstage.study.adjudication import case_overviews, decide, decisions_csv
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import Study

Make = Callable[[Study], OpenStudy]


def answer_all(opened: OpenStudy, scores: str, comment: str = "") -> None:
    """One more reviewer, who gives the reasons of the first case these scores in the order of the sets."""
    person = opened.access.invite(f"Dr {scores} {comment}").reviewer.id
    case = opened.study.cases[0]
    items = {f"score:{one.source}:{n}": scores[n] for one in case.sets for n in range(len(one.rationales))}
    opened.answers.save(person, case.key, {**items, **({"comment": comment} if comment else {})})


def test_scores_more_than_one_apart_are_disagreements(make_study: Make) -> None:
    opened = make_study(small_study())
    for scores in ("01230", "02n23"):
        answer_all(opened, scores, "odd <b>" if scores[0] == "0" else "")
    first, *others = case_overviews(opened)
    assert (first.reviewers, first.disagreed) == (2, 2)  # the last reason of both sets: 0 and 3
    assert not any(other.reviewers or other.disagreed for other in others)
    numbers = [n for n, question in enumerate(first.questions) if question.disagreed]
    decide(opened, first.case.key, numbers[0], "3", " checked\n twice ")
    decide(opened, first.case.key, numbers[0], "2", "again")
    assert case_overviews(opened)[0].disagreed == 1
    (row,) = csv.DictReader(io.StringIO(decisions_csv(opened)))
    assert (row["decision"], row["note"], row["answers"]) == ("2", "again", "0: 1, 3: 1")
    assert row["text"] == first.questions[numbers[0]].text
    for wrong in ((first.case.key, 99, "1"), (first.case.key, 0, "9"), ("none", 0, "1")):
        with pytest.raises(UsageError):
            decide(opened, *wrong, "")


def test_the_pages_show_answers_and_comments_but_no_source(make_study: Make) -> None:
    opened = make_study(small_study())
    answer_all(opened, "00000", "odd <b>")
    answer_all(opened, "33333")
    browser, token = admin(opened)
    key = opened.study.cases[0].key
    overview, page = browser.get("/admin/cases").text, browser.get(f"/admin/cases/{key}").text
    for text in (overview, page):
        assert "open" not in text.replace("opened", "")
        assert "closed" not in text
    assert "odd &lt;b&gt;" in page
    assert page.count("disagreement") == 10
    fields = {"form_token": token, "question": "4", "value": "1", "note": "=why"}
    assert browser.post(f"/admin/cases/{key}", data=fields).status_code == 303
    assert "Decided: <b>a little helpful</b> (=why)" in browser.get(f"/admin/cases/{key}").text
    assert "'=why" in browser.get("/admin/decisions.csv").text
    assert browser.post(f"/admin/cases/{key}", data={**fields, "form_token": "x"}).status_code == 403
    assert browser.post(f"/admin/cases/{key}", data={**fields, "question": "-1"}).status_code == 400
    assert browser.get("/admin/cases/none").status_code == 404


def test_verdicts_of_a_crossover_can_be_decided(make_study: Make) -> None:
    opened = make_study(crossover_study())
    key = opened.study.cases[2].key
    for name, verdict in (("A", "yes"), ("B", "no"), ("C", "no")):
        opened.answers.save(opened.access.invite(name).reviewer.id, key, {"verdict": verdict})
    overview = case_overviews(opened)[2]
    assert [(q.name, q.disagreed, dict(q.answers)) for q in overview.questions] == [
        ("verdict", True, {"A": "yes", "B": "no", "C": "no"})
    ]
    decide(opened, key, 0, "no", "")
    assert case_overviews(opened)[2].disagreed == 0
