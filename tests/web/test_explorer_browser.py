"""The explorer in a real browser, served by ``cogstage serve`` with two workers."""

from __future__ import annotations

import signal
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
import web_browser

pytestmark = pytest.mark.slow


def wait_for(driver: Any, css: str, seconds: float = 20.0) -> Any:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := [element for element in driver.find_elements("css selector", css) if element.is_displayed()]:
            return found[0]
        time.sleep(0.05)
    raise AssertionError(f"{css} did not appear on {driver.current_url}")


def test_a_person_asks_reads_filters_and_discovers(small_model_folder: Path, tmp_path: Path, chromium: None) -> None:
    from selenium.webdriver.common.keys import Keys

    server = web_browser.Server("serve", str(small_model_folder), "--workers", "2")
    server.start("/api/v1/health")
    try:
        with web_browser.browser(tmp_path / "profile") as driver:
            driver.get(server.url)
            web_browser.screenshot(driver, "explorer-start")
            head = driver.find_element("id", "head")
            head.send_keys("remedy 4")
            wait_for(driver, "#head-list [role=option]")
            head.send_keys(Keys.ARROW_DOWN, Keys.ENTER)
            assert head.get_attribute("value") == "Drug number 4"
            tail = driver.find_element("id", "tail")
            tail.send_keys("Disorder number 7", Keys.ESCAPE, Keys.ENTER)
            wait_for(driver, ".verdict")
            assert "Drug number 4" in driver.find_element("tag name", "h1").text
            web_browser.screenshot(driver, "explorer-pair")

            summary = driver.find_element("css selector", ".evidence summary")
            summary.send_keys(Keys.ENTER)  # evidence opens from the keyboard
            assert "What supports it?" in wait_for(driver, ".evidence[open] dl").text
            known = driver.find_element("css selector", "input[name=known]")
            known.click()
            driver.find_element("css selector", ".filters button").click()
            wait_for(driver, ".filters input[name=known]:checked")
            cells = [row.text for row in driver.find_elements("css selector", "table.reasons tbody tr td:last-child")]
            assert all(cell == "yes" for cell in cells) or "none passes" in cells[0]
            driver.find_element("css selector", "button[data-copy]").click()
            wait_for(driver, "#copied")

            driver.get(f"{server.url}/discover?term=C004&relation=causes")
            wait_for(driver, "table.reasons tbody tr")
            web_browser.screenshot(driver, "explorer-discover")
            driver.get(f"{server.url}/about")
            web_browser.screenshot(driver, "explorer-about")

            driver.set_window_size(400, 800)
            driver.get(f"{server.url}/pair?head=C004&tail=C007&relation=may_treat")
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            assert wide <= driver.execute_script("return window.innerWidth")
            web_browser.screenshot(driver, "explorer-phone", (400, 800))
            severe = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
            assert not severe
    finally:
        server.stop()


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
