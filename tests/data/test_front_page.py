"""The pages a newcomer reads first say what is so: links lead somewhere, versions agree, the code in them parses."""

from __future__ import annotations

import ast
import html
import math
import re
from pathlib import Path

import pytest
from check_all import check_all
from typer.testing import CliRunner

import cogstage
from cogstage.cli.main import app

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def test_links_lead_somewhere() -> None:
    check_all(check_links, ((page,) for page in PAGES))


def check_links(page: Path) -> None:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text):
        if not target.startswith(("http://", "https://", "mailto:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_python_in_the_pages_parses_and_uses_public_names() -> None:
    check_all(check_python, ((page,) for page in PAGES))


def check_python(page: Path) -> None:
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.S):
        tree = ast.parse(block)
        names = {
            node.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "cs"
        }
        assert names <= set(cogstage.__all__), f"{page.name} uses {names - set(cogstage.__all__)}"


def test_readme_commands_exist() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = "\n".join(re.findall(r"```bash\n(.*?)```", readme, flags=re.S))
    assert len(re.findall(r"^cogstage ", text, flags=re.MULTILINE)) >= 5
    for line in re.findall(r"^cogstage (.+)$", text, flags=re.MULTILINE):
        words = []
        for word in line.split():
            if not re.fullmatch(r"[a-z]+", word) or len(words) == (2 if words[:1] and words[0] in GROUPS else 1):
                break
            words.append(word)
        options = set(re.findall(r"(?<= )--[a-z-]+", line))
        done = CliRunner().invoke(app, [*words, "--help"])
        assert done.exit_code == 0, f"cogstage {' '.join(words)}: {done.output}"
        assert not {option for option in options if option not in done.stdout}, f"cogstage {line}"


GROUPS = ("graph", "facts", "dataset", "study")


def test_the_worked_example_is_the_picture() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    picture = (ROOT / "docs" / "images" / "rationale.svg").read_text(encoding="utf-8")
    (example,) = re.findall(r"```text\n(Nitroglycerin may treat.*?)```", readme, flags=re.S)
    verdict, example = example.split("  why: ")
    assert html.escape(verdict.splitlines()[0]) in picture
    shares = re.findall(r"    (\w.*?) +([-+][\d.]+) ", example)
    assert len(shares) >= 3
    for triple, share in shares:
        assert re.search(rf"{re.escape(triple)} \([^)]*\): {re.escape(share)}", picture)
    parts = [float(x) for x in re.findall(r" ([-+]\d\.\d{3})(?= |\n)", example)]
    *summands, total = parts
    assert sum(summands) == pytest.approx(total, abs=0.003)  # rounded to three digits
    probability = 1 / (1 + math.exp(-total))
    assert f"{probability:.3f}" in example
    words = readme.split("## Three words")[1].split("\n## ")[0]
    for number in (f"({parts[0]:+.3f})", f"({total:+.3f})", f"({probability:.3f})"):
        assert number in words


def test_versions_agree() -> None:
    project = re.search(r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(encoding="utf-8"), re.MULTILINE)
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert project is not None
    assert citation is not None
    assert citation.group(1) == project.group(1)
