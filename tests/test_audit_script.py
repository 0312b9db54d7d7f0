"""``scripts/audit.sh``: a vulnerability fails, a missing network is skipped with its reason."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "audit.sh"


@pytest.mark.parametrize(
    ("output", "result", "status"),
    [
        ("No known vulnerabilities found", 0, 0),
        ("pip Dependency not found on PyPI and could not be audited: pip (1.0)", 0, 0),
        ("Found 2 known vulnerabilities in 1 package", 1, 1),
        ("ERROR: Could not connect: Failed to resolve 'pypi.org'", 1, 0),
        ("ERROR: invalid requirements file", 1, 1),
    ],
)
def test_what_is_found_and_what_could_not_be_asked(tmp_path: Path, output: str, result: int, status: int) -> None:
    program = tmp_path / "pip-audit"
    program.write_text(f'#!/bin/sh\necho "{output}"\nexit {result}\n')
    program.chmod(0o755)
    done = subprocess.run(
        ["sh", SCRIPT, "locks/core.txt"],
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == status
    assert ("skipped: the advisory database cannot be reached" in done.stdout) == (result == 1 and status == 0)
    assert ("skipped: 1 packages are not known" in done.stdout) == ("could not be audited" in output)


def test_ci_looks_up_vulnerabilities_and_ends_with_the_tests() -> None:
    ci = (SCRIPT.parents[1] / ".ci" / "run").read_text().splitlines()
    assert ci[-1] == "make test"
    assert any(line.startswith("make audit") for line in ci[:-1])
