"""The mutation script on a package of two lines: kills, survivors, and mutations that no longer fit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from load_script import ROOT, load_script


@pytest.fixture
def small(tmp_path: Path) -> Path:
    package = tmp_path / "src" / "cogstage"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sums.py").write_text("def add(a, b):\n    return a + b\n\ndef unused():\n    return 1\n")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "test_sums.py").write_text(
        "from cogstage.sums import add\n\ndef test_add():\n    assert add(2, 3) == 5\n"
    )
    return tmp_path


def ends(small: Path, capsys: pytest.CaptureFixture[str], *changes: tuple[str, str, str]) -> tuple[int, str]:
    script = load_script("scripts/mutants.py")
    entries = [
        {"name": n, "file": "sums.py", "old": o, "new": w, "tests": ["test_sums.py::test_add"]} for n, o, w in changes
    ]
    listed = small / "list.json"
    listed.write_text(json.dumps(entries))
    code = script.main(["--root", str(small), "--list", str(listed)])
    assert (small / "src" / "cogstage" / "sums.py").read_text().startswith("def add(a, b):\n    return a + b\n")
    return code, capsys.readouterr().out


@pytest.mark.slow
def test_a_mistake_that_tests_notice_is_killed(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = ends(small, capsys, ("minus", "a + b", "a - b"))
    assert code == 0
    assert "1 of 1 killed (100%)" in said


@pytest.mark.slow
def test_survivors_and_stale_ones_fail(small: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, said = ends(small, capsys, ("nobody looks", "return 1", "return 2"), ("minus", "a + b", "a - b"))
    assert code == 1
    assert "survived" in said
    assert "1 of 2 killed (50%)" in said
    code, said = ends(small, capsys, ("twice", "return", "yield"), ("gone", "a * b", "a / b"))
    assert code == 1
    assert "occurs 2 times" in said
    assert "occurs 0 times" in said


def test_every_listed_mistake_fits_the_code_and_its_tests_exist() -> None:
    script = load_script("scripts/mutants.py")
    listed = script.load(ROOT / "scripts" / "mutants.json")
    assert len({mutation.name for mutation in listed}) == len(listed) >= 155
    for mutation in listed:
        text = (ROOT / "src" / "cogstage" / mutation.file).read_text(encoding="utf-8")
        assert script.mutated(text, mutation) != text
        for test in mutation.tests:
            file, _, name = test.partition("::")
            assert (ROOT / file).exists(), test
            assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8") if name else True, test
