"""How time and memory grow: measured points, a line through them in log-log, its slope, and a plot of each curve.

    python -m benchmarks growth [--quick] [--only WORD ...] [--out FOLDER]

A quick run measures one curve of each subject. Every point runs in a process of its own on one thread. Time is
processor time, since a shared machine's clock says little; the clock is written down beside it. Memory is the peak
above what the process held when the work began. A curve that grows faster than it needs to is marked.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.growth.annotation import CURVES as ANNOTATION
from benchmarks.growth.counting import CURVES as COUNTING
from benchmarks.growth.curve import Curve, Measured, measure
from benchmarks.growth.discover import CURVES as DISCOVER
from benchmarks.growth.plot import draw
from benchmarks.growth.recall import CURVES as RECALL
from benchmarks.growth.service import CURVES as SERVICE
from benchmarks.growth.training import CURVES as TRAINING
from benchmarks.harness import need_literature, parser, report

ALL: tuple[Curve, ...] = (*ANNOTATION, *COUNTING, *RECALL, *TRAINING, *DISCOVER, *SERVICE)

ENOUGH = 3  # points, to say of a curve that it grows too fast


def main(argv: list[str] | None = None) -> None:
    """Measure the curves asked for, draw them, and write points and exponents down."""
    arguments = parser(__doc__)
    arguments.add_argument(
        "--only", nargs="+", default=[], metavar="WORD", help="curves with one of these in their name"
    )
    options = arguments.parse_args(argv)
    chosen = [curve for curve in ALL if not options.only or any(word in curve.name for word in options.only)]
    if options.quick:
        print("left out of the quick run:", "; ".join(curve.name for curve in chosen if not curve.quick))
        chosen = [curve for curve in chosen if curve.quick]
    if not chosen:
        raise SystemExit(f"no such curve; there are {', '.join(curve.name for curve in ALL)}")
    inputs: list[Path] = []
    if any(curve.needs_literature for curve in chosen):
        literature = need_literature(options.data)
        inputs = [literature / "documents.jsonl.gz", literature / "lexicon.tsv"]
    folder = Path(options.out) / "growth"
    folder.mkdir(parents=True, exist_ok=True)
    points: list[dict[str, Any]] = []
    exponents: list[dict[str, Any]] = []
    for curve in chosen:
        found = measure(curve, options.quick, options.data)
        (folder / f"{curve.file_name}.svg").write_text(draw(found), encoding="utf-8")
        points += found.rows()
        exponents.append(_summary(found))
        print(f"{curve.name}: {exponents[-1]['verdict']}", file=sys.stderr)
    report("growth_points", points, options.out, inputs=inputs)
    report("growth", exponents, options.out, {"sizes": "quick" if options.quick else "full"}, inputs)


def _summary(found: Measured) -> dict[str, Any]:
    curve = found.curve
    return {
        "curve": curve.name,
        "points": len(found.points),
        "from": found.points[0]["x"],
        "to": found.points[-1]["x"],
        "time exponent": found.time_exponent,
        "memory exponent": found.memory_exponent,
        "needed": curve.needed,
        "why": curve.why,
        "verdict": _verdict(found),
    }


def _verdict(found: Measured) -> str:
    if len(found.points) < ENOUGH:
        return "too few points to tell"
    return "as it must" if found.as_needed else "FASTER THAN NEEDED"


if __name__ == "__main__":
    main(sys.argv[1:])
