"""A closed study: no request writes to it, and none that comes at the same moment is written after it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sqlalchemy import select
from study_material import small_study
from study_pages import join

from cogstage.study import schema
from cogstage.study.answers import StudyClosed
from cogstage.study.folder import OpenStudy
from cogstage.study.protocol import Study

Make = Callable[[Study], OpenStudy]
TABLES = (schema.answer, schema.change, schema.visit, schema.reviewer, schema.placement)


def content(opened: OpenStudy) -> list[list[Any]]:
    with opened.database.reading() as connection:
        return [sorted(map(repr, connection.execute(select(table)))) for table in TABLES]


def test_no_request_of_a_reviewer_writes_to_it(make_study: Make) -> None:
    opened = make_study(small_study())
    browser, headers = join(opened, opened.access.invite("Dr A"))
    save = {"answers": {"familiar-head": "yes"}, "seconds": 3}
    assert browser.post("/case/1/save", json=save, headers=headers).status_code == 200
    page = browser.get("/case/2").text
    visit = page.split('name="visit" value="')[1].split('"')[0]
    opened.answers.close()
    before = content(opened)
    token = headers["X-Form-Token"]
    profile = {"form_token": token, "agree": "yes", "specialty": "Surgery", "years": "3"}
    form = {"form_token": token, "familiar-head": "no", "visit": visit, "seconds": "5", "go": "next"}
    for path in ("/case/1/save", "/case/2/save"):
        assert browser.post(path, json={**save, "visit": visit}, headers=headers).status_code == 409
    for path, fields in (("/case/1", form), ("/case/2", form), ("/start", profile)):
        assert browser.post(path, data=fields).status_code == 409, path
    for path in ("/case/1", "/case/3", "/welcome", "/finish", "/practice", "/start", "/"):
        assert browser.get(path).status_code < 500
    assert browser.post("/practice", data=form).status_code < 500
    assert content(opened) == before


def test_answers_and_the_closing_take_turns(make_study: Make) -> None:
    """Eight threads save while the study is closed: what was acknowledged is there, and nothing else."""
    opened = make_study(small_study())
    people = [opened.access.invite(f"Dr {n}").reviewer.id for n in range(8)]
    start, acknowledged = threading.Barrier(9), []

    def click(person: str) -> None:
        start.wait()
        for number in range(40):
            try:
                opened.answers.save(person, "c001", {"comment": f"{person} {number}"})
            except StudyClosed:
                return
            acknowledged.append(f"{person} {number}")

    with ThreadPoolExecutor(9) as threads:
        clicking = [threads.submit(click, person) for person in people]
        start.wait()
        while len(acknowledged) < 20:
            pass
        opened.answers.close()
        closed = set(acknowledged)  # those that returned before
        for thread in clicking:
            thread.result()
    with opened.database.reading() as connection:
        kept = set(connection.scalars(select(schema.change.c.value)))
    assert kept == set(acknowledged)
    assert closed <= kept
    assert len(kept) < 8 * 40  # it was closed before the last click
