"""A curve as a small SVG: time and memory side by side, log-log, points, the fitted line and its slope."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.growth.curve import Measured


def draw(found: Measured) -> str:
    """The SVG; the same bytes for the same points."""
    from matplotlib.figure import Figure

    from cogstage.reporting.plots import figure_svg

    size = [float(point["x"]) for point in found.points]
    figure = Figure(figsize=(6.4, 2.5))
    left, right = figure.subplots(1, 2)
    _panel(left, size, [p["time"] for p in found.points], found.time_exponent, found.curve.y_label, "C0")
    memory = [max(p["mb"], 0.5) for p in found.points]
    _panel(right, size, memory, found.memory_exponent, "MB above what was held", "C1")
    for axes in (left, right):
        axes.set_xlabel(found.curve.x, fontsize=8)
    figure.suptitle(found.curve.name, fontsize=9, y=1.02)
    figure.tight_layout(pad=0.6)
    return figure_svg(figure) + "\n"


def _panel(axes: Any, size: Sequence[float], value: Sequence[float], slope: float | None, label: str, at: str) -> None:
    axes.loglog(size, value, "o", color=at, markersize=4)
    if slope is None:
        axes.set_title("too little to tell", fontsize=8)
    else:
        middle, height = np.mean(np.log(size)), np.mean(np.log(value))
        ends = np.array([min(size), max(size)])
        axes.loglog(ends, np.exp(height + slope * (np.log(ends) - middle)), "-", color=at, linewidth=1)
        axes.set_title(f"exponent {slope:.2f}", fontsize=8)
    axes.set_ylabel(label, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.minorticks_off()
    low, high = min(value), max(value)
    if high < 8 * low:  # a nearly level line keeps its level look
        axes.set_ylim(low / 4, high * 4)
    axes.spines[["top", "right"]].set_visible(False)
