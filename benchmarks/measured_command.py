"""A command measured from outside: clock, processor, and the memory that it and all its processes hold at a time."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

SOONEST, LATEST = 0.01, 0.5  # seconds between two looks at the memory, at the start and later


def run_measured(
    command: Sequence[str],
    log: Path,
    environment: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    meanwhile: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Run a command with its output in ``log``; gives seconds, processor_seconds and peak_mb, or ends with its error.

    Memory is looked at often at first, then every half second: what all processes hold together, memory they share
    counted once, or the peak of one of them since it began, whichever is higher. ``meanwhile`` is called with the
    process' id in a thread of its own.
    """
    begun = time.perf_counter()
    with log.open("wb") as handle:
        process = subprocess.Popen(
            list(command), stdout=handle, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}, cwd=cwd
        )
    highest, ended = [0.0], threading.Event()

    def look() -> None:
        pause = SOONEST
        while not ended.is_set():
            highest[0] = max(highest[0], tree_mb(process.pid))
            ended.wait(pause)
            pause = min(1.2 * pause, LATEST)

    watcher = threading.Thread(target=look, daemon=True)
    watcher.start()
    if meanwhile is not None:
        threading.Thread(target=meanwhile, args=(process.pid,), daemon=True).start()
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
        "peak_mb": highest[0],  # ru_maxrss would count the process that started it, too
    }


def tree_mb(pid: int) -> float:
    """Megabytes that a process and its descendants hold now, or that one of them alone has held before."""
    processes = descendants(pid)
    held = max(_kilobytes(process, "status", "VmHWM:") for process in processes)
    if len(processes) > 1:  # what is shared takes long to tell
        held = max(held, sum(_kilobytes(process, "smaps_rollup", "Pss:") for process in processes))
    return held / 1024


def descendants(pid: int) -> list[int]:
    """A process, its children in the order of their start, and theirs."""
    found = [pid]
    for process in found:
        try:
            for task in Path(f"/proc/{process}/task").iterdir():
                found += map(int, (task / "children").read_text(encoding="ascii").split())
        except OSError:
            continue
    return found


def disk_mb(path: Path) -> float:
    """Megabytes of a file, or of all files below a folder."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files) / 2**20


def _kilobytes(pid: int, file: str, name: str) -> int:
    try:
        lines = Path(f"/proc/{pid}/{file}").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:  # it has just ended
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith(name))
