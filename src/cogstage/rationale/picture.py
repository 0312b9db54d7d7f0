"""A prediction drawn: SVG as text (for pages and reports) and PNG (for slides), from one layout."""

from __future__ import annotations

import html
import io
import math
import re

from cogstage.rationale.layout import (
    INK,
    LINE_HEIGHT,
    NARROW,
    WIDE,
    WIDTH,
    Badge,
    Box,
    Curve,
    Label,
    Layout,
    SumBar,
    lay_out,
)
from cogstage.rationale.record import Prediction

FONT = "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif"
NOT_XML = re.compile(r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escape(text: str) -> str:
    """Text for an SVG document; characters that no XML document may hold (controls, lone surrogates) are left out."""
    return html.escape(NOT_XML.sub("", text))


def svg(
    prediction: Prediction, most: int = 15, background: bool = True, whole: bool = True, narrow: bool = False
) -> str:
    """The picture as an SVG document.

    Parameters
    ----------
    most
        How many reasons to draw; the others are summed up.
    background
        White behind it. Without, it takes the text colour of the page around it and follows light and dark.
    whole
        With a heading and the sum that makes the answer; without, where a page shows both.
    narrow
        For a phone, without heading and sum.
    """
    layout = lay_out(prediction, most, whole and not narrow, NARROW if narrow else WIDE)
    width = layout.shape.width
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {layout.top:.0f} {width:.0f}'
        f' {layout.height - layout.top:.0f}" role="img"'
        f' aria-label="{escape(layout.title)}" font-family="{escape(FONT)}"'
        + (f' color="{INK}">' if background else ">"),
        f"<title>{escape(layout.title)}</title>",
    ]
    if background:
        parts.append(f'<rect width="{width:.0f}" height="{layout.height:.0f}" fill="#ffffff"/>')
    parts += [_svg_curve(curve) for curve in layout.curves]
    parts += [_svg_box(box) for box in layout.boxes]
    parts += [_svg_badge(badge) for badge in layout.badges]
    parts += [_svg_bar(bar) for bar in layout.bars]
    parts += [_svg_label(label) for label in layout.labels]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _group(kind: str, reason: int) -> str:
    """What the page's script finds a shape by."""
    return f'<g class="{kind}"' + (f' data-reason="{reason}">' if reason else ">")


def _svg_curve(curve: Curve) -> str:
    bend = (curve.x2 - curve.x1) / 2
    path = (
        f"M{curve.x1:.1f},{curve.y1:.1f} C{curve.x1 + bend:.1f},{curve.y1:.1f} "
        f"{curve.x2 - bend:.1f},{curve.y2:.1f} {curve.x2:.1f},{curve.y2:.1f}"
    )
    dash = f' stroke-dasharray="{",".join(f"{d:g}" for d in curve.dash)}"' if curve.dash else ""
    drawn = f'<path d="{path}" fill="none" stroke="{curve.colour}" stroke-width="{curve.width:.1f}"{dash}/>'
    if curve.reason:  # a wide, invisible course, so that a thin line can be hit by mouse and finger
        drawn += f'<path d="{path}" fill="none" stroke="#000" stroke-opacity="0" stroke-width="14"/>'
    if curve.arrow:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in _arrow(curve))
        drawn += f'<polygon points="{points}" fill="{curve.colour}"/>'
    title = f"<title>{escape(curve.title)}</title>" if curve.title else ""
    return f"{_group('line', curve.reason)}{title}{drawn}</g>"


def _arrow(curve: Curve) -> list[tuple[float, float]]:
    """A triangle on the end of a curve, which arrives level."""
    size = 6.0 + curve.width
    back = -math.copysign(size, curve.x2 - curve.x1)
    return [(curve.x2, curve.y2), (curve.x2 + back, curve.y2 - size / 2), (curve.x2 + back, curve.y2 + size / 2)]


