"""Questions of one's own: the table, conditions, attention checks, page, report, codebook and reminders."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from study_material import crossover_study, small_study
from study_pages import admin, join

from cogstage.errors import CogstageError
from cogstage.study.blind import AnswerError
from cogstage.study.export import codebook_csv, reminders_csv
from cogstage.study.folder import OpenStudy
from cogstage.study.judgements import judgements
from cogstage.study.protocol import Study, study_from_dict
from cogstage.study.questions import Question, read_questions
from cogstage.study.report import build_report, study_results

Make = Callable[[Study], OpenStudy]
TABLE = """name\ttype\ttext\tchoices\tshown_if\texpected
use\tchoice\tWould you use it?\tyes, Yes | no, No <b>\t\t
why\ttext\tWhy not?\t\tuse=no\t
harm\tscale\tHow harmful?\t0 | 1 | 2\tuse=no\t
doubt\tchoice\tWhat made you say no?\ta, the drug | b, the disease\tverdict=no\t
attention\tchoice\tPlease choose the second answer.\t1, first | 2, second\t\t2
"""


@pytest.fixture
def questions(tmp_path: Path) -> tuple[Question, ...]:
    path = tmp_path / "questions.tsv"
    path.write_text(TABLE)
    return read_questions(path)


def test_a_table_becomes_questions(questions: tuple[Question, ...]) -> None:
    assert [q.name for q in questions] == ["use", "why", "harm", "doubt", "attention"]
    assert questions[0].choices == (("yes", "Yes"), ("no", "No <b>"))
    assert questions[2].choices == (("0", "0"), ("1", "1"), ("2", "2"))
    assert questions[2].applies({"ask:use": "no"})
    assert not questions[2].applies({"ask:use": "yes"})
    assert not questions[3].applies({})
    assert [n for n in range(1, 20) if questions[4].stands_at(n)] == [3, 9, 15]
    study = crossover_study(questions=questions)
    assert study_from_dict(study.to_dict()) == study
    assert "questions" not in crossover_study().to_dict()  # the hash of studies without them stays


@pytest.mark.parametrize(
    ("row", "word"),
    [
        ("Use\tchoice\tA?\ta | b\t\t", "new name"),
        ("a\tnumber\tA?\ta | b\t\t", "one of the types"),
        ("a\tchoice\t\ta | b\t\t", "column text"),
        ("a\tchoice\tA?\ta\t\t", "two or more"),
        ("a\tchoice\tA?\ta | a\t\t", "two or more"),
        ("a\tchoice\tA?\t\t\t", "at least two choices"),
        ("a\ttext\tA?\ta | b\t\t", "a text none"),
        ("a\ttext\tA?\t\tlater=1\t", "earlier question"),
        ("a\tchoice\tA?\ta | b\t\tc", "not among the choices"),
    ],
)
def test_wrong_questions_say_so(tmp_path: Path, row: str, word: str) -> None:
    path = tmp_path / "questions.tsv"
    path.write_text(TABLE.splitlines()[0] + "\n" + row + "\n")
    with pytest.raises(CogstageError, match=word):
        read_questions(path)


def test_questions_from_page_to_report(make_study: Make, questions: tuple[Question, ...]) -> None:
    opened = make_study(crossover_study(8, questions=questions))
    invitation = opened.access.invite("Dr A")
    person = invitation.reviewer.id
    browser, headers = join(opened, invitation)
    base = {"familiar-head": "yes", "familiar-tail": "yes", "confidence": "2"}
    for position in range(1, 9):
        page = browser.get(f"/case/{position}").text
        assert ("Please choose the second answer." in page) == (position == 3)
        assert "No &lt;b&gt;" in page
        assert 'data-if="ask-use" data-values="no"' in page
        answers = {**base, "verdict": "yes", "ask-use": "yes"}
        if position == 1:
            answers |= {"ask-use": "no", "verdict": "no"}
        saved = browser.post(f"/case/{position}/save", json={"answers": answers}, headers=headers).json()
        assert saved["complete"] is (position not in (1, 3))
    form = opened.answers.form(person, 1)
    assert form is not None
    unanswered = form.missing(opened.answers.of_case(person, form.case.key))
    assert unanswered == ("ask-harm", "ask-doubt")
    more = {"ask-harm": "2", "ask-doubt": "b", "ask-why": " because\x00 "}
    assert browser.post("/case/1/save", json={"answers": more}, headers=headers).json()["complete"] is True
    assert "because" in browser.get("/case/1").text
    failed = {"answers": {"ask-attention": "1"}}
    assert browser.post("/case/3/save", json=failed, headers=headers).json()["complete"] is True
    for wrong in ({"ask-use": "maybe"}, {"ask-nothing": "1"}):
        assert browser.post("/case/1/save", json={"answers": wrong}, headers=headers).status_code == 400
    assert browser.post("/case/1/save", json=failed, headers=headers).status_code == 400  # no check stands there
    assert opened.answers.progress(person).done == 8
    by_position = {j.position: j for j in judgements(opened)}
    assert by_position[1].own == {"use": "no", "why": "because", "harm": "2", "doubt": "b"}
    assert (by_position[3].checks, by_position[3].failed_checks) == (1, 1)
    browser.post("/case/1/save", json={"answers": {"ask-use": "yes"}}, headers=headers)
    assert {j.position: j for j in judgements(opened)}[1].own == {"use": "yes", "doubt": "b"}  # the others do not apply
    text = build_report(study_results(opened, 10)).markdown()
    assert "| Would you use it? | Yes | 8/8 |" in text
    assert "1 of 1 attention checks failed" in text


def test_the_codebook_names_every_exported_question(make_study: Make, questions: tuple[Question, ...]) -> None:
    for study in (crossover_study(questions=questions), small_study(without_rationales=1)):
        rows = {row["question"]: row for row in csv.DictReader(io.StringIO(codebook_csv(study)))}
        opened = make_study(study)
        form = opened.answers.form(opened.access.invite("Dr A").reviewer.id, 3)
        assert form is not None
        for item in form.needed:
            name, _, rest = item.partition(":")
            row = rows[{"familiar": f"familiar_{rest}", "ask": rest}.get(name, name)]
            assert row["text"]
        if study.questions:
            assert rows["harm"]["shown_if"] == "use=no"
            assert rows["attention"]["expected"] == "2"
            assert rows["use"]["values"] == "yes, Yes | no, No <b>"


def test_reminders_are_a_table_without_links(make_study: Make) -> None:
    opened = make_study(crossover_study())
    first, _ = opened.access.invite_all(["Dr A", "=B()"])
    opened.answers.save(first.reviewer.id, opened.answers.placements(first.reviewer.id)[0].case_key, {"verdict": "yes"})
    text = reminders_csv(opened)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(r["name"], r["finished"], r["complete"], r["open"]) for r in rows] == [
        ("Dr A", "no", "0", "8"), ("'=B()", "no", "0", "8")
    ]  # fmt: skip
    assert rows[0]["last_answer"].endswith("+00:00")
    assert not rows[1]["last_answer"]
    assert first.ticket not in text
    browser, _ = admin(opened)
    for name in ("reminders", "codebook"):
        answer = browser.get(f"/admin/{name}.csv")
        assert answer.status_code == 200
        assert f'"{name}.csv"' in answer.headers["content-disposition"]


def test_returning_reviewers_land_where_they_stopped(make_study: Make) -> None:
    opened = make_study(crossover_study())
    invitation = opened.access.invite("Dr A")
    browser, headers = join(opened, invitation)
    again = f"/join/{invitation.ticket}"
    assert browser.post(again).headers["location"] == "/welcome"
    browser, headers = join(opened, invitation)
    answers = {"familiar-head": "yes", "familiar-tail": "yes", "verdict": "no", "confidence": "3"}
    for position in (1, 2, 4):
        browser.post(f"/case/{position}/save", json={"answers": answers}, headers=headers)
    assert browser.post(again).headers["location"] == "/case/3"
    assert browser.get("/").headers["location"] == "/case/3"


def test_one_minute_is_no_minutes(make_study: Make) -> None:
    opened = make_study(crossover_study())
    invitation = opened.access.invite("Dr A")
    browser, headers = join(opened, invitation)
    answers = {"familiar-head": "yes", "familiar-tail": "yes", "verdict": "no", "confidence": "3"}
    for position in range(1, 8):
        browser.post(f"/case/{position}/save", json={"answers": answers}, headers=headers)
    words = re.findall(r"about 1 minutes? left", browser.get("/case/8").text + browser.get("/welcome").text)
    assert words == ["about 1 minute left"] * 2


def test_text_questions_are_no_choices(questions: tuple[Question, ...], make_study: Make) -> None:
    opened = make_study(crossover_study(questions=questions))
    form = opened.answers.form(opened.access.invite("Dr A").reviewer.id, 1)
    assert form is not None
    assert form.text_fields == ("comment", "ask-why")
    assert form.to_items("ask-why", "x" * 5000) == {"ask:why": "x" * 4000}
    with pytest.raises(AnswerError):
        form.to_items("ask-attention", "1")
