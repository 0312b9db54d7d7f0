"""A prediction drawn: SVG as text (for pages and reports) and PNG (for slides), from one layout."""

from __future__ import annotations

import html
import io
import math
import re

from cogstage.rationale.layout import BOX_HEIGHT, BOX_WIDTH, INK, WIDTH, Badge, Box, Curve, Label, Layout, lay_out
from cogstage.rationale.record import Prediction

FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
NOT_XML = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Text for an SVG document; characters that no XML document may hold (controls, lone surrogates) are left out."""
    return html.escape(NOT_XML.sub("", text))


def svg(prediction: Prediction, most: int = 15, background: bool = True) -> str:
    """The picture as an SVG document.

    Without ``background`` it takes the text colour of the page around it, so that it follows light and dark.
    """
    layout = lay_out(prediction, most)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:.0f} {layout.height:.0f}" role="img"'
        f' aria-label="{escape(layout.title)}" font-family="{escape(FONT)}"'
        + (f' color="{INK}">' if background else ">"),
        f"<title>{escape(layout.title)}</title>",
    ]
    if background:
        parts.append(f'<rect width="{WIDTH:.0f}" height="{layout.height:.0f}" fill="#ffffff"/>')
    parts += [_svg_curve(curve) for curve in layout.curves]
    parts += [_svg_box(box) for box in layout.boxes]
    parts += [_svg_badge(badge) for badge in layout.badges]
    parts += [_svg_label(label) for label in layout.labels]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _svg_curve(curve: Curve) -> str:
    bend = (curve.x2 - curve.x1) / 2
    path = (
        f"M{curve.x1:.1f},{curve.y1:.1f} C{curve.x1 + bend:.1f},{curve.y1:.1f} "
        f"{curve.x2 - bend:.1f},{curve.y2:.1f} {curve.x2:.1f},{curve.y2:.1f}"
    )
    dash = f' stroke-dasharray="{",".join(f"{d:g}" for d in curve.dash)}"' if curve.dash else ""
    drawn = (
        f'<path d="{path}" fill="none" stroke="{curve.colour}" stroke-width="{curve.width:.1f}"'
        f' stroke-opacity="0.85"{dash}/>'
    )
    if curve.arrow:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _arrow(curve))
        drawn += f'<polygon points="{points}" fill="{curve.colour}"/>'
    return f"<g><title>{escape(curve.title)}</title>{drawn}</g>" if curve.title else f"<g>{drawn}</g>"


def _arrow(curve: Curve) -> list[tuple[float, float]]:
    """A triangle on the end of a curve, which arrives level."""
    size = 6.0 + curve.width
    back = -math.copysign(size, curve.x2 - curve.x1)
    return [(curve.x2, curve.y2), (curve.x2 + back, curve.y2 - size / 2), (curve.x2 + back, curve.y2 + size / 2)]


def _svg_box(box: Box) -> str:
    top = box.y - BOX_HEIGHT / 2
    weight = ' font-weight="600"' if box.target else ""
    start = box.y + 4.5 - 7.5 * (len(box.lines) - 1)
    lines = "".join(
        f'<text x="{box.x + BOX_WIDTH / 2:.1f}" y="{start + 15 * number:.1f}" text-anchor="middle" font-size="13"'
        f' fill="currentColor"{weight}>{escape(line)}</text>'
        for number, line in enumerate(box.lines)
    )
    return (
        f'<g><title>{escape(box.title)}</title><rect x="{box.x:.1f}" y="{top:.1f}" width="{BOX_WIDTH:.0f}"'
        f' height="{BOX_HEIGHT:.0f}" rx="8" fill="#8a8a8a" fill-opacity="{0.22 if box.target else 0.08}"'
        f' stroke="currentColor" stroke-width="{2 if box.target else 1}"/>{lines}</g>'
    )


def _svg_badge(badge: Badge) -> str:
    x, y = f"{badge.x:.1f}", f"{badge.y:.1f}"
    return (
        f'<circle cx="{x}" cy="{y}" r="9.5" fill="#ffffff" stroke="{badge.colour}" stroke-width="2"/>'
        f'<text x="{x}" y="{badge.y + 4:.1f}" text-anchor="middle" font-size="11" fill="{INK}">{badge.text}</text>'
    )


def _svg_label(label: Label) -> str:
    anchor = ' text-anchor="middle"' if label.middle else ""
    return (
        f'<text x="{label.x:.1f}" y="{label.y:.1f}" font-size="{label.size:g}" fill="currentColor"{anchor}>'
        f"{escape(label.text)}</text>"
    )


def png(prediction: Prediction, most: int = 15, dots_per_inch: int = 150) -> bytes:
    """The picture as a PNG file."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    layout = lay_out(prediction, most)
    figure = Figure(figsize=(WIDTH / 100, layout.height / 100), dpi=dots_per_inch, facecolor="white")
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, WIDTH)
    axes.set_ylim(layout.height, 0)
    axes.axis("off")
    _paint(axes, layout)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=dots_per_inch, metadata={"Software": None})
    return stream.getvalue()


def _paint(axes: object, layout: Layout) -> None:
    """Draw the layout on matplotlib axes whose unit is the picture's."""
    from matplotlib.axes import Axes
    from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon
    from matplotlib.path import Path

    assert isinstance(axes, Axes)
    points = 0.72  # one unit of the picture is 1/100 inch, a point is 1/72
    for curve in layout.curves:
        bend = (curve.x2 - curve.x1) / 2
        corners = [
            (curve.x1, curve.y1),
            (curve.x1 + bend, curve.y1),
            (curve.x2 - bend, curve.y2),
            (curve.x2, curve.y2),
        ]
        path = Path(corners, [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
        width = curve.width * points
        dash = (0, tuple(d / curve.width for d in curve.dash)) if curve.dash else "solid"
        axes.add_patch(
            PathPatch(path, fill=False, edgecolor=curve.colour, linewidth=width, linestyle=dash, alpha=0.85, zorder=1)
        )
        if curve.arrow:
            axes.add_patch(Polygon(_arrow(curve), color=curve.colour, zorder=2))
    for box in layout.boxes:
        axes.add_patch(
            FancyBboxPatch(
                (box.x + 4, box.y - BOX_HEIGHT / 2 + 4),
                BOX_WIDTH - 8,
                BOX_HEIGHT - 8,
                boxstyle="round,pad=4,rounding_size=8",
                facecolor="#dcdcdc" if box.target else "#f5f5f5",
                edgecolor=INK,
                linewidth=(2 if box.target else 1) * points,
                zorder=3,
            )
        )
        axes.text(
            box.x + BOX_WIDTH / 2,
            box.y,
            "\n".join(box.lines),
            ha="center",
            va="center",
            fontsize=12 * points,
            color=INK,
            weight="bold" if box.target else "normal",
            zorder=4,
        )
    for badge in layout.badges:
        axes.add_patch(
            Circle((badge.x, badge.y), 9.5, facecolor="white", edgecolor=badge.colour, linewidth=2 * points, zorder=5)
        )
        axes.text(badge.x, badge.y, badge.text, ha="center", va="center", fontsize=11 * points, color=INK, zorder=6)
    for label in layout.labels:
        place = "center" if label.middle else "left"
        axes.text(label.x, label.y, label.text, ha=place, va="baseline", fontsize=label.size * points, color=INK)
