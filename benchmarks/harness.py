"""What the benchmarks share: each side runs in a process of its own and is reported beside its reference.

A side is a plain function, named by path (``benchmarks.counting:ours``), called with keyword arguments that JSON can
carry. What it returns comes back as ``result``; time and peak memory are measured around the call, in its process.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
LITERATURE = ROOT.parent / "shared" / "bench" / "literature"
LIBRARIES = ("cogstage", "numpy", "scipy", "numba", "pyarrow", "torch", "daachorse", "spacy", "pyspark", "scikit-learn")


def run_side(
    function_path: str, kwargs: Mapping[str, Any] | None = None, environment: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Run ``module:function(**kwargs)`` in a fresh process; gives seconds, peak_mb (its children too) and result.

    The function may itself return a dictionary with ``seconds`` in it (where its set-up must not count); that is then
    the time reported, and ``process_seconds`` keeps the whole.
    """
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "answer.json"
        command = [
            sys.executable,
            "-m",
            "benchmarks.harness",
            function_path,
            json.dumps(dict(kwargs or {})),
            str(answer),
        ]
        subprocess.run(command, cwd=ROOT, check=True, env={**os.environ, **(environment or {})})
        side: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    if isinstance(side["result"], dict) and "seconds" in side["result"]:
        side["process_seconds"], side["seconds"] = side["seconds"], side["result"]["seconds"]
    return side


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


def report(
    name: str, rows: Sequence[Mapping[str, Any]], out: Path | str | None = None, notes: Mapping[str, Any] | None = None
) -> None:
    """Print ``rows`` as a table (columns as they first appear) and write them to ``out/name.json`` with the machine."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = [[_cell(row.get(column)) for column in columns] for row in rows]
    widths = [max(len(column), *(len(line[i]) for line in cells)) for i, column in enumerate(columns)]
    print(f"\n## {name}\n")
    print("| " + " | ".join(column.ljust(width) for column, width in zip(columns, widths, strict=True)) + " |")
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for line in cells:
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |")
    for key, value in (notes or {}).items():
        print(f"{key}: {_cell(value)}")
    if out is not None:
        folder = Path(out)
        folder.mkdir(parents=True, exist_ok=True)
        content = {"name": name, "machine": machine(), "rows": [dict(row) for row in rows], "notes": dict(notes or {})}
        path = folder / f"{name}.json"
        path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"written to {path}")


def parser(description: str | None) -> argparse.ArgumentParser:
    """The options every benchmark has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    options.add_argument("--out", default="artefacts/benchmarks", help="folder for the JSON file")
    options.add_argument("--literature", default=str(LITERATURE), help="folder with documents, lexicon and facts")
    return options


def peak_mb() -> float:
    """Peak resident memory of this process and of its largest finished child, in megabytes."""
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return max(own, children) / 1024


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _side(function_path: str, kwargs: str, answer: str) -> None:
    module, _, function = function_path.partition(":")
    call = getattr(importlib.import_module(module), function)
    begun = time.perf_counter()
    result = call(**json.loads(kwargs))
    seconds = time.perf_counter() - begun
    content = {"seconds": seconds, "peak_mb": peak_mb(), "result": result}
    Path(answer).write_text(json.dumps(content), encoding="utf-8")


if __name__ == "__main__":
    _side(*sys.argv[1:4])
