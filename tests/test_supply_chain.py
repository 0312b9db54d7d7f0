"""What is installed is pinned, hashed where the index gives hashes, declared and used."""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
IMPORTED_AS = {"scikit-learn": "sklearn", "tensorboard": "torch"}  # torch.utils.tensorboard needs it
PARTS = {"pydantic_core", "typing_extensions", "markupsafe", "anyio"}  # of pydantic, jinja2, starlette
BROUGHT = {"networkx"}  # by users who ask for its objects
BY_NAME = {"psycopg"}  # the driver in "postgresql+psycopg", which SQLAlchemy loads


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(text: str) -> dict[str, str]:
    return {normal(name): version for name, version in re.findall(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE)}


def requirements(section: str) -> dict[str, str]:
    """Floor by name of a list of requirements in pyproject.toml."""
    listed = re.search(rf"^{section} = \[(.*?)\]$", PROJECT, re.MULTILINE | re.DOTALL)
    assert listed is not None
    found = re.findall(r'"([\w-]+)(?:\[\w+\])?>=([\d.]+)"', listed[1])
    return {normal(name): floor for name, floor in found}


def test_every_pinned_version_has_its_hashes() -> None:
    pinned = pins((ROOT / "constraints.txt").read_text())
    locked: dict[str, str] = {}
    for path in sorted((ROOT / "locks").glob("*.txt")):
        text = path.read_text().replace(" \\\n", " ")
        for line in text.splitlines():
            if not line.startswith("#"):
                assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line
        for name, version in pins(text).items():
            assert locked.setdefault(name, version) == version, path
    assert locked == {name: version for name, version in pinned.items() if name != "torch"}


def test_make_installs_from_the_locks() -> None:
    installs = [line for line in MAKEFILE.splitlines() if "pip install" in line]
    own = [line for line in installs if "--require-hashes" not in line]
    assert len(own) == 1  # this package itself: torch, and what another platform needs, by pinned version
    assert "--constraint constraints.txt" in own[0]
    assert "--editable" in own[0]
    used = set(re.findall(r"locks/(\w+)\.txt", MAKEFILE))
    assert used == {path.stem for path in (ROOT / "locks").glob("*.txt")}


def test_pins_satisfy_the_floors_that_exclude_known_holes() -> None:
    floors = requirements("dependencies")
    assert {"starlette", "h11", "jinja2"} <= floors.keys()  # named although others bring them along
    pinned = pins((ROOT / "constraints.txt").read_text())

    def numbers(version: str) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", version))

    assert numbers(floors["starlette"]) >= (1, 3, 1)
    assert numbers(floors["h11"]) >= (0, 16)
    assert numbers(floors["jinja2"]) >= (3, 1, 6)
    for name, floor in floors.items():
        assert numbers(pinned[name]) >= numbers(floor), name


def imported() -> set[str]:
    """The top-level modules that the package imports, its own and the standard library's aside."""
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found.update(alias.name.split(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.split(".")[0])
    return found - set(sys.stdlib_module_names) - {"cogstage"}


def test_every_requirement_is_used_and_every_import_required() -> None:
    core = requirements("dependencies")
    extras = {
        name for extra in ("spark", "baselines", "postgres", "tensorboard", "mcp") for name in requirements(extra)
    }
    modules = imported()
    unused = {name for name in core.keys() | extras if IMPORTED_AS.get(name, name).replace("-", "_") not in modules}
    assert unused == BY_NAME, "declared, but nothing imports them"
    names = {IMPORTED_AS.get(name, name).replace("-", "_") for name in core.keys() | extras}
    assert modules - names <= PARTS | BROUGHT, "imported, but not declared"


@pytest.mark.parametrize("unwanted", ["python-multipart", "python_multipart"])
def test_what_nothing_uses_is_not_required(unwanted: str) -> None:
    assert unwanted not in PROJECT
