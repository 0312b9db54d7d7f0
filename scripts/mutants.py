"""Do the tests notice? Puts one small mistake at a time into a copy of the package and runs the tests that should fail.

    python scripts/mutants.py                 all mutations of scripts/mutants.json
    python scripts/mutants.py --only holm     those with this word in their name or file

A mutation is a dictionary: ``name``, ``file`` (below src/cogstage), ``old`` (must occur exactly once), ``new`` and
``tests`` (what pytest is given). It is killed if those tests fail with it and pass without it. The exit code is 1 if
fewer than nine in ten are killed, or if a mutation no longer fits the code. Takes long; not part of CI.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = Path("cogstage")
ENOUGH = 0.9
TIME_LIMIT = 900  # seconds for one run of tests; a mutation that makes them hang is killed, too


@dataclass(frozen=True)
class Mutation:
    """One mistake."""

    name: str
    file: str
    old: str
    new: str
    tests: tuple[str, ...]


def load(path: Path) -> list[Mutation]:
    """The mutations of a JSON file."""
    entries = json.loads(path.read_text(encoding="utf-8"))
    return [Mutation(e["name"], e["file"], e["old"], e["new"], tuple(e["tests"])) for e in entries]


def mutated(text: str, mutation: Mutation) -> str:
    """The file's text with the mistake in it."""
    times = text.count(mutation.old)
    if times != 1:
        raise ValueError(f"its old text occurs {times} times in {mutation.file}")
    changed = text.replace(mutation.old, mutation.new)
    compile(changed, mutation.file, "exec")
    return changed


def failure(root: Path, source: Path, tests: Sequence[str]) -> str:
    """The first test that fails with the package in ``source``; "" if all pass."""
    environment = {**os.environ, "PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    environment["HYPOTHESIS_PROFILE"] = "unshrunk"  # of tests/conftest.py
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:randomly", *tests]
    try:
        done = subprocess.run(command, cwd=root, env=environment, capture_output=True, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired:
        return f"more than {TIME_LIMIT} s"
    said = done.stdout.decode("utf-8", "replace")
    if done.returncode not in (0, 1):  # 2 and more: the tests did not even run
        raise RuntimeError(said[-600:])
    failed = re.search(r"^(?:FAILED|ERROR) \S*::(\w+)", said, re.MULTILINE)
    return "" if done.returncode == 0 else failed[1] if failed else "a test"


def run(root: Path, mutations: Sequence[Mutation]) -> list[tuple[Mutation, str, float]]:
    """Each mutation with what became of it: killed, survived, stale, or tests that fail without it."""
    ends: list[tuple[Mutation, str, float]] = []
    unsound: dict[tuple[str, ...], str] = {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        shutil.copytree(root / "src" / PACKAGE, source / PACKAGE)
        for mutation in mutations:
            begun, by = time.monotonic(), ""
            path = source / PACKAGE / mutation.file
            try:
                before = path.read_text(encoding="utf-8")
                after = mutated(before, mutation)
                if mutation.tests not in unsound:
                    unsound[mutation.tests] = failure(root, source, mutation.tests)
                path.write_text(after, encoding="utf-8")
                try:
                    killer = failure(root, source, mutation.tests)
                finally:
                    path.write_text(before, encoding="utf-8")
                end = "tests fail without it" if unsound[mutation.tests] else "killed" if killer else "survived"
                by = unsound[mutation.tests] or killer
            except (OSError, ValueError, SyntaxError) as error:
                end = f"stale: {error}"
            except RuntimeError as error:
                end = f"tests cannot run: {error}"
            ends.append((mutation, end, time.monotonic() - begun))
            print(f"{end.splitlines()[0]:24}{mutation.name} ({mutation.file}, {ends[-1][2]:.0f} s) {by}", flush=True)
    return ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the mutations and say how many were killed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--list", type=Path, default=ROOT / "scripts" / "mutants.json", help="file of mutations")
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository")
    parser.add_argument("--only", default="", help="mutations with this word in their name or file")
    options = parser.parse_args(arguments)
    chosen = [m for m in load(options.list) if options.only in f"{m.name} {m.file}"]
    ends = [end for _, end, _ in run(options.root, chosen)]
    killed = ends.count("killed")
    print(f"\n{killed} of {len(chosen)} killed ({killed / max(len(chosen), 1):.0%})")
    return 0 if all(end in ("killed", "survived") for end in ends) and killed >= ENOUGH * len(chosen) else 1


if __name__ == "__main__":
    sys.exit(main())
