"""The documentation: generated pages are current, the site builds without warnings, the tutorial runs."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
QUICK = (
    "dimension=16 tower=16 associations=6 folds=0 recall_passes=1 recognition_passes=2 "
    "decision_epochs=1 decision_steps=0"
)


@pytest.mark.parametrize(("page", "maker"), [("cli.md", "cli_page"), ("python.md", "python_page")])
def test_reference_is_current(page: str, maker: str) -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "reference_pages.py"))
    written = (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert script[maker]() == written, "run python scripts/reference_pages.py"


def test_site_builds_without_warnings_or_foreign_files(tmp_path: Path) -> None:
    pytest.importorskip("mkdocs")
    pytest.importorskip("material")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    for page in (tmp_path / "site").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|img|iframe)[^>]*\bsrc=[\"']?([^\"' >]+)", text)
        loaded += re.findall(r"<link[^>]*\brel=[\"']?(?:stylesheet|preconnect|icon)[^>]*", text)
        assert not [entry for entry in loaded if "//" in entry], f"{page.name} loads from elsewhere"


@pytest.mark.slow
def test_tutorial_commands_run(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")
    script = "\n".join(re.findall(r"```bash\n(.*?)```", text, flags=re.S))
    settings = " ".join(f"--set {setting}" for setting in QUICK.split())
    script, trained = re.subn(r"^cogstage train ", f"cogstage train {settings} ", script, flags=re.M)
    assert trained == 1
    python = f'"{sys.executable}"'
    prelude = f"""set -e
python() {{ {python} "$@"; }}
cogstage() {{ {python} -c "from cogstage.cli.main import run; run()" "$@"; }}
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run(
        ["bash", "-c", prelude + script], cwd=tmp_path, capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "small-graph: 3 nodes, 3 edges" in done.stdout  # as the page says
    assert (tmp_path / "why.svg").read_text(encoding="utf-8").startswith(("<svg", "<?xml"))
    assert (tmp_path / "evaluation" / "report.html").exists()
