"""The pictures of a study's report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cogstage.reporting import Plot
from cogstage.reporting.plots import COLOURS, SHADES, PlotEstimate, draw_points, draw_stacked, name_rows, plot
from cogstage.statistics import Estimate
from cogstage.study.blind import SCORES
from cogstage.study.crossover import Measure
from cogstage.study.results import Results, SetScores, SourceComparison

WIDTH = 6.6


def _point(estimate: Estimate) -> PlotEstimate:
    return PlotEstimate(estimate.value, estimate.low, estimate.high)


def score_levels(table: Sequence[SetScores]) -> Plot:
    """How often each score was given, source by source."""

    def draw(axes: Any) -> None:
        rows = [[100 * count / (sum(entry.levels) or 1) for count in entry.levels] for entry in table]
        names = [f"{level} {words}" for level, words in SCORES.items() if level.isdecimal()]
        draw_stacked(axes, rows, dict(zip(names, SHADES, strict=True)), lambda v: f"{v:.0f} %" if v >= 6 else "")
        name_rows(axes, [entry.source for entry in table])
        axes.set(xlim=(0, 100), xlabel="share of the reasons (%), 3 is best")

    return plot("How often each score was given to a single reason.", draw, (WIDTH, 0.5 * len(table) + 1.1), wide=True)


def averages(table: Sequence[SetScores]) -> Plot:
    """Average sum and average maximum per case with their intervals."""

    def draw(axes: Any) -> None:
        draw_points(axes, [{"sum": _point(e.average_sum), "maximum": _point(e.average_max)} for e in table])
        name_rows(axes, [entry.source for entry in table])
        axes.set_xlim(left=0)
        axes.set_xlabel("points per case, more is better (line: 95 % interval)")

    return plot("Average sum and maximum of the scores per case.", draw, (WIDTH, 0.6 * len(table) + 1.1), wide=True)


def wins(comparisons: Sequence[SourceComparison]) -> Plot:
    """Wins, ties and losses of each comparison."""

    def draw(axes: Any) -> None:
        pairs = {(entry.first, entry.second) for entry in comparisons}
        first, second = pairs.pop() if len(pairs) == 1 else ("first source", "second source")
        parts = {f"{first} helps more": COLOURS[0], "the same": "#d9dde1", f"{second} helps more": COLOURS[1]}
        rows = [(entry.wins, entry.ties, entry.losses) for entry in comparisons]
        draw_stacked(axes, rows, parts, lambda v: f"{v:.0f}" if v else "")
        name_rows(axes, [f"{entry.first} : {entry.second}\n{entry.who}" for entry in comparisons])
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel("cases")

    caption = "Cases in which one set was ranked above the other."
    return plot(caption, draw, (WIDTH, 0.55 * len(comparisons) + 1.1), wide=True)


def arms(measures: Sequence[Measure]) -> Plot:
    """The shares of each arm."""

    def draw(axes: Any) -> None:
        draw_points(axes, [{arm: _point(estimate) for arm, estimate in m.arms.items()} for m in measures])
        better = {"accuracy": "higher"}
        name_rows(axes, [f"{m.name}\n({better.get(m.name, 'lower')} is better)" for m in measures])
        axes.set(xlim=(0, 1), xlabel="share (line: 95 % interval)")

    return plot("Judging by arm.", draw, (WIDTH, 0.7 * len(measures) + 1.1), wide=True)


def all_plots(results: Results) -> list[Plot]:
    """Every picture that the answers allow."""
    table = results.table["all"]
    made = [wins(results.comparisons)] if results.comparisons else []
    if any(sum(entry.levels) for entry in table):
        made += [score_levels(table), averages(table)]
    return made
