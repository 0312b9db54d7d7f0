"""The explorer in a real browser, served by ``cogstage serve`` with two workers."""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import web_browser

pytestmark = pytest.mark.slow


def wait_for(driver: Any, css: str, seconds: float = 20.0) -> Any:
    from selenium.common.exceptions import StaleElementReferenceException

    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(StaleElementReferenceException):  # drawn again between finding it and looking at it
            if found := [element for element in driver.find_elements("css selector", css) if element.is_displayed()]:
                return found[0]
        time.sleep(0.05)
    raise AssertionError(f"{css} did not appear on {driver.current_url}")


CONTRAST = """
const rgb = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
const light = ([r, g, b]) => {
  const part = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
};
const behind = (element) => {
  for (let e = element; e; e = e.parentElement) {
    const colour = rgb(getComputedStyle(e).backgroundColor);
    if (colour.length === 3 || colour[3] === 1) return colour;
  }
  return [255, 255, 255];
};
const low = [];
const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (walk.nextNode()) {
  const element = walk.currentNode.parentElement;
  if (!walk.currentNode.textContent.trim() || element.closest("svg, .hidden-text, .skip, script")) continue;
  if (!element.getClientRects().length) continue;
  const one = light(rgb(getComputedStyle(element).color)), other = light(behind(element));
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) low.push([element.tagName, walk.currentNode.textContent.trim().slice(0, 30), ratio]);
}
return low;
"""
PAIR = "/pair?head=C004&tail=C007&relation=may_treat"
PAGES = {
    "start": "/",
    "pair": PAIR,
    "discover": "/discover?term=C004&relation=causes",
    "compare": "/compare?term=C004&relation=causes&side=head&with=C007&with=C009",
    "term": "/term?key=C004",
    "batch": "/batch",
    "workspace": "/workspace",
    "corrections": "/corrections",
    "about": "/about",
    "docs": "/docs",
    "search": "/search?q=drug",
    "unknown": "/pair?head=remedi+4&tail=C007&relation=may_treat",
    "error": "/pair?head=C004&tail=C007&k=999",
}


