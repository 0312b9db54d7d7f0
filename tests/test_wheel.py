"""The wheel is complete: it works outside the repository, without the source tree."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", str(out), str(ROOT)]
    subprocess.run(command, check=True)
    (found,) = out.glob("cogstage-*.whl")
    return found


@pytest.mark.slow
def test_every_file_of_the_package_is_in_the_wheel(wheel: Path) -> None:
    inside = set(zipfile.ZipFile(wheel).namelist())
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source))
        for path in (source / "cogstage").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert wanted - inside == set()


@pytest.mark.slow
def test_it_runs_outside_the_repository(wheel: Path, tmp_path: Path) -> None:
    """Installed into an empty folder that stands before everything else on the path, run elsewhere."""
    installed, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    elsewhere.mkdir()
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", str(installed)]
    subprocess.run([*install, str(wheel)], check=True)
    environment = {**os.environ, "PYTHONPATH": str(installed)}
    code = f"""
import cogstage, cogstage.data.embedded as embedded, cogstage.relations
from cogstage.cli.main import run
assert cogstage.__file__.startswith({str(installed)!r}), cogstage.__file__
assert embedded.graph().n_nodes > 1000 and len(embedded.facts())
assert cogstage.relations.RELATIONS[0] == "may_treat"
run(["demo", "--help"])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=elsewhere, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "demo" in done.stdout
