"""Twenty reviewers clicking as fast as they can while the server is killed: nothing acknowledged is lost or doubled."""

from __future__ import annotations

import random
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from sqlalchemy import select
from study_material import crossover_study, small_study
from study_stores import PASSWORD
from web_browser import Server

from cogstage.study import schema
from cogstage.study.access import Invitation
from cogstage.study.folder import create_folder, open_folder

REVIEWERS, CLICKS = 20, 20
Choices = dict[str, list[str]]
FAMILIAR = ["yes", "no", "kind_of"]
ASKED: dict[str, Choices] = {  # the questions of each protocol's page, with some of their answers
    "sets": {f"score-{letter}-{n}": ["0", "1", "2", "3"] for letter in "AB" for n in range(5)}
    | {"familiar-head": FAMILIAR, "familiar-tail": FAMILIAR, "compare": ["A", "B", "same"]},
    "crossover": {
        "familiar-head": FAMILIAR,
        "familiar-tail": FAMILIAR,
        "verdict": ["yes", "no"],
        "confidence": ["0", "1", "2", "3"],
    },
}
STUDIES = {"sets": lambda: small_study(cases=5), "crossover": lambda: crossover_study(8)}


def clicks(seed: int, cases: int, asked: Choices) -> Iterator[tuple[int, str, str]]:
    """Case, field and value, with many answers changed again."""
    rng = random.Random(seed)
    for _ in range(CLICKS):
        field = rng.choice(list(asked))
        yield rng.randint(1, cases), field, rng.choice(asked[field])


class Reviewer(threading.Thread):
    """Clicks one after the other; a click that was not acknowledged is sent again, as the page's script does."""

    def __init__(
        self, url: str, invitation: Invitation, planned: list[tuple[int, str, str]], clicked: threading.Semaphore
    ) -> None:
        super().__init__()
        self.url, self.invitation, self.planned, self.clicked = url, invitation, planned, clicked
        self.acknowledged: list[tuple[int, str, str]] = []
        self.retries = 0
        self.problem: BaseException | None = None

    def run(self) -> None:
        try:
            with httpx.Client(base_url=self.url, timeout=60) as client:
                self._click(client)
        except BaseException as error:
            self.problem = error

    def _click(self, client: httpx.Client) -> None:
        self._insist(client, "POST", f"/join/{self.invitation.ticket}", 303)
        page = self._insist(client, "GET", "/start", 200).text
        token = re.findall(r'data-token="(\w+)"', page)[0]
        self._insist(client, "POST", "/start", 303, data={"form_token": token})
        for case, field, value in self.planned:
            body = {"answers": {field: value}, "seconds": 0.5}
            self._insist(client, "POST", f"/case/{case}/save", 200, json=body, headers={"X-Form-Token": token})
            self.acknowledged.append((case, field, value))
            self.clicked.release()

    def _insist(self, client: httpx.Client, method: str, path: str, expected: int, **more: object) -> httpx.Response:
        for _ in range(1200):
            try:
                answer = client.request(method, path, **more)  # type: ignore[arg-type]
            except httpx.TransportError:
                self.retries += 1
                time.sleep(0.1)
                continue
            assert answer.status_code == expected, (path, answer.status_code, answer.text)
            return answer
        raise AssertionError("the server did not come back")


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["sets", "crossover"])
def test_killed_in_the_middle_of_twenty_reviewers(
    protocol: str, database_url: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "study"
    study = STUDIES[protocol]()
    assert study.is_crossover == (protocol == "crossover")
    create_folder(folder, study, PASSWORD, {}, database_url)
    opened = open_folder(folder, database_url)
    invitations = [opened.access.invite(f"Dr {n}") for n in range(REVIEWERS)]
    before = {entry.reviewer.id: opened.answers.placements(entry.reviewer.id) for entry in invitations}
    if database_url:
        monkeypatch.setenv("COGSTAGE_DATABASE", database_url)
    server = Server("study", "serve", str(folder))
    clicked = threading.Semaphore(0)
    with server:
        reviewers = [
            Reviewer(server.url, entry, list(clicks(n, len(study.cases), ASKED[protocol])), clicked)
            for n, entry in enumerate(invitations)
        ]
        for thread in reviewers:
            thread.start()
        for _ in range(2):  # killed twice, each time after a quarter of all clicks
            for _ in range(REVIEWERS * CLICKS // 4):
                assert clicked.acquire(timeout=120)
            server.kill()
            server.start()
        for thread in reviewers:
            thread.join()
    problems = [thread.problem for thread in reviewers if thread.problem]
    assert problems == []
    assert sum(thread.retries for thread in reviewers) > 0  # the kills were felt

    stored = 0
    for thread in reviewers:
        person = thread.invitation.reviewer.id
        assert opened.answers.placements(person) == before[person]  # the same order and arms as before the kills
        if study.is_crossover:
            assert sum(placed.bare for placed in before[person]) == len(study.cases) // 2
        expected: dict[tuple[str, str], str] = {}
        for case, field, value in thread.acknowledged:
            form = opened.answers.form(person, case)
            assert form is not None
            expected.update({(form.case.key, item): v for item, v in form.to_items(field, value).items()})
        found = {(a.case_key, a.item): a.value for a in opened.answers.all() if a.reviewer_id == person}
        assert found == expected  # every acknowledged answer, the last of each, and no other
        stored += len(found)
        assert len(thread.acknowledged) == CLICKS
    assert len(opened.answers.all()) == stored  # none twice

    with opened.database.reading() as connection:
        history = connection.execute(select(schema.change).order_by(schema.change.c.id)).all()
    last: dict[tuple[str, str, str], str] = {}
    for row in history:
        key = (row.reviewer_id, row.case_key, row.item)
        assert last.get(key) != row.value  # a click sent again is no second change
        last[key] = row.value
    assert last == {(a.reviewer_id, a.case_key, a.item): a.value for a in opened.answers.all()}
    tickets = [entry.ticket.split(".")[1] for entry in invitations]
    assert not any(ticket in server.log() for ticket in tickets)
    opened.close()
