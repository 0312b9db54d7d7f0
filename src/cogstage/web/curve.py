"""The reliability curve of a model as SVG: predicted probability across, share of true pairs up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from markupsafe import Markup, escape

from cogstage.relations import phrase

SIZE, EDGE = 300.0, 44.0


def reliability_curve(bins: Mapping[str, Any]) -> Markup | None:
    """A curve for each relation from ``{relation: [{"predicted", "true", "pairs"}, ...]}``; None without any."""
    lines = []
    for number, (name, points) in enumerate(sorted(bins.items())):
        places = [(_x(float(p["predicted"])), _y(float(p["true"]))) for p in points if p.get("pairs")]
        if places:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
            dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3"/>' for x, y in places)
            label = f'<text x="{SIZE + 8:.0f}" y="{EDGE + 18 * number:.0f}">{escape(phrase(name))}</text>'
            line = f'<polyline points="{path}" fill="none"/>{dots}{label}'
            lines.append(f'<g class="curve-{number % 5}" data-relation="{escape(name)}">{line}</g>')
    if not lines:
        return None
    axes = (
        f'<path class="axes" fill="none" d="M{_x(0)},{_y(1)} V{_y(0)} H{_x(1)}"/>'
        f'<path class="even" fill="none" d="M{_x(0)},{_y(0)} L{_x(1)},{_y(1)}"/>'
        f'<text x="{_x(0)}" y="{SIZE}">0</text><text x="{_x(1)}" y="{SIZE}" text-anchor="end">1 predicted</text>'
        f'<text x="4" y="{_y(1) + 4}">1</text>'
    )
    words = "Reliability: predicted probability against the share of true pairs"
    view = f'viewBox="0 0 {SIZE + 150:.0f} {SIZE + 6:.0f}" role="img" aria-label="{words}"'
    return Markup(f'<svg {view} font-size="13">{axes}{"".join(lines)}</svg>')


def _x(value: float) -> float:
    return EDGE / 2 + value * (SIZE - EDGE)


def _y(value: float) -> float:
    return SIZE - EDGE / 2 - value * (SIZE - EDGE)
