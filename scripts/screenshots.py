"""Take the screenshots of the explorer that the documentation shows; each becomes a small PNG.

    cogstage demo --out demo
    python scripts/screenshots.py demo/model
    python scripts/screenshots.py demo/model --every shots    # every page, at three widths, light and dark

Needs chromium, chromedriver and the packages of the ``test`` extra.
"""

from __future__ import annotations

import argparse
import io
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socket import socket
from typing import Any
from urllib.parse import urlencode

from PIL import Image

IMAGES = Path(__file__).parents[1] / "docs" / "images" / "explorer"
LARGEST = 150_000  # bytes of a picture in the documentation
WIDTHS = (1280, 768, 390)


def address(path: str, **asked: str | int) -> str:
    """A page with its question."""
    return f"{path}?{urlencode(asked)}" if asked else path


PAIR = {"head": "nitroglycerin", "tail": "angina pectoris", "relation": "may_treat"}
PAGES = {
    "start": "/",
    "pair": address("/pair", **PAIR),
    "against": address("/pair", head="haloperidol", tail="schizophrenia", relation="contraindicates"),
    "filtered": address("/pair", **PAIR, through="migraine", known_only=1),
    "misfit": address("/pair", head="headache", tail="fever", relation="may_treat"),
    "discover": address("/discover", term="hypertension", relation="may_treat"),
    "term": address("/term", key="nitroglycerin"),
    "search": address("/search", q="type 2 diabetes"),
    "nothing": address("/search", q="qqqqzzzz"),
    "unknown": address("/pair", head="asprin", tail="headache", relation="may_treat"),
    "error": address("/pair", **PAIR, k=999),
    "batch": "/batch",
    "corrections": "/corrections",
    "about": "/about",
    "api": "/docs",
}
SHOWN = (  # name, page, width, height, mode
    ("start", "start", 1280, 900, "light"),
    ("pair", "pair", 1280, 1500, "light"),
    ("pair-dark", "pair", 1280, 1500, "dark"),
    ("pair-phone", "pair", 390, 1400, "light"),
    ("discover", "discover", 1280, 1100, "light"),
    ("term", "term", 1280, 1100, "light"),
    ("about", "about", 1280, 2400, "light"),
)


@contextmanager
def served(model: Path, corrections: Path) -> Iterator[str]:
    """The explorer in a process of its own; gives its address."""
    with socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = "from cogstage.cli.main import run; run()"
    arguments = ["serve", str(model), "--port", str(port), "--corrections", str(corrections)]
    process = subprocess.Popen([sys.executable, "-c", code, *arguments], stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}/api/v1/health", timeout=5).close()
                break
            except OSError:
                if process.poll() is not None:
                    sys.exit("the explorer did not start")
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


@contextmanager
def browser() -> Iterator[Any]:
    """Headless Chromium."""
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    try:
        yield driver
    finally:
        driver.quit()


def take(driver: Any, url: str, width: int, height: int | None, mode: str) -> Image.Image:
    """A page as a picture: the part above ``height``, or all of it."""
    media = {"features": [{"name": "prefers-color-scheme", "value": mode}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    _resize(driver, width, height or 900)
    driver.get(url)
    whole = driver.execute_script("return document.documentElement.scrollHeight")
    _resize(driver, width, min(height, whole) if height else whole)
    return Image.open(io.BytesIO(driver.get_screenshot_as_png())).convert("RGB")


def _resize(driver: Any, width: int, height: int) -> None:
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def main(argv: list[str] | None = None) -> None:
    """Take them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path, help="model folder of `cogstage demo`")
    parser.add_argument("--out", type=Path, default=IMAGES, help="folder of the pictures")
    parser.add_argument("--every", type=Path, help="every page at three widths, light and dark, into this folder")
    options = parser.parse_args(argv)
    shots: list[tuple[str, str, int, int | None, str]] = list(SHOWN)
    if options.every:
        shots = [
            (f"{name}-{width}-{mode}", name, width, None, mode)
            for name in PAGES
            for width in WIDTHS
            for mode in ("light", "dark")
        ]
    folder = options.every or options.out
    folder.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as scratch,
        served(options.model, Path(scratch) / "corrections.tsv") as url,
        browser() as driver,
    ):
        for name, page, width, height, mode in shots:
            picture = take(driver, url + PAGES[page], width, height, mode)
            path = folder / f"{name}.png"
            picture.quantize(64, dither=Image.Dither.NONE).save(path, optimize=True)
            if not options.every and path.stat().st_size > LARGEST:
                sys.exit(f"{path} has {path.stat().st_size:,} bytes; more than {LARGEST:,} are too many")


if __name__ == "__main__":
    main()
