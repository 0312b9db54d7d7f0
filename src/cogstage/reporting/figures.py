"""How a number is written: one rule for every table, with a dash for what is undefined."""

from __future__ import annotations

import math
from typing import Any

UNDEFINED = "–"


def figure_text(value: float | None, digits: int = 3) -> str:
    """A figure with a fixed number of digits; a dash for None and NaN."""
    return UNDEFINED if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def interval_text(value: float | None, low: float, high: float, digits: int = 3, interval_digits: int = 2) -> str:
    """A figure with its interval in brackets, which is left out where it is undefined."""
    if value is None or not math.isfinite(value):
        return UNDEFINED
    if not math.isfinite(low) or not math.isfinite(high):
        return figure_text(value, digits)
    return f"{value:.{digits}f} [{low:.{interval_digits}f}, {high:.{interval_digits}f}]"


def p_text(p: float) -> str:
    """A p value as papers print it."""
    return "< 0.001" if p < 0.001 else figure_text(p)


def json_ready(value: Any) -> Any:
    """The same with null for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {key: json_ready(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [json_ready(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