def _svg_box(box: Box) -> str:
    top = box.y - box.height / 2
    weight = ' font-weight="600"' if box.target else ""
    start = box.y + 4.5 - LINE_HEIGHT / 2 * (len(box.lines) - 1)
    lines = "".join(
        f'<text x="{box.x + box.width / 2:.1f}" y="{start + LINE_HEIGHT * number:.1f}" text-anchor="middle"'
        f' font-size="{box.size:.4g}" fill="currentColor"{weight}>{escape(line)}</text>'
        for number, line in enumerate(box.lines)
    )
    return (
        f'<g class="node" data-node="{escape(box.key)}"><title>{escape(box.title)}</title>'
        f'<rect x="{box.x:.1f}" y="{top:.1f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="8"'
        f' fill="#7d8791" fill-opacity="{0.22 if box.target else 0.09}" stroke="currentColor"'
        f' stroke-opacity="{1 if box.target else 0.55}" stroke-width="{2 if box.target else 1}"/>{lines}</g>'
    )


def _svg_badge(badge: Badge) -> str:
    x, y = f"{badge.x:.1f}", f"{badge.y:.1f}"
    fill, ink = (badge.colour, "#ffffff") if badge.filled else ("#ffffff", INK)
    kind = "number" if badge.reason else "legend"
    return (
        f'{_group(kind, badge.reason)}<circle cx="{x}" cy="{y}" r="10" fill="{fill}" stroke="{badge.colour}"'
        f' stroke-width="2"/><text x="{x}" y="{badge.y + 4:.1f}" text-anchor="middle" font-size="11"'
        f' font-weight="600" fill="{ink}">{badge.text}</text></g>'
    )


def _svg_bar(bar: SumBar) -> str:
    fill = "currentColor" if bar.colour == INK else bar.colour
    return (
        f'{_group("bar", bar.reason)}<title>{escape(bar.title)}</title><rect x="{bar.x:.1f}" y="{bar.y:.1f}"'
        f' width="{bar.width:.1f}" height="{bar.height:.1f}" rx="2" fill="{fill}"/></g>'
    )


def _svg_label(label: Label) -> str:
    anchor = f' text-anchor="{label.anchor}"' if label.anchor != "start" else ""
    weight = ' font-weight="600"' if label.bold else ""
    reason = f' data-reason="{label.reason}"' if label.reason else ""
    return (
        f'<text x="{label.x:.1f}" y="{label.y:.1f}" font-size="{label.size:g}" fill="currentColor"{anchor}{weight}'
        f"{reason}>{escape(label.text)}</text>"
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
    from matplotlib.patches import Circle, FancyBboxPatch, PathPatch, Polygon, Rectangle
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
        axes.add_patch(PathPatch(path, fill=False, edgecolor=curve.colour, linewidth=width, linestyle=dash, zorder=1))
        if curve.arrow:
            axes.add_patch(Polygon(_arrow(curve), color=curve.colour, zorder=2))
    for box in layout.boxes:
        axes.add_patch(
            FancyBboxPatch(
                (box.x + 4, box.y - box.height / 2 + 4),
                box.width - 8,
                box.height - 8,
                boxstyle="round,pad=4,rounding_size=8",
                facecolor="#dfe3e6" if box.target else "#f4f6f7",
                edgecolor=INK,
                linewidth=(2 if box.target else 1) * points,
                zorder=3,
            )
        )
        weight = "bold" if box.target else "normal"
        centre = box.x + box.width / 2
        words = _clean("\n".join(box.lines))
        axes.text(
            centre,
            box.y,
            words,
            ha="center",
            va="center",
            fontsize=(box.size - 1) * points,
            color=INK,
            weight=weight,
            zorder=4,
        )
    for badge in layout.badges:
        fill, ink = (badge.colour, "white") if badge.filled else ("white", INK)
        axes.add_patch(
            Circle((badge.x, badge.y), 10, facecolor=fill, edgecolor=badge.colour, linewidth=2 * points, zorder=5)
        )
        axes.text(badge.x, badge.y, badge.text, ha="center", va="center", fontsize=11 * points, color=ink, zorder=6)
    for bar in layout.bars:
        axes.add_patch(Rectangle((bar.x, bar.y), bar.width, bar.height, color=bar.colour, zorder=3))
    for label in layout.labels:
        side = {"start": "left", "middle": "center", "end": "right"}[label.anchor]
        weight = "bold" if label.bold else "normal"
        size = label.size * points
        axes.text(label.x, label.y, _clean(label.text), ha=side, va="baseline", fontsize=size, color=INK, weight=weight)


def _clean(text: str) -> str:
    """Text for matplotlib, which reads dollar signs as mathematics."""
    return NOT_XML.sub("", text).replace("$", r"\$")
