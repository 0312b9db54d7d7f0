"""``python -m benchmarks NAME [--quick]``, ``python -m benchmarks --quick all``, ``python -m benchmarks list``."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from benchmarks.harness import ONE_THREAD, RUN, SkippedError

HERE = Path(__file__).parent
DONE, FAILED, WRONG_USE, LEFT_OUT = 0, 1, 2, 3  # exit codes
OUTCOMES = {DONE: "done", LEFT_OUT: "left out"}
AT_ONCE = 2  # benchmarks of a quick run


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
    RUN[:] = [chosen, *rest]
    try:
        importlib.import_module(f"benchmarks.{chosen}").main(rest)
    except SkippedError as reason:
        print(f"\n{chosen} is left out: {reason}")
        return LEFT_OUT
    return DONE


def run_all(arguments: list[str]) -> int:
    """Every benchmark; ends with what became of each and what it took.

    Quick ones run two at a time on one thread each: they show that everything runs, and roughly how fast. At full size
    there is one at a time, so that nothing disturbs it.
    """
    quick = "--quick" in arguments
    with ThreadPoolExecutor(AT_ONCE if quick else 1) as runners:
        ends = list(runners.map(lambda name: _run(name, arguments, ONE_THREAD if quick else {}), names()))
    print("\n## all\n", *(end.line for end in ends), sep="\n")
    return FAILED if any(end.code not in OUTCOMES for end in ends) else DONE


@dataclass(frozen=True)
class End:
    """What became of a benchmark."""

    code: int
    line: str


def _run(name: str, arguments: list[str], environment: Mapping[str, str]) -> End:
    """One benchmark in a process of its own; what it prints is shown when it has ended."""
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as output:
        command = [sys.executable, "-m", "benchmarks", name, *arguments]
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **environment})
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    seconds, worked = time.perf_counter() - begun, used.ru_utime + used.ru_stime
    outcome = OUTCOMES.get(process.returncode, "FAILED")
    end = End(process.returncode, f"{name:24}{outcome:10}{seconds:8.1f} s{worked:10.1f} CPU s")
    print(f"{text}\n{end.line}", flush=True)
    return end


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
