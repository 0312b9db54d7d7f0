"""A command measured from outside: clock, processor, and the memory that it and all its processes hold at a time."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

EVERY = 0.5  # seconds between two looks at the memory


def run_measured(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, cwd: Path | None = None
) -> dict[str, Any]:
    """Run a command with its output in ``log``; gives seconds, processor_seconds and peak_mb, or ends with its error.

    Memory that processes share counts once; where the peak of the largest process alone was higher than any sum that
    was seen, it is the peak.
    """
    begun = time.perf_counter()
    with log.open("wb") as handle:
        process = subprocess.Popen(
            list(command), stdout=handle, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, cwd=cwd
        )
    highest, ended = [0.0], threading.Event()

    def look() -> None:
        while not ended.wait(EVERY):
            highest[0] = max(highest[0], tree_mb(process.pid))

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    ended.set()
    watcher.join()
    if process.returncode:
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        raise SystemExit(f"{' '.join(command[:6])} ...: exit code {process.returncode}: {''.join(last)} ({log})")
    return {
        "seconds": time.perf_counter() - begun,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "peak_mb": max(highest[0], used.ru_maxrss / 1024),
    }


def tree_mb(pid: int) -> float:
    """Megabytes that a process and its descendants hold now, what they share counted once."""
    total = 0
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                total = int(line.split()[1])
        children = [child for task in Path(f"/proc/{pid}/task").iterdir() for child in _words(task / "children")]
    except OSError:  # it has just ended
        return total / 1024
    return total / 1024 + sum(tree_mb(int(child)) for child in children)


def disk_mb(path: Path) -> float:
    """Megabytes of a file, or of all files below a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 2**20


def _words(path: Path) -> list[str]:
    return path.read_text(encoding="ascii").split()
