"""What the benchmarks share: each side runs in a process of its own and is reported beside its reference.

A side is a plain function, named by path (``benchmarks.counting:ours``), called with keyword arguments that JSON can
carry. What it returns comes back as ``result``; wall time, processor time and peak memory are measured around the call,
in its process. A busy machine says little by its clock, so ratios are given of processor time too.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import importlib
import importlib.util
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
DATA = "COGSTAGE_BENCHMARK_DATA"  # environment variable with the folder that --data names
LIBRARIES = (
    *("cogstage", "numpy", "scipy", "numba", "pyarrow", "torch", "daachorse", "scikit-learn"),
    *("spacy", "gensim", "pykeen", "pyspark"),
)
ONE_THREAD = {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
OWN_TIMES = ("seconds", "cpu_seconds")
RUN: list[str] = []  # the benchmark that runs and its arguments
PLACES = ("--out", "--data", "--folder")  # options that name a place on this machine


class SkippedError(Exception):
    """This benchmark cannot run here; the message says what it needs."""


def run_side(
    function_path: str, kwargs: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run ``module:function(**kwargs)`` in a fresh process; gives its times, its peak memory and what it returned.

    ``seconds`` is wall time, ``cpu_seconds`` and ``peak_mb`` are those of the process and its children. The function
    may itself return a dictionary with ``seconds`` and ``cpu_seconds`` in it (where its set-up must not count, see
    :func:`measured`); those are then the times reported, and ``process_seconds`` keeps the whole.
    """
    with tempfile.TemporaryDirectory() as folder:
        asked, answer = Path(folder) / "asked.json", Path(folder) / "answer.json"
        asked.write_text(json.dumps(dict(kwargs or {})), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.harness", function_path, str(asked), str(answer)]
        subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, **(environment or {})})
        side: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    side["process_seconds"] = side["seconds"]
    if isinstance(side["result"], dict):
        side |= {key: side["result"][key] for key in OWN_TIMES if key in side["result"]}
    return side


@contextmanager
def measured() -> Iterator[dict[str, float]]:
    """Seconds, processor seconds and megabytes of a block, there when it ends; for a side whose set-up must not count.

    ``work_mb`` is the peak of memory above what the process held when the block began (0 where that cannot be told).
    """
    took: dict[str, float] = {}
    held = _forget_peak()
    begun, worked = time.perf_counter(), cpu_seconds()
    yield took
    took["seconds"], took["cpu_seconds"] = time.perf_counter() - begun, cpu_seconds() - worked
    took["work_mb"] = max(0.0, _status_mb("VmHWM") - held) if held else 0.0


