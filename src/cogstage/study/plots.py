"""The pictures of a report, as SVG text that stands inside the page."""

from __future__ import annotations

import io
import re
from typing import Any

from cogstage.study.blind import SCORES
from cogstage.study.results import Comparison, Results, SetScores

COLOURS = ("#1f6f8b", "#c8702a", "#5b7f3b", "#7a4f9a", "#8a8a8a")
SHADES = ("#d9dde1", "#a9c3cf", "#5e97ad", "#1c5d75")


def score_levels(table: tuple[SetScores, ...]) -> str:
    """How often each score was given, source by source."""

    def draw(axes: Any) -> None:
        for row, entry in enumerate(table):
            total, left = sum(entry.levels) or 1, 0.0
            for level, count in enumerate(entry.levels):
                share = 100 * count / total
                axes.barh(row, share, left=left, color=SHADES[level], height=0.55)
                if share >= 6:
                    axes.text(
                        left + share / 2, row, f"{share:.0f} %", ha="center", va="center", fontsize=8,
                        color="white" if level == 3 else "#1b1f24",
                    )  # fmt: skip
                left += share
        handles = [_patch(SHADES[int(level)], f"{level} {words}") for level, words in SCORES.items()]
        axes.legend(handles=handles, ncols=4, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=8)
        _rows(axes, [entry.source for entry in table])
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of the rationales (%)")

    return _svg(draw, 0.5 * len(table) + 1.1, "How often each score was given")


def averages(table: tuple[SetScores, ...]) -> str:
    """Average sum and average maximum a case with their intervals."""

    def draw(axes: Any) -> None:
        for row, entry in enumerate(table):
            for shift, figure, marker in ((-0.13, entry.average_sum, "o"), (0.13, entry.average_max, "D")):
                if figure.defined:
                    axes.plot([figure.low, figure.high], [row + shift] * 2, color=COLOURS[row % 5], lw=2)
                    axes.plot(figure.value, row + shift, marker, color=COLOURS[row % 5], ms=6)
        axes.plot([], [], "o", color="#444", label="average sum a case")
        axes.plot([], [], "D", color="#444", label="average maximum a case")
        axes.legend(ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=8)
        _rows(axes, [entry.source for entry in table])
        axes.set_xlim(left=0)
        axes.set_xlabel("points (line: 95 % interval)")

    return _svg(draw, 0.6 * len(table) + 1.1, "Average sum and maximum of the scores a case")


def wins(comparisons: tuple[Comparison, ...]) -> str:
    """Wins, ties and losses of each comparison."""

    def draw(axes: Any) -> None:
        for row, entry in enumerate(comparisons):
            left = 0.0
            for count, colour in ((entry.wins, COLOURS[0]), (entry.ties, "#d9dde1"), (entry.losses, COLOURS[1])):
                axes.barh(row, count, left=left, color=colour, height=0.55)
                if count:
                    ink = "#1b1f24" if colour == "#d9dde1" else "white"
                    axes.text(left + count / 2, row, str(count), ha="center", va="center", fontsize=8, color=ink)
                left += count
        handles = [_patch(COLOURS[0], "first wins"), _patch("#d9dde1", "the same"), _patch(COLOURS[1], "second wins")]
        axes.legend(handles=handles, ncols=3, loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False, fontsize=8)
        _rows(axes, [f"{entry.first} : {entry.second}\n{entry.who}" for entry in comparisons])
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("cases")

    return _svg(draw, 0.55 * len(comparisons) + 1.1, "Wins, ties and losses")


def all_plots(results: Results) -> list[tuple[str, str]]:
    """Caption and SVG of every picture that the answers allow."""
    table = results.table["all"]
    made = []
    if results.comparisons:
        made.append(("Cases in which one set was ranked above the other.", wins(results.comparisons)))
    if any(sum(entry.levels) for entry in table):
        made.append(("Scores of the single rationales.", score_levels(table)))
        made.append(("Points a case.", averages(table)))
    return made


def _rows(axes: Any, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names, fontsize=9)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.tick_params(length=0)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def _patch(colour: str, label: str) -> Any:
    from matplotlib.patches import Patch

    return Patch(color=colour, label=label)


def _svg(draw: Any, height: float, title: str) -> str:
    """Draw into an SVG element with a title for screen readers; the text stays text, in the page's own font."""
    import matplotlib
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title, "font.family": "sans-serif"}):
        figure = Figure(figsize=(6.6, height), layout="constrained")
        canvas: Any = FigureCanvasSVG(figure)
        figure.patch.set_alpha(0)
        axes = figure.subplots()
        axes.patch.set_alpha(0)
        draw(axes)
        out = io.StringIO()
        canvas.print_svg(out, metadata={"Date": None, "Creator": None})
    svg = out.getvalue()
    svg = svg[svg.index("<svg") :]
    used = set(re.findall(r"#([\w.-]+)", svg))  # several pictures share a page: only ids that something points to stay
    svg = re.sub(r' id="([\w.-]+)"', lambda found: found[0] if found[1] in used else "", svg)
    return re.sub(r"<svg\b", f'<svg role="img" aria-label="{title}"', svg, count=1)
