"""Imports inside functions, which nothing checks until the function is called."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "benchmarks", "scripts", "examples", "tests")


def imported() -> Iterator[tuple[str, str, str]]:
    """Where, from which module and which name, for all that is imported from cogstage and benchmarks."""
    for path in (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*.py"))):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("cogstage", "benchmarks"):
                for alias in node.names:
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", str(node.module), alias.name


def exists(module: str, name: str) -> bool:
    """Whether the module has the name, or a submodule of that name."""
    if hasattr(importlib.import_module(module), name):
        return True
    try:
        importlib.import_module(f"{module}.{name}")
    except ImportError:
        return False
    return True


def test_every_imported_name_exists() -> None:
    found = list(imported())
    assert len(found) > 1000
    assert [f"{where}: {module}.{name}" for where, module, name in found if not exists(module, name)] == []
