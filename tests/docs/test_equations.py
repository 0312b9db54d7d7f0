"""The table of equations in docs/model.md: every function and every test that it names is there."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def rows() -> list[list[str]]:
    """The cells of the table."""
    lines = (ROOT / "docs/model.md").read_text(encoding="utf-8").splitlines()
    return [
        [cell.strip().strip("`") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        for line in lines
        if re.match(r"\| \d+ \|", line)
    ]


def sources(*folders: str) -> dict[str, str]:
    """Source of every function by ``module.function`` or ``module.Class.function``."""
    found: dict[str, str] = {}
    for path in (path for folder in folders for path in (ROOT / folder).glob("*.py")):
        text = path.read_text(encoding="utf-8")
        for node in ast.parse(text).body:
            for part in node.body if isinstance(node, ast.ClassDef) else [node]:
                if isinstance(part, ast.FunctionDef):
                    owner = f"{node.name}." if isinstance(node, ast.ClassDef) else ""
                    found[f"{path.stem}.{owner}{part.name}"] = ast.get_source_segment(text, part) or ""
    return found


def test_the_table_of_equations_names_code_and_tests_that_exist() -> None:
    code, tests = sources("src/cogstage/model", "src/cogstage/training"), sources("tests/oracle")
    table = rows()
    assert [row[0] for row in table] == [str(number) for number in range(1, 15)]
    for number, _, published, default, test in table:
        assert published in code, published
        assert default in code, default
        assert test in tests, test
        if published.startswith("paper.PaperNetwork."):
            numbered = re.findall(r"\d+", " ".join(re.findall(r"Eq\. [\d, ]+", code[published])))
            assert number in numbered, f"{published} does not say that it computes equation {number}"
