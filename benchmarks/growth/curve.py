"""A curve: what is varied, what is measured at each size, and the power that it grows by."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Any

import numpy as np

from benchmarks.harness import ONE_THREAD, measured, run_side

TOLERANCE = 0.15  # an exponent may lie so far above the needed one before it is called too high
LEAST_MB = 4.0  # below this a difference of peaks is noise


@dataclass(frozen=True)
class Curve:
    """Something that may be made larger; ``side`` measures one size and may say in ``x`` how large it came out."""

    name: str
    x: str  # what the size counts
    side: str  # module:function
    vary: str  # its argument that varies
    full: tuple[int, ...]
    quick: tuple[int, ...]  # none: a quick run leaves the curve out
    needed: float  # the exponent of time that cannot be avoided
    why: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    quick_fixed: Mapping[str, Any] = field(default_factory=dict)
    needs_literature: bool = False
    y: str = "cpu_seconds"  # what "time" is: a key of what the side returns
    y_label: str = "processor seconds"

    @property
    def file_name(self) -> str:
        """The name as part of a path."""
        return "_".join("".join(c if c.isalnum() else " " for c in self.name.lower()).split())


@dataclass(frozen=True)
class Measured:
    """A curve with its points, smallest first."""

    curve: Curve
    points: Sequence[Mapping[str, Any]]  # x, time, seconds, mb

    @cached_property
    def time_exponent(self) -> float:
        """Slope of log time over log size."""
        return exponent([p["x"] for p in self.points], [p["time"] for p in self.points])

    @cached_property
    def memory_exponent(self) -> float | None:
        """Slope of log memory over log size; None where there is too little memory to tell."""
        if max(p["mb"] for p in self.points) < LEAST_MB:
            return None
        return exponent([p["x"] for p in self.points], [max(p["mb"], 0.5) for p in self.points])

    @property
    def as_needed(self) -> bool:
        """Whether time grows no faster than it must."""
        return self.time_exponent <= self.curve.needed + TOLERANCE

    def rows(self) -> list[dict[str, Any]]:
        """The points as rows of a table."""
        names = {"x": "size", "time": "time", "seconds": "wall seconds", "mb": "MB"}
        common = {"curve": self.curve.name, "size counts": self.curve.x, "time is": self.curve.y_label}
        return [{**common, **{names[key]: point[key] for key in names}} for point in self.points]


def exponent(size: Sequence[float], value: Sequence[float]) -> float:
    """The b of value = a·size^b that fits best in log-log, by least squares."""
    if len(set(size)) < 2:
        raise ValueError("an exponent needs two sizes")
    return float(np.polyfit(np.log(size), np.log(value), 1)[0])


def best_of(work: Callable[[], object], repeats: int) -> dict[str, float]:
    """The least time and the most memory of several runs: what else the machine does only ever adds time."""
    runs = []
    for _ in range(repeats):
        with measured() as took:
            work()
        runs.append(took)
    least = {key: min(run[key] for run in runs) for key in ("seconds", "cpu_seconds")}
    return {**least, "work_mb": max(run["work_mb"] for run in runs)}


@cache
def _run_once(side: str, arguments: str) -> dict[str, Any]:
    """What a side returned; curves that differ in what they read off it share the run."""
    result: dict[str, Any] = run_side(side, json.loads(arguments), ONE_THREAD)["result"]
    return result


def measure(curve: Curve, quick: bool, literature: str) -> Measured:
    """Every size of a curve in a process of its own."""
    fixed = {**curve.fixed, **(curve.quick_fixed if quick else {})}
    if curve.needs_literature:
        fixed["literature"] = literature
    points = []
    for size in curve.quick if quick else curve.full:
        result = _run_once(curve.side, json.dumps({**fixed, curve.vary: size}, sort_keys=True))
        point = {"x": result.get("x", size), "time": result[curve.y]}
        points.append({**point, "seconds": result["seconds"], "mb": result["work_mb"]})
    return Measured(curve, sorted(points, key=lambda point: float(point["x"])))
