"""``make figures``: measure the figures of the documentation again and report what differs.

``docs/results/figures/NAME.json`` is what a benchmark wrote: its arguments, the commit of the code, the hashes of its
input files, and its rows. Each is run again with the same arguments if it takes under twenty minutes of processor time
and its inputs are here (``--data``). Reported are rows that are gone or new, values that differ by more than 0.002, and
ratios that differ by more than 20 %; times and memory depend on the machine and are not compared.

``--record FILE...`` keeps files that benchmarks wrote as the figures of the documentation. Measure what you record on
committed code.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from benchmarks.harness import ROOT, SkippedError, parser, report

FIGURES = ROOT / "docs" / "results" / "figures"
VALUE, RATIO = 0.002, 0.2  # differences that are reported
MOST_SECONDS = 20 * 60  # of processor time
MACHINE = ("seconds", "s", "time", "exponent", "mb", "bytes", "low", "high", "p")  # of time, memory or chance
FOLDERS = ("--model", "--graph", "--dataset")  # arguments that name an artefact
NEEDED = ("name", "benchmark", "arguments", "commit", "inputs", "cpu_seconds", "rows")


def read_figure(path: Path) -> dict[str, Any]:
    """A recorded figure; what is wrong with it ends the run with one line."""
    try:
        figure: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        missing = [name for name in NEEDED if figure.get(name) is None]
    except (OSError, ValueError, AttributeError) as error:
        raise SystemExit(f"{path} is no figure: {error}; record it again") from error
    if missing:
        raise SystemExit(f"{path} lacks {', '.join(missing)}; record it again")
    return figure


def label(row: Mapping[str, Any]) -> str:
    """What a row is about: its texts."""
    return ", ".join(str(value) for value in row.values() if isinstance(value, str))


def labelled(rows: Sequence[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Rows by label; where several have the same, by label and number."""
    found: dict[str, Mapping[str, Any]] = {}
    for row in rows:
        name = before = label(row)
        number = 1
        while name in found:
            number += 1
            name = f"{before} ({number})"
        found[name] = row
    return found


def differences(old: Sequence[Mapping[str, Any]], new: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a reader of the documentation would find otherwise."""
    before, after = labelled(old), labelled(new)
    lines = [f"{name}: the row is gone" for name in before if name not in after]
    lines += [f"{name}: a new row" for name in after if name not in before]
    for name in (name for name in before if name in after):
        for column in dict.fromkeys([*before[name], *after[name]]):
            first, second = before[name].get(column), after[name].get(column)
            if _differs(column, first, second):
                lines.append(f"{name}, {column}: {first} in the documentation, {second} now")
    return lines


def is_ratio(column: str) -> bool:
    """Whether a column compares two things measured in the same run."""
    return column.startswith("×") or "/" in column


def _differs(column: str, first: Any, second: Any) -> bool:
    words = column.replace(",", " ").replace("_", " ").lower().split()
    if any(word in words for word in MACHINE):
        return False
    if not (_number(first) and _number(second)):
        return bool(first != second)
    if is_ratio(column):
        return abs(first - second) > RATIO * max(abs(first), abs(second))
    return abs(first - second) > VALUE + 1e-9


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def why_not(figure: Mapping[str, Any], data: str) -> str | None:
    """The reason why a figure is not measured here, if there is one."""
    if figure["cpu_seconds"] > MOST_SECONDS:
        return f"takes {figure['cpu_seconds'] / 60:.0f} minutes of processor time"
    folders = (word for flag, word in pairwise(figure["arguments"]) if flag in FOLDERS)
    missing = [folder for folder in folders if not (ROOT / folder).exists()]
    if missing:
        return f"needs the folder {missing[0]}; its page says how it was made"
    if figure["inputs"] and not data:
        return f"needs {', '.join(figure['inputs'])}; name their folder with --data"
    return None


def run(command: Sequence[str]) -> str:
    """Run a command in the repository; what it said."""
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.stdout


def measure(figure: Mapping[str, Any], data: str) -> tuple[str, list[str]]:
    """Run the benchmark of a figure again: what became of it, and the differences."""
    reason = why_not(figure, data)
    if reason is not None:
        return f"left out: {reason}", []
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-m", "benchmarks", figure["benchmark"], *figure["arguments"], "--out", out]
        command += ["--data", data] if data else []
        said = run(command)
        written = Path(out) / f"{figure['name']}.json"
        if not written.exists():
            last = said.strip().splitlines()[-1:]
            return f"FAILED: {' '.join(command[1:])} wrote no {written.name}: {' '.join(last)}", ["failed"]
        again = json.loads(written.read_text(encoding="utf-8"))
    changed = [name for name, known in figure["inputs"].items() if again["inputs"].get(name) != known]
    if changed:
        return f"left out: {', '.join(changed)} is not the file that the figure was measured on", []
    found = differences(figure["rows"], again["rows"])
    return (f"{len(found)} differences" if found else "the same"), found


def record(files: Sequence[Path], folder: Path) -> None:
    """Keep files that benchmarks wrote as figures, without what a machine is called."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in files:
        figure = read_figure(path)
        figure.get("machine", {}).pop("system", None)
        text = json.dumps(figure, indent=1, ensure_ascii=False) + "\n"
        (folder / path.name).write_text(text, encoding="utf-8")


def main(argv: list[str] | None = None) -> None:
    """Measure every recorded figure again, or record some."""
    options = parser(__doc__)
    options.add_argument("--figures", type=Path, default=FIGURES, metavar="FOLDER", help="recorded figures")
    options.add_argument("--record", type=Path, nargs="+", metavar="FILE", help="keep these files as figures")
    options.add_argument("--only", nargs="+", metavar="NAME", help="measure only these figures")
    chosen = options.parse_args(argv)
    if chosen.record:
        record(chosen.record, chosen.figures)
        return
    paths = sorted(chosen.figures.glob("*.json"))
    if chosen.only:
        paths = [path for path in paths if path.stem in chosen.only]
    if chosen.quick:  # what needs seconds, so that all benchmarks together stay quick
        paths = [path for path in paths if read_figure(path)["cpu_seconds"] < 30]
    if not paths:
        raise SkippedError(f"no figure to measure in {chosen.figures}")
    rows, lines = [], []
    for path in paths:
        outcome, found = measure(read_figure(path), chosen.data)
        print(f"{path.stem}: {outcome}", flush=True)
        rows.append({"figure": path.stem, "outcome": outcome, "differences": len(found)})
        lines += [f"{path.stem}: {line}" for line in found]
    report("figures", rows, chosen.out)
    if lines:
        raise SystemExit("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
