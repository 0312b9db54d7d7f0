"""Debian's chromium, headless, driven by selenium; and the server under test in a process of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from postgres_cluster import free_port

DRIVER = "/usr/bin/chromedriver"
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
)
ARTEFACTS = Path(__file__).parents[2] / "artefacts"


def reason_to_skip() -> str | None:
    """Why no browser can be started here; None if one can."""
    if shutil.which("chromium") is None or not Path(DRIVER).exists():
        return "chromium and chromedriver are not installed (apt-get install chromium chromium-driver)"
    return None


@contextmanager
def browser(profile: Path, size: tuple[int, int] = (1280, 900), downloads: Path | None = None) -> Iterator[Any]:
    """A browser with its own profile folder; the same folder again is the same person coming back."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in (*FLAGS, f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    if downloads is not None:
        options.add_experimental_option("prefs", {"download.default_directory": str(downloads)})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        yield driver
    finally:
        driver.quit()


def screenshot(driver: Any, name: str, size: tuple[int, int] | None = None) -> None:
    """The whole page as a picture among the artefacts."""
    ARTEFACTS.mkdir(exist_ok=True)
    height = driver.execute_script("return document.documentElement.scrollHeight")
    width = size[0] if size else driver.execute_script("return window.innerWidth")
    driver.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": max(height, 500), "deviceScaleFactor": 1, "mobile": False},
    )
    driver.save_screenshot(str(ARTEFACTS / f"{name}.png"))
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


class Server:
    """``cogstage`` serving in a process of its own; its log is kept."""

    def __init__(self, *arguments: str, port: int | None = None) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._arguments = (*arguments, "--port", str(self.port))
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 (open as long as the server)
        self.process: subprocess.Popen[str] | None = None

    def start(self, health: str = "/health") -> None:
        """Start and wait until it answers."""
        code = "from cogstage.cli.main import run; run()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *self._arguments], stdout=self._log, stderr=self._log, text=True
        )
        for _ in range(600):
            try:
                if httpx.get(self.url + health, timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            if self.process.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError(f"the server did not start: {self.log()}")

    def kill(self) -> None:
        """End it as a power cut would."""
        assert self.process is not None
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self) -> None:
        """End it politely."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(30)

    def log(self) -> str:
        """All that it has written so far."""
        self._log.seek(0)
        return self._log.read()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
