"""Answers given while the server is away are never lost: in a real browser, also closed in between."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from study_material import crossover_study, small_study
from study_stores import PASSWORD
from test_study_browser import choose, find, press, wait_saved, wait_until
from web_browser import Server, browser, screenshot

from cogstage.study.access import Invitation
from cogstage.study.folder import OpenStudy, create_folder, open_folder
from cogstage.study.protocol import Study

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]


def make(folder: Path, study: Study) -> tuple[OpenStudy, Invitation]:
    create_folder(folder, study, PASSWORD, {})
    opened = open_folder(folder)
    invitation = opened.access.invite("Dr A")
    opened.access.introduce(invitation.reviewer.id, "", "")
    return opened, invitation


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[OpenStudy, Invitation, Server]]:
    opened, invitation = make(tmp_path / "study", small_study(cases=3))
    with Server("study", "serve", str(tmp_path / "study")) as server:
        yield opened, invitation, server
    opened.close()


def radios(driver: Any) -> list[str]:
    boxes = driver.find_elements("css selector", 'input[type="radio"]')
    return list(dict.fromkeys(box.get_attribute("name") for box in boxes))


def answer_all(driver: Any) -> dict[str, str]:
    given = {}
    for name in radios(driver):
        given[name] = {"f": "kind_of", "c": "A"}.get(name[0], "2")
        choose(driver, name, given[name])
    return given


def stored(opened: OpenStudy, invitation: Invitation, position: int) -> dict[str, str]:
    form = opened.answers.form(invitation.reviewer.id, position)
    assert form is not None
    return form.to_fields(opened.answers.of_case(invitation.reviewer.id, form.case.key))


def leaving_warns(driver: Any) -> bool:
    script = (
        "const e = new Event('beforeunload', {cancelable: true}); window.dispatchEvent(e); return e.defaultPrevented"
    )
    return bool(driver.execute_script(script))


def test_no_answer_is_lost_while_the_server_is_away(
    served: tuple[OpenStudy, Invitation, Server], tmp_path: Path
) -> None:
    opened, invitation, server = served
    with browser(tmp_path / "profile") as driver:
        driver.get(f"{server.url}/join/{invitation.ticket}")
        press(driver, "Begin")
        driver.get(server.url + "/case/1")
        assert not leaving_warns(driver)
        server.stop()
        given = answer_all(driver)
        find(driver, "#comment").send_keys("said while away")
        given["comment"] = "said while away"
        wait_until(lambda: "trying again" in find(driver, "#save-status").text)
        assert leaving_warns(driver)
        # The state stays in sight at the end of a long page, where the buttons are.
        driver.execute_script("window.scrollTo(0, document.body.scrollHeight)")
        top = driver.execute_script("return document.getElementById('save-status').getBoundingClientRect().top")
        assert 0 <= top < 100
        screenshot(driver, "study-away")
        # "Save and continue" stays on the page and its answers.
        find(driver, 'button[value="next"]').click()
        wait_until(lambda: "trying again" in find(driver, "#save-status").text)
        assert driver.current_url.endswith("/case/1")
        assert len(given) == 14
        assert stored(opened, invitation, 1) == {}
        server.start()
        wait_until(lambda: driver.current_url.endswith("/case/2"))  # and goes on by itself once the server has them
        assert stored(opened, invitation, 1) == given

        # Again, and now the browser is closed before the server comes back.
        server.kill()
        later = answer_all(driver)
        find(driver, "#comment").send_keys("closed at once")
        later["comment"] = "closed at once"
    assert stored(opened, invitation, 2) == {}
    server.start()
    with browser(tmp_path / "profile") as driver:
        driver.get(server.url + "/welcome")  # any page sends what is left
        wait_saved(driver)
        assert stored(opened, invitation, 2) == later
        assert not leaving_warns(driver)
        driver.get(server.url + "/case/2")
        assert find(driver, "#comment").get_attribute("value") == "closed at once"

        # A session that ended keeps the answers, too; the link brings them back, to nobody else.
        driver.get(server.url + "/case/3")
        opened.access.renew_link(invitation.reviewer.id)
        choose(driver, "familiar-head", "no")
        wait_until(lambda: "personal link" in find(driver, "#save-status").text)
        other = opened.access.invite("Dr B")
        opened.access.introduce(other.reviewer.id, "", "")
        driver.get(f"{server.url}/join/{other.ticket}")
        press(driver, "Begin")
        driver.get(server.url + "/case/3")
        assert not driver.find_elements("css selector", "input:checked")
        fresh = opened.access.renew_link(invitation.reviewer.id)
        driver.get(f"{server.url}/join/{fresh.ticket}")
        press(driver, "Begin")
        wait_saved(driver)
        assert stored(opened, invitation, 3) == {"familiar-head": "no"}
        assert stored(opened, other, 3) == {}


def test_a_case_by_keyboard_alone(served: tuple[OpenStudy, Invitation, Server], tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains, Keys

    opened, invitation, server = served
    with browser(tmp_path / "profile") as driver:
        driver.get(f"{server.url}/join/{invitation.ticket}")
        press(driver, "Begin")
        driver.get(server.url + "/case/1")
        names = radios(driver)
        keys = ["1", "3", *"0123n0123n", "2"]
        ActionChains(driver).send_keys(*keys).perform()  # from the first open question to the last
        wait_saved(driver)
        answers = ["yes", "no", *"0123n0123n", "same"]
        assert stored(opened, invitation, 1) == dict(zip(names, answers, strict=True))
        shown = [key.text for key in driver.find_elements("css selector", 'input[name="compare"] + span kbd')]
        assert shown == ["1", "2", "3", "N"]
        ActionChains(driver).send_keys(Keys.ARROW_UP, Keys.ARROW_UP, "3").perform()
        wait_saved(driver)
        assert stored(opened, invitation, 1)[names[-3]] == "3"
        find(driver, "#comment").send_keys("0123")  # text stays text
        wait_saved(driver)
        assert stored(opened, invitation, 1)["comment"] == "0123"


def test_a_crossover_on_a_phone(tmp_path: Path) -> None:
    opened, invitation = make(tmp_path / "study", crossover_study())
    with (
        Server("study", "serve", str(tmp_path / "study")) as server,
        browser(tmp_path / "profile", size=(390, 844)) as driver,
    ):
        driver.get(f"{server.url}/join/{invitation.ticket}")
        press(driver, "Begin")
        for position in range(1, 9):
            driver.get(f"{server.url}/case/{position}")
            if position in (1, 8):
                screenshot(driver, f"study-crossover-{position}-phone", (390, 844))
            for name, value in (
                ("familiar-head", "yes"),
                ("familiar-tail", "no"),
                ("verdict", "yes"),
                ("confidence", "1"),
            ):
                choose(driver, name, value)
            wait_saved(driver)
            assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
        press(driver, "Save and finish")
        assert "Thank you" in find(driver, "main").text
    assert opened.answers.progress(invitation.reviewer.id).done == 8
    opened.close()
