"""Names: no two public classes share one."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import cogstage


def test_no_two_public_classes_share_a_name() -> None:
    found = defaultdict(list)
    for file in sorted(Path(cogstage.__file__).parent.rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].append(file.name)
    assert {name: files for name, files in found.items() if len(files) > 1} == {}
