"""The whole study in a real browser: a reviewer with a personal link, the administrator, the report."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from study_material import write_sources
from web_browser import Server, browser, screenshot

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("chromium")]


def cogstage(*arguments: str) -> str:
    code = "from cogstage.cli.main import run; run()"
    done = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def find(driver: Any, css: str) -> Any:
    return driver.find_element("css selector", css)


def press(driver: Any, words: str) -> None:
    """Press the button or link with these words, and wait for the next page."""
    here = find(driver, "html")
    xpath = f"//*[self::a or self::button][contains(normalize-space(), '{words}')]"
    target = driver.find_element("xpath", xpath)
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", target)
    target.click()
    wait_until(lambda: gone(here) and driver.execute_script("return document.readyState") == "complete")


def gone(element: Any) -> bool:
    from selenium.common.exceptions import WebDriverException

    try:
        element.is_enabled()
        return False
    except WebDriverException:
        return True


def wait_until(condition: Any) -> None:
    """Wait until the condition holds; an element that vanishes while the page changes means "not yet"."""
    from selenium.common.exceptions import WebDriverException

    for _ in range(600):
        with suppress(WebDriverException):
            if condition():
                return
        time.sleep(0.05)
    raise AssertionError("waited in vain")


def choose(driver: Any, name: str, value: str) -> None:
    box = find(driver, f'input[name="{name}"][value="{value}"]')
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", box)
    box.click()


def wait_saved(driver: Any) -> None:
    wait_until(lambda: find(driver, "#save-status").text == "All answers saved")


def answer_case(driver: Any, score: int, better: str, trust: str = "2") -> None:
    """Answer everything that the page asks."""
    names = {box.get_attribute("name") for box in driver.find_elements("css selector", 'input[type="radio"]')}
    for name in sorted(names):
        value = str(score) if name.startswith("score-A") else "1"
        value = {"familiar-head": "yes", "familiar-tail": "kind_of", "compare": better, "trust": trust}.get(name, value)
        choose(driver, name, value)
    wait_saved(driver)


def keyboard_answers(driver: Any) -> None:
    """Tab reaches the first question, the arrows change the answer, and each press is saved."""
    from selenium.webdriver import ActionChains, Keys

    def focused() -> Any:
        return driver.switch_to.active_element

    ActionChains(driver).send_keys(Keys.TAB).perform()
    assert "Skip" in focused().text
    focused().send_keys(Keys.ENTER)
    ActionChains(driver).send_keys(Keys.TAB).perform()
    assert focused().get_attribute("name") == "familiar-head"
    focused().send_keys(Keys.SPACE)
    wait_saved(driver)
    focused().send_keys(Keys.ARROW_RIGHT)
    assert focused().get_attribute("value") == "kind_of"
    wait_saved(driver)
    driver.refresh()
    assert find(driver, 'input[name="familiar-head"][value="kind_of"]').is_selected()


def no_console_errors(driver: Any) -> None:
    problems = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert problems == []


def test_the_whole_study(tmp_path: Path) -> None:
    first, second = write_sources(tmp_path)
    folder = tmp_path / "study"
    made = json.loads(
        cogstage(
            "study",
            "create",
            "-s",
            f"open={first}",
            "-s",
            f"closed={second}",
            "--cases",
            "3",
            "--repeats",
            "1",
            "--without-rationales",
            "1",
            "--seed",
            "5",
            "-o",
            str(folder),
            "--json",
        )
    )
    assert made["cases"] == 5
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    with Server("study", "serve", str(folder)) as server:
        # The administrator invites a reviewer.
        with browser(tmp_path / "admin", downloads=downloads) as driver:
            driver.get(server.url + "/admin")
            find(driver, "#password").send_keys("wrong password")
            press(driver, "Sign in")
            assert "Wrong name, password or code" in find(driver, "main").text
            screenshot(driver, "study-sign-in")
            find(driver, "#password").send_keys(made["administrator_password"])
            press(driver, "Sign in")
            find(driver, "#names").send_keys("Dr <b>Ada</b> Lovelace\nDr John Snow")
            press(driver, "Create personal links")
            link = find(driver, "#link-1").get_attribute("value")
            assert len(driver.find_elements("css selector", "input.link")) == 2
            screenshot(driver, "study-admin-link")
            press(driver, "Back to administration")
            assert link not in driver.page_source
            assert "Dr <b>Ada</b> Lovelace" in find(driver, "table").text
            no_console_errors(driver)

        # The reviewer reads, answers, leaves, comes back, finishes.
        with browser(tmp_path / "reviewer") as driver:
            driver.get(server.url)
            assert "personal link" in find(driver, "main").text
            driver.get(link)
            screenshot(driver, "study-join")
            press(driver, "Begin")
            screenshot(driver, "study-start")
            find(driver, "#specialty").send_keys("Cardiology")
            find(driver, "#years").send_keys("12")
            press(driver, "Continue")
            assert "Recall" in find(driver, "main").text
            screenshot(driver, "study-welcome")
            press(driver, "Try a practice case")
            screenshot(driver, "study-practice")
            choose(driver, "score-A-0", "3")
            press(driver, "Finish practice")
            assert driver.current_url.endswith("/case/1")
            screenshot(driver, "study-case-empty")
            keyboard_answers(driver)
            answer_case(driver, 3, "A")
            find(driver, "#comment").send_keys("Makes sense to me. <script>alert(1)</script>")
            wait_saved(driver)
            screenshot(driver, "study-case-filled")
            press(driver, "Save and continue")
            choose(driver, "familiar-head", "no")
            wait_saved(driver)
            press(driver, "Save and continue")
            assert "not answered yet" in find(driver, "#unanswered").text
            screenshot(driver, "study-case-unanswered")
            no_console_errors(driver)
        with browser(tmp_path / "reviewer", size=(390, 844)) as driver:  # the same person, now on a phone
            driver.get(server.url)
            assert driver.current_url.endswith("/case/2")  # where they stopped
            driver.get(server.url + "/welcome")
            screenshot(driver, "study-welcome-phone", (390, 844))
            press(driver, "Continue with case 2")
            assert find(driver, 'input[name="familiar-head"][value="no"]').is_selected()
            press(driver, "Back")
            assert find(driver, "#comment").get_attribute("value").endswith("<script>alert(1)</script>")
            assert find(driver, "#progress").get_attribute("value") == "1"
            screenshot(driver, "study-case-phone", (390, 844))
            assert driver.execute_script("return document.documentElement.scrollWidth <= window.innerWidth")
            driver.back()
            driver.forward()
            press(driver, "Save and continue")
            while "/case/" in driver.current_url:
                answer_case(driver, 2, "B")
                press(driver, "Save and")
            assert "Thank you" in find(driver, "main").text
            screenshot(driver, "study-finish-phone", (390, 844))
            assert "open" not in driver.page_source.lower().replace("is open", "")
            driver.get(server.url + "/admin")
            assert driver.current_url.endswith("/admin/sign-in")
            no_console_errors(driver)

        # A server that goes away in the middle: the click is kept and sent when it is back.
        with browser(tmp_path / "reviewer") as driver:
            driver.execute_cdp_cmd(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
            )
            driver.get(server.url + "/case/1")
            screenshot(driver, "study-case-dark")
            server.kill()
            choose(
                driver,
                "compare" if driver.find_elements("name", "compare") else "trust",
                "B" if driver.find_elements("name", "compare") else "3",
            )
            wait_until(lambda: "trying again" in find(driver, "#save-status").text)
            server.start()
            wait_saved(driver)

        # Without script the buttons save everything.
        with browser(tmp_path / "reviewer") as driver:
            driver.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
            driver.get(server.url + "/case/2")
            find(driver, 'input[name="familiar-head"][value="yes"]').click()
            here = find(driver, "html")
            find(driver, 'button[value="previous"]').click()
            wait_until(lambda: gone(here))
            driver.get(server.url + "/case/2")
            assert find(driver, 'input[name="familiar-head"][value="yes"]').is_selected()

        # The administrator looks, exports, revokes.
        with browser(tmp_path / "admin", downloads=downloads) as driver:
            driver.get(server.url + "/admin")
            assert "5 of 5" in find(driver, "table").text
            screenshot(driver, "study-admin")
            for name, words in (("answers.csv", "Answers"), ("times.csv", "Times"), ("report.html", "Report")):
                driver.find_element("partial link text", words).click()
                wait_until(lambda name=name: (downloads / name).exists())
            driver.get((downloads / "report.html").as_uri())
            screenshot(driver, "study-report")
            driver.get(server.url + "/admin")
            find(driver, 'form[action$="/revoke"] button').click()
            driver.switch_to.alert.accept()
            wait_until(lambda: "revoked" in find(driver, "main").text)
        with browser(tmp_path / "reviewer") as driver:
            driver.get(server.url + "/case/1")
            assert "not signed in" in find(driver, "main").text
            driver.get(link)
            assert "has expired" in find(driver, "main").text
        assert link.rsplit("/", 1)[1] not in server.log()
        assert "/join/***" in server.log()

    rows = list(csv.DictReader((downloads / "answers.csv").open()))
    assert sum(row["question"] == "score" for row in rows) == 40  # four cases with two sets of five
    assert {row["arm"] for row in rows} == {"with rationales", "without rationales"}
    times = list(csv.DictReader((downloads / "times.csv").open()))
    assert len(times) == 5
    assert all(float(row["seconds"]) > 0 for row in times)
    results = json.loads(cogstage("study", "report", str(folder), "-o", str(tmp_path / "report"), "--json"))
    assert results["finished"] == {"R1": True}
    assert "Cardiology" in (tmp_path / "report" / "report.md").read_text()
