"""``python -m benchmarks NAME [--quick]``, ``python -m benchmarks --quick all``, ``python -m benchmarks list``."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

NOT_BENCHMARKS = {"__init__", "__main__", "harness"}


def names() -> list[str]:
    """The benchmarks there are: every module of this folder with a ``main``."""
    found = sorted(path.stem for path in Path(__file__).parent.glob("*.py"))
    return [name for name in found if name not in NOT_BENCHMARKS and not name.startswith("_")]


def main(argv: list[str]) -> int:
    """Run one benchmark, or all of them, each in a process of its own; the rest of the arguments go to it."""
    chosen = next((word for word in argv if not word.startswith("-")), None)
    if chosen is None or chosen == "list":
        print("benchmarks:", ", ".join(names()))
        return 0 if chosen else 2
    rest = list(argv)
    rest.remove(chosen)
    if chosen != "all":
        if chosen not in names():
            print(f"no benchmark {chosen}; there are {', '.join(names())}", file=sys.stderr)
            return 2
        importlib.import_module(f"benchmarks.{chosen}").main(rest)
        return 0
    failed = [name for name in names() if subprocess.run([sys.executable, "-m", "benchmarks", name, *rest]).returncode]
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
