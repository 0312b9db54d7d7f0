"""The plots that reports share, drawn by matplotlib: curves, bars and points with intervals.

Functions named ``draw_*`` draw into given axes, so that a page may set several side by side; :func:`plot` makes one
picture with its caption out of any of them.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

COLOURS = ("#1f6f8b", "#c8702a", "#5b7f3b", "#7a4f9a", "#8a8a8a")
SHADES = ("#d9dde1", "#a9c3cf", "#5e97ad", "#1c5d75")
STYLES = ("-", "--", "-.", ":", (0, (5, 1)))
SIZE = (4.6, 3.6)

Curve = tuple[np.ndarray, np.ndarray]
"""x and y of a line."""


@dataclass(frozen=True)
class Plot:
    """A picture as SVG text, with words that say what it shows."""

    caption: str
    svg: str
    wide: bool = False
    """Whether it takes the whole width of a page."""


@dataclass(frozen=True)
class PlotEstimate:
    """A value with its interval, for points and bars."""

    value: float
    low: float = float("nan")
    high: float = float("nan")


def plot(caption: str, draw: Callable[[Any], None], size: tuple[float, float] = SIZE, wide: bool = False) -> Plot:
    """One picture: ``draw`` is handed the axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots()
    draw(axes)
    axes.spines[["top", "right"]].set_visible(False)
    return Plot(caption, figure_svg(figure, caption), wide)


def figure_svg(figure: Any, title: str = "") -> str:
    """A matplotlib figure as an SVG element; text stays text, and ``title`` is what screen readers say."""
    import matplotlib

    stream = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": title or "cogstage", "svg.fonttype": "none"}):
        figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    text = stream.getvalue()
    text = text[text.index("<svg") :]
    used = set(re.findall(r"#([\w.-]+)", text))  # several pictures share a page: only ids that are pointed to stay
    text = re.sub(r' id="([\w.-]+)"', lambda match: match[0] if match[1] in used else "", text)
    if title:
        named = f'<svg role="img" aria-label="{html.escape(title)}"'
        text = re.sub(r"^<svg", lambda _: named, text, count=1)
    return text


def save_figure(figure: Any, path: Path) -> list[Path]:
    """Write ``path``.svg and ``path``.png."""
    written = [path.with_name(f"{path.name}.{kind}") for kind in ("svg", "png")]
    for target in written:
        figure.savefig(target, dpi=150)
    return written


def draw_curves(axes: Any, curves: Mapping[str, Curve], marker: str | None = None, strong: str | None = None) -> None:
    """Named lines; ``strong`` is drawn thicker than the others."""
    for number, (name, (x, y)) in enumerate(curves.items()):
        style = STYLES[number % len(STYLES)]
        width = 2.2 if name == strong else 1.4
        axes.plot(x, y, linestyle=style, linewidth=width, marker=marker, markersize=4, label=name)
    if curves:
        axes.legend(frameon=False, fontsize="small")


def draw_precision_recall(axes: Any, curves: Mapping[str, Curve], strong: str | None = None) -> None:
    """Lines of recall (x) and precision (y)."""
    draw_curves(axes, {name: thinned(curve) for name, curve in curves.items()}, strong=strong)
    axes.set(xlabel="recall", ylabel="precision", xlim=(0, 1.01), ylim=(0, 1.01))


def thinned(curve: Curve, most: int = 400) -> Curve:
    """A line thinned to a number of points that can be seen, its ends among them; more would only enlarge the page."""
    x, y = curve
    if len(x) <= most:
        return curve
    rows = np.unique(np.linspace(0, len(x) - 1, most).round().astype(int))
    return x[rows], y[rows]


def draw_reliability(axes: Any, curves: Mapping[str, Curve]) -> None:
    """Lines of the mean probability (x) and the share of positives (y) next to the diagonal."""
    axes.plot([0, 1], [0, 1], color="0.6", linewidth=1)
    draw_curves(axes, curves, marker="o")
    axes.set(xlabel="predicted probability", ylabel="share that holds", xlim=(0, 1), ylim=(0, 1))


def draw_bars(axes: Any, bars: Mapping[int, PlotEstimate], colours: Sequence[str]) -> None:
    """Horizontal bars by row, with whiskers where there is an interval."""
    values = np.array([bar.value for bar in bars.values()])
    low = np.array([bar.value - bar.low for bar in bars.values()])
    high = np.array([bar.high - bar.value for bar in bars.values()])
    whiskers = np.maximum(np.nan_to_num(np.stack([low, high])), 0) if len(bars) else None
    axes.barh(list(bars), values, xerr=whiskers, color=list(colours), error_kw={"lw": 0.8})
    axes.grid(axis="x", lw=0.4)
    axes.set_axisbelow(True)


def draw_stacked(
    axes: Any, rows: Sequence[Sequence[float]], parts: Mapping[str, str], label: Callable[[float], str]
) -> None:
    """A stacked bar per row; ``parts`` names each part and gives its colour, ``label`` writes a part's value."""
    from matplotlib.patches import Patch

    for row, values in enumerate(rows):
        begin = 0.0
        for value, colour in zip(values, parts.values(), strict=True):
            axes.barh(row, value, left=begin, color=colour, height=0.55)
            if text := label(value):
                ink = "white" if _dark(colour) else "#1b1f24"
                axes.text(begin + value / 2, row, text, ha="center", va="center", fontsize=8, color=ink)
            begin += value
    handles = [Patch(color=colour, label=name) for name, colour in parts.items()]
    _legend_above(axes, handles)


def draw_points(axes: Any, rows: Sequence[Mapping[str, PlotEstimate]]) -> None:
    """Points with intervals: one row per entry, one marker per series."""
    series = list(dict.fromkeys(name for row in rows for name in row))
    markers = dict(zip(series, "oDs^v", strict=False))
    for row, points in enumerate(rows):
        for number, name in enumerate(series):
            if name in points and np.isfinite(points[name].value):
                point, height = points[name], row + 0.26 * (number - (len(series) - 1) / 2)
                axes.plot([point.low, point.high], [height] * 2, color=COLOURS[row % 5], lw=2)
                axes.plot(point.value, height, markers[name], color=COLOURS[row % 5], ms=6)
    _legend_above(axes, [axes.plot([], [], markers[name], color="#444", label=name)[0] for name in series])


def name_rows(axes: Any, names: Sequence[str], size: float = 9) -> None:
    """Names of the rows on the left, the first one on top."""
    axes.set_yticks(range(len(names)), names, fontsize=size)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _legend_above(axes: Any, handles: Sequence[Any]) -> None:
    options = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "frameon": False, "fontsize": 8}
    axes.legend(handles=handles, ncols=max(len(handles), 1), **options)


def _dark(colour: str) -> bool:
    """Whether white text reads better on a colour than black."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return bool(0.299 * red + 0.587 * green + 0.114 * blue < 0.55)