@pytest.fixture(scope="module")
def server(small_model_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[web_browser.Server]:
    file = tmp_path_factory.mktemp("team") / "corrections.tsv"
    running = web_browser.Server("serve", str(small_model_folder), "--workers", "2", "--corrections", str(file))
    running.start("/api/v1/health")
    yield running
    running.stop()


def wait_for_text(driver: Any, selector: str, text: str) -> None:
    """Wait until an element shows a text; lists are drawn again with every letter, so it is looked up each time."""
    from selenium.webdriver.support.ui import WebDriverWait

    script = "return [...document.querySelectorAll(arguments[0])].some(e => e.textContent.includes(arguments[1]))"
    WebDriverWait(driver, 20).until(lambda found: found.execute_script(script, selector, text))


def test_a_person_asks_reads_and_filters(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    from selenium.webdriver.common.keys import Keys

    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(server.url)
        head = driver.find_element("id", "head")
        head.send_keys("remedy 4")
        wait_for_text(driver, "#head-list [role=option]:first-child", "Drug number 4")
        head.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
        assert head.get_attribute("value") == "Drug number 4"
        tail = driver.find_element("id", "tail")
        tail.send_keys("qqqqzzzz")
        wait_for_text(driver, "#tail-list [aria-disabled]", "No match")
        tail.send_keys(Keys.CONTROL, "a")
        tail.send_keys("Disorder number 7", Keys.ESCAPE, Keys.ENTER)
        wait_for(driver, ".answer")
        assert "Drug number 4" in driver.find_element("tag name", "h1").text

        driver.find_element("css selector", ".evidence summary").send_keys(Keys.ENTER)  # opens from the keyboard
        wait_for_text(driver, ".evidence[open] dl", "What supports it?")
        driver.find_element("css selector", "input[name=known_only]").click()
        driver.find_element("css selector", ".filters button").click()
        wait_for(driver, ".filters input[name=known_only]:checked")
        assert not driver.find_elements("css selector", ".sum .tag.assumed")
        driver.find_element("css selector", "button[data-copy]").click()
        wait_for(driver, "#copied")
        assert not [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]


def test_striking_out_and_saving_a_correction(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(server.url + "/pair?head=C010&tail=C007&relation=may_treat")
        before = driver.find_element("css selector", ".sum tfoot .right").text
        reason = driver.find_element("css selector", ".sum tr[data-reason] summary").text
        driver.find_element("css selector", ".sum .acts a").click()
        wait_for(driver, ".what-if")
        assert driver.find_element("css selector", ".sum tfoot .right").text != before
        driver.find_element("css selector", ".what-if summary").click()
        driver.find_element("name", "who").send_keys("Dr Test")
        driver.find_element("name", "why").send_keys("never seen")
        driver.find_element("css selector", ".what-if button").click()
        wait_for_text(driver, ".notice", "Saved: 1 correction applies")
        assert "wrong=" not in driver.current_url
        assert driver.find_element("css selector", ".sum tfoot .right").text != before  # holds for everybody now
        driver.get(server.url + "/corrections")
        row = driver.find_element("css selector", "table.list tbody tr").text
        assert "Dr Test" in row
        asked = reason.replace("is not thought to treat", "may treat")  # the verdict is on the relation itself
        assert asked.split(" Assumed")[0].split(" Considered unlikely")[0].split(" Known")[0].split("\n")[0] in row


def test_the_picture_answers(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    from selenium.webdriver.common.action_chains import ActionChains
    from selenium.webdriver.common.keys import Keys

    def shown() -> list[Any]:
        return [row for row in driver.find_elements("css selector", "tr[data-reason]") if row.is_displayed()]

    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(server.url + PAIR)
        number = driver.find_element("css selector", "#picture .number[data-reason='1']")
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", number)
        ActionChains(driver).move_to_element(number).perform()
        assert "lit" in driver.find_element("id", "reason-1").get_attribute("class")
        everything = len(shown())
        assert not driver.find_element("id", "show-all").is_displayed()  # nothing is filtered yet
        slider = wait_for(driver, "#weakest")
        slider.send_keys(Keys.END)
        assert len(shown()) == 1
        slider.send_keys(Keys.HOME)
        assert len(shown()) == everything
        nodes = driver.find_elements("css selector", "#picture .node")
        node = next(n for n in nodes if n.get_attribute("data-node") not in ("C004", "C007"))
        node.send_keys(Keys.ENTER)
        keys = [row.get_attribute("data-ends").split("\t") for row in shown()]
        assert keys
        assert all(node.get_attribute("data-node") in pair for pair in keys)
        wait_for(driver, "#show-all").click()
        assert len(shown()) == everything


def test_on_a_phone_the_picture_is_whole_and_a_tap_lights_its_row(
    server: web_browser.Server, tmp_path: Path, chromium: None
) -> None:
    with web_browser.browser(tmp_path / "profile") as driver:
        size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        driver.get(server.url + PAIR)
        wide, narrow = (driver.find_element("css selector", f"#picture .{kind}") for kind in ("wide", "narrow"))
        assert not wide.is_displayed()
        assert narrow.is_displayed()
        edges = driver.execute_script(
            "return [...document.querySelectorAll('#picture .narrow .node, #picture .narrow text')]"
            ".map((e) => [e.getBoundingClientRect().left, e.getBoundingClientRect().right])"
        )
        assert edges
        assert all(left >= 0 and right <= 390 for left, right in edges)
        rows = [row.rect for row in driver.find_elements("css selector", ".sum tr[data-reason]")]
        assert all(row["x"] >= 0 and row["x"] + row["width"] <= 390 for row in rows)
        assert len({row["x"] for row in rows}) == 1  # cards, one below the other
        number = driver.find_element("css selector", "#picture .narrow .number[data-reason='2']")
        driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", number)
        number.click()
        assert "lit" in driver.find_element("id", "reason-2").get_attribute("class")


def test_a_what_if_answer_stays_in_view(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    in_view = """const box = document.querySelector(".before-after").getBoundingClientRect();
      return box.top >= 0 && box.bottom <= innerHeight;"""
    for width in (1280, 768, 390):
        with web_browser.browser(tmp_path / f"profile{width}", (width, 900)) as driver:
            driver.get(server.url + PAIR)
            link = driver.find_element("css selector", ".sum .acts a")
            assert link.size["height"] < 40  # on one line
            driver.execute_script("arguments[0].click()", link)
            words = wait_for(driver, ".before-after").text
            assert words.startswith("Before: ")
            assert "now: " in words
            assert driver.execute_script(in_view)


def test_the_workspace_is_a_file(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    downloads = tmp_path / "downloads"
    downloads.mkdir()
    with web_browser.browser(tmp_path / "profile", downloads=downloads) as driver:
        driver.get(server.url + PAIR)
        statement = driver.find_element("tag name", "h1").text
        wait_for(driver, "#save-pair").click()
        assert "Saved" in driver.find_element("id", "saved-pair").text
        driver.get(server.url + "/workspace")
        note = wait_for(driver, "#workspace-table textarea")
        note.send_keys("read the trial <b>first</b>")
        driver.find_element("id", "workspace-export").click()
        end = time.monotonic() + 20
        while not (files := list(downloads.glob("workspace_*.json"))) and time.monotonic() < end:
            time.sleep(0.1)
        (entry,) = json.loads(files[0].read_text(encoding="utf-8"))
        assert (entry["head"], entry["relation"], entry["tail"]) == ("C004", "may_treat", "C007")
        assert (entry["statement"], entry["note"]) == (statement, "read the trial <b>first</b>")
        wait_for(driver, "#workspace-table button").click()
        assert wait_for(driver, "#workspace-empty")
        damaged = tmp_path / "damaged.json"
        damaged.write_text("{}")
        driver.find_element("id", "workspace-import").send_keys(str(damaged))
        wait_for_text(driver, "#workspace-status", "not a workspace")
        driver.find_element("id", "workspace-import").send_keys(str(files[0]))
        wait_for_text(driver, "#workspace-status", "1 pair was imported")
        assert wait_for(driver, "#workspace-table a").text == statement
        assert driver.find_elements("css selector", "#workspace-table b") == []


def test_about_has_figures_and_curve(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(server.url)
        driver.find_element("link text", "About").click()
        headings = [heading.text for heading in driver.find_elements("css selector", "h2")]
        for words in ("Corpus", "Sources of the facts", "How accurate are the answers?", "Limits"):
            assert words in headings
        assert len(driver.find_elements("css selector", "table.list tbody tr")) == 2  # relations


def test_candidates_are_sorted_paged_and_compared(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(server.url + "/discover?term=remedy+4&relation=causes")
        assert driver.find_element("tag name", "h1").text.startswith("What might")
        ranks = [cell.text for cell in driver.find_elements("css selector", "td.rank")]
        assert ranks == [str(n) for n in range(1, 26)]
        driver.find_element("css selector", "a[rel=next]").click()
        assert wait_for(driver, "td.rank").text == "26"
        driver.find_element("link text", "Candidate").click()
        names = [link.text for link in driver.find_elements("css selector", "td a.term")]
        assert names == sorted(names, key=str.casefold)
        for box in driver.find_elements("css selector", "input[name=with]")[:2]:
            box.click()
        driver.find_element("css selector", ".after-list button").click()
        wait_for(driver, ".compare")
        assert len(driver.find_elements("css selector", ".compare section")) == 2


def test_two_or_three_can_be_compared_and_the_button_says_so(
    server: web_browser.Server, tmp_path: Path, chromium: None
) -> None:
    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(server.url + "/discover?term=remedy+4&relation=causes")
        button = driver.find_element("css selector", ".compare-them button")
        for number, box in enumerate(driver.find_elements("css selector", "input[name=with]")[:4], start=1):
            assert button.is_enabled() == (number - 1 in (2, 3))
            box.click()
        assert not button.is_enabled()  # four
        assert "4 selected" in driver.find_element("css selector", ".compare-them").text


def test_the_search_in_the_header_leads_to_the_term(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    from selenium.webdriver.common.keys import Keys

    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(server.url + "/about")
        field = driver.find_element("id", "q")
        field.send_keys("remedy 4")
        wait_for(driver, "#q-list [role=option]")
        field.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
        wait_for(driver, "#identity")
        assert driver.find_element("tag name", "h1").text == "Drug number 4"
        field = driver.find_element("id", "q")
        field.send_keys("drug", Keys.ENTER)  # without a choice: the list of what was found
        wait_for(driver, ".results")


def test_what_matters_is_in_sight_without_scrolling(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    def bottom(css: str) -> float:
        found = driver.find_elements("css selector", css)
        assert found
        script = "return arguments[0].getBoundingClientRect().bottom"
        return max(float(driver.execute_script(script, element)) for element in found)

    def size(width: int, height: int) -> None:
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)

    with web_browser.browser(tmp_path / "profile") as driver:
        size(1280, 720)  # a laptop
        driver.get(server.url)
        assert bottom(".example .answer, .example .wide .node") <= 720
        driver.get(server.url + PAGES["discover"])
        assert driver.find_element("css selector", ".list thead").rect["height"] < 90  # no heading is squeezed
        size(390, 844)  # a phone
        driver.get(server.url + PAIR)
        assert bottom(".answer .meter") <= 844
        driver.get(server.url + "/search?q=drug")
        assert bottom(".ask button") - bottom("#query") < 100  # no hole between field and button


def test_a_list_of_pairs_from_a_file(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    (tmp_path / "pairs.tsv").write_text("remedy 4\tC007\nnobody\tC007\n", encoding="utf-8")
    with web_browser.browser(tmp_path / "profile") as driver:
        driver.get(server.url + "/batch")
        wait_for(driver, "#pairs-file").send_keys(str(tmp_path / "pairs.tsv"))
        end = time.monotonic() + 10
        while not driver.find_element("id", "pairs").get_attribute("value") and time.monotonic() < end:
            time.sleep(0.05)
        driver.find_element("css selector", ".stack button.main").click()
        wait_for(driver, "table.list")
        rows = [row.text for row in driver.find_elements("css selector", "table.list tbody tr")]
        assert len(rows) == 2
        assert "Drug number 4" in rows[0]
        assert "unknown term: nobody" in rows[1]


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_page_fits_and_can_be_read(server: web_browser.Server, tmp_path: Path, chromium: None, mode: str) -> None:
    """No page is wider than the screen at three widths, and all text has a contrast of 4.5 to 1."""
    with web_browser.browser(tmp_path / "profile") as driver:
        media = {"features": [{"name": "prefers-color-scheme", "value": mode}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        for width in (1280, 768, 390):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            for name, path in PAGES.items():
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                driver.get(server.url + path)
                wide = driver.execute_script("return document.documentElement.scrollWidth")
                assert wide <= width, (name, width, wide)
                assert driver.execute_script(CONTRAST) == [], (name, width, mode)
                if width != 768:
                    web_browser.screenshot(driver, f"explorer-{name}-{width}-{mode}", (width, 900))


def test_a_name_of_299_letters_stretches_no_page(server: web_browser.Server, tmp_path: Path, chromium: None) -> None:
    lengthen = """
    const links = ".choices-list a, .short a, .cards a, td:not(.acts) > a, .compare h2 a, #example a";
    const names = document.querySelectorAll(`.term, ${links}`);
    for (const name of names) name.textContent = "x".repeat(299);
    return names.length;
    """
    with web_browser.browser(tmp_path / "profile") as driver:
        for width in (1280, 768, 390):
            size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
            for name in ("start", "pair", "discover", "compare", "term", "search", "unknown"):
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
                driver.get(server.url + PAGES[name])
                assert driver.execute_script(lengthen) > 0
                wide = driver.execute_script("return document.documentElement.scrollWidth")
                assert wide <= width, (name, width, wide)


def test_a_dead_worker_is_replaced(small_model_folder: Path) -> None:
    import subprocess

    server = web_browser.Server("serve", str(small_model_folder), "--workers", "2")
    server.start("/api/v1/health")
    try:
        assert server.process is not None
        parent = server.process.pid
        listing = subprocess.run(["ps", "--ppid", str(parent), "-o", "pid="], capture_output=True, text=True).stdout
        workers = [int(pid) for pid in listing.split()]
        assert len(workers) == 2
        time.sleep(2.5)  # past the time in which a death counts as a failed start
        import os

        os.kill(workers[0], signal.SIGKILL)
        time.sleep(1.0)
        for _ in range(10):
            assert httpx.get(f"{server.url}/api/v1/health", timeout=20).status_code == 200
        listing = subprocess.run(["ps", "--ppid", str(parent), "-o", "pid="], capture_output=True, text=True).stdout
        assert len(listing.split()) == 2
    finally:
        server.stop()


def test_a_taken_port_is_one_line(small_model_folder: Path) -> None:
    import subprocess
    import sys

    server = web_browser.Server("serve", str(small_model_folder))
    server.start("/api/v1/health")
    try:
        code = "from cogstage.cli.main import run; run()"
        arguments = ["serve", str(small_model_folder), "--port", str(server.port)]
        again = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True)
        assert again.returncode == 2
        assert "choose another --port" in again.stderr
        assert len(again.stderr.strip().splitlines()) == 1
    finally:
        server.stop()


def test_connections_that_come_together_are_shared(small_model_folder: Path) -> None:
    """One worker must not take every connection while the other has nothing to do."""
    import socket
    import subprocess

    server = web_browser.Server("serve", str(small_model_folder), "--workers", "2")
    server.start("/api/v1/health")
    try:
        assert server.process is not None
        listing = subprocess.run(
            ["ps", "--ppid", str(server.process.pid), "-o", "pid="], capture_output=True, text=True
        ).stdout
        workers = [int(pid) for pid in listing.split()]
        before = [len(list(Path(f"/proc/{pid}/fd").iterdir())) for pid in workers]
        held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(24)]
        time.sleep(0.5)
        taken = [
            len(list(Path(f"/proc/{pid}/fd").iterdir())) - count for pid, count in zip(workers, before, strict=True)
        ]
        for connection in held:
            connection.close()
        assert sum(taken) == len(held)
        assert min(taken) >= 2
    finally:
        server.stop()