def cpu_seconds() -> float:
    """Processor time of this process, its threads and its finished children so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def side_row(label: str, side: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """What every row of a comparison has: who, wall time, processor time, peak memory; then ``more``."""
    times = {"seconds": side["seconds"], "CPU seconds": side["cpu_seconds"], "peak MB": side["peak_mb"]}
    return {"side": label, **times, **more}


def add_ratios(rows: Iterable[dict[str, Any]], reference: Mapping[str, Any], work: str | None = None) -> None:
    """How often the reference's time and memory contain a row's: above 1 the row is better than the reference.

    ``work`` names the column of work done, where the sides did different amounts of it.
    """
    for row in rows:
        share = row[work] / reference[work] if work else 1.0
        for column, name in (("seconds", "× faster"), ("CPU seconds", "× less CPU"), ("peak MB", "× less memory")):
            scale = 1.0 if column == "peak MB" else share
            row[name] = scale * reference[column] / row[column] if row[column] else None


def need(what: bool, reason: str) -> None:
    """Leave this benchmark out, with the reason, unless ``what`` holds."""
    if not what:
        raise SkippedError(reason)


def need_literature(folder: str | Path) -> Path:
    """The folder of the literature set, which is not part of this repository."""
    files = ("documents.jsonl.gz", "lexicon.tsv")
    there = bool(folder) and all((Path(folder) / name).exists() for name in files)
    where = f"{folder} does not have them" if folder else "none was given"
    need(there, f"needs a folder with {' and '.join(files)} ({where}); name one with --data or ${DATA}")
    return Path(folder)


def installed(library: str) -> bool:
    """Whether an optional library can be imported."""
    return importlib.util.find_spec(library) is not None


def machine() -> dict[str, Any]:
    """The machine and the versions a figure was measured with."""
    versions = {}
    for library in LIBRARIES:
        try:
            versions[library] = version(library)
        except PackageNotFoundError:
            continue
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": platform.processor() or platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gb": round(memory, 1),
        "system": platform.platform(),
        "python": platform.python_version(),
        "versions": versions,
    }


def provenance(inputs: Iterable[Path] = (), worked: float = 0.0) -> dict[str, Any]:
    """Which code measured, on which input files (by name, SHA-256), and the processor time of this and earlier runs."""
    git = ["git", "-C", str(ROOT)]
    commit = subprocess.run([*git, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()
    changed = subprocess.run([*git, "status", "--porcelain", "src", "benchmarks"], capture_output=True, text=True)
    hashes = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in inputs}
    return {
        "commit": commit + (" with changes" if changed.stdout.strip() else "") if commit else "unknown",
        "inputs": hashes,
        "cpu_seconds": round(max(cpu_seconds(), worked), 1),
    }


def report(
    name: str,
    rows: Sequence[Mapping[str, Any]],
    out: Path | str | None = None,
    notes: Mapping[str, Any] | None = None,
    inputs: Iterable[Path] = (),
    worked: float = 0.0,
) -> None:
    """Print ``rows`` as a table (columns as they first appear) and write them to ``out/name.json``.

    The file also says what ran (``python -m benchmarks`` sets ``RUN``), with which code, on which ``inputs`` and
    machine, so that it can be kept as a figure of the documentation (see :mod:`benchmarks.figures`). ``worked`` is the
    processor time behind all rows, where some were computed by an earlier run.
    """
    from cogstage.reporting.table import Table, value_text

    print(f"\n## {name}\n")
    print(Table.from_records("", rows).markdown())
    for key, value in (notes or {}).items():
        print(f"{key}: {value_text(value)}")
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        content = {
            "name": name,
            "benchmark": RUN[0] if RUN else None,
            "arguments": _repeatable(RUN[1:]),
            **provenance(inputs, worked),
            "machine": machine(),
            "rows": [dict(row) for row in rows],
            "notes": dict(notes or {}),
        }
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"written to {path}")


def _repeatable(argv: Sequence[str]) -> list[str]:
    """The arguments without those that name a place on this machine."""
    kept, rest = [], iter(argv)
    for word in rest:
        if word.partition("=")[0] in PLACES:
            if "=" not in word:
                next(rest, None)
            continue
        kept.append(word)
    return kept


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options every benchmark has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    options.add_argument("--out", default="artefacts/benchmarks", help="folder for the JSON file")
    data = os.environ.get(DATA, "")
    words = f"folder with documents.jsonl.gz, lexicon.tsv and facts.tsv; by default ${DATA}"
    options.add_argument("--data", default=data, metavar="FOLDER", help=words)
    return options


def peak_mb() -> float:
    """Peak resident memory of this process and of its largest finished child, in megabytes."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(own, children) / 1024


def _forget_peak() -> float:
    """Give freed memory back, begin the peak anew, and say what is held in megabytes; 0 where Linux does not help."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        return _status_mb("VmRSS")
    except (OSError, AttributeError):
        return 0.0


def _status_mb(name: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1024


def _side(function_path: str, asked: str, answer: str) -> None:
    module, _, function = function_path.partition(":")
    call = getattr(importlib.import_module(module), function)
    kwargs = json.loads(Path(asked).read_text(encoding="utf-8"))
    begun = time.perf_counter()
    result = call(**kwargs)
    seconds = time.perf_counter() - begun
    content = {"seconds": seconds, "cpu_seconds": cpu_seconds(), "peak_mb": peak_mb(), "result": result}
    Path(answer).write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    _side(*sys.argv[1:4])
