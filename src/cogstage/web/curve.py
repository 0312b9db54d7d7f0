"""The reliability curves of a model as SVG: predicted probability across, share of true pairs up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from cogstage.relations import ordered, phrase

SIZE, EDGE = 220.0, 52.0  # of the drawing, and what its axes leave free
TICKS = (0.0, 0.5, 1.0)


def reliability_curves(bins: Mapping[str, Any]) -> list[tuple[str, Markup]]:
    """A drawing for each relation of ``{relation: [{"predicted", "true", "pairs"}, ...]}`` that has any pairs."""
    filled = {name: [point for point in points if point.get("pairs")] for name, points in bins.items()}
    return [(name, _drawing(name, filled[name])) for name in ordered(filled) if filled[name]]


def _drawing(name: str, points: list[dict[str, Any]]) -> Markup:
    most = max(float(point["pairs"]) for point in points)
    places = [(_x(float(p["predicted"])), _y(float(p["true"])), float(p["pairs"])) for p in points]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{2 + 4 * (pairs / most) ** 0.5:.1f}">'  # the area grows with the pairs
        f"<title>{pairs:,.0f} pairs</title></circle>"
        for x, y, pairs in places
    )
    ticks = "".join(
        f'<text x="{_x(tick):.0f}" y="{_y(0) + 16:.0f}" text-anchor="middle">{tick:g}</text>'
        f'<text x="{_x(0) - 6:.0f}" y="{_y(tick) + 4:.0f}" text-anchor="end">{tick:g}</text>'
        for tick in TICKS
    )
    axes = (
        f'<path class="axes" fill="none" d="M{_x(0)},{_y(1)} V{_y(0)} H{_x(1)}"/>'
        f'<path class="even" fill="none" d="M{_x(0)},{_y(0)} L{_x(1)},{_y(1)}"/>{ticks}'
    )
    words = escape(f"Reliability of {phrase(name)}: predicted probability against the share of true pairs")
    view = f'viewBox="0 0 {SIZE:.0f} {SIZE:.0f}" role="img" aria-label="{words}" data-relation="{escape(name)}"'
    return Markup(f'<svg {view} font-size="12">{axes}<polyline points="{line}" fill="none"/>{dots}</svg>')


def _x(value: float) -> float:
    return EDGE * 0.6 + value * (SIZE - EDGE)


def _y(value: float) -> float:
    return SIZE - EDGE * 0.6 - value * (SIZE - EDGE)
