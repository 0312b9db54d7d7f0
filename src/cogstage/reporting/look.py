"""The look that pages and reports share: one style sheet and one icon."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from markupsafe import Markup

STATIC = Path(__file__).with_name("static")


@cache
def style_sheet() -> str:
    """The sheet that pages link to and reports carry inside: type, spacing, colours in light and dark, components."""
    return (STATIC / "base.css").read_text(encoding="utf-8")


@cache
def icon() -> Markup:
    """The icon as SVG, to occur in a line of text."""
    drawn = (STATIC / "icon.svg").read_text(encoding="utf-8").strip()
    drawn = drawn.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1)  # HTML knows what <svg> is
    return Markup(drawn.replace("<svg ", '<svg width="26" height="26" aria-hidden="true" ', 1))
