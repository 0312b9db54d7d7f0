"""``python -m benchmarks NAME [--quick]``, ``python -m benchmarks --quick all``, ``python -m benchmarks list``."""

from __future__ import annotations

import importlib
import resource
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.harness import SkippedError

HERE = Path(__file__).parent
DONE, FAILED, WRONG_USE, LEFT_OUT = 0, 1, 2, 3  # exit codes


def names() -> list[str]:
    """The benchmarks there are: every module or package of this folder with a ``main``."""
    sources = [*HERE.glob("[a-z]*.py"), *HERE.glob("[a-z]*/__init__.py")]
    found = {path.parent.name if path.stem == "__init__" else path.stem: path for path in sources}
    return sorted(name for name, path in found.items() if "\ndef main(" in path.read_text(encoding="utf-8"))


def main(argv: list[str]) -> int:
    """Run one benchmark, or all of them, each in a process of its own; the rest of the arguments go to it."""
    chosen = next((word for word in argv if not word.startswith("-")), None)
    if chosen is None or chosen == "list":
        print("benchmarks:", ", ".join(names()))
        return DONE if chosen else WRONG_USE
    rest = list(argv)
    rest.remove(chosen)
    if chosen == "all":
        return run_all(rest)
    if chosen not in names():
        print(f"no benchmark {chosen}; there are {', '.join(names())}", file=sys.stderr)
        return WRONG_USE
    try:
        importlib.import_module(f"benchmarks.{chosen}").main(rest)
    except SkippedError as reason:
        print(f"\n{chosen} is left out: {reason}")
        return LEFT_OUT
    return DONE


def run_all(arguments: list[str]) -> int:
    """Every benchmark in turn; ends with what became of each and what it took."""
    outcomes = {DONE: "done", LEFT_OUT: "left out"}
    codes, lines = [], []
    for name in names():
        begun, worked = time.perf_counter(), _children_seconds()
        codes.append(subprocess.run([sys.executable, "-m", "benchmarks", name, *arguments]).returncode)
        seconds, cpu = time.perf_counter() - begun, _children_seconds() - worked
        lines.append(f"{name:24}{outcomes.get(codes[-1], 'FAILED'):10}{seconds:8.1f} s{cpu:10.1f} CPU s")
        print(f"\n{lines[-1]}", flush=True)
    print("\n## all\n", *lines, f"{'together':34}{'':10}{_children_seconds():10.1f} CPU s", sep="\n")
    return FAILED if any(code not in outcomes for code in codes) else DONE


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
