"""How a number is written: one rule for every table, with a dash for what is undefined."""

from __future__ import annotations

import math
from typing import Any

from cogstage.statistics import Estimate

UNDEFINED = "–"


def figure_text(value: float | None, digits: int = 3) -> str:
    """A figure with a fixed number of digits; a dash for None and NaN."""
    return UNDEFINED if value is None or not math.isfinite(value) else f"{value:.{digits}f}"


def minus(text: str) -> str:
    """Figures with minus signs in place of hyphens."""
    return text.replace("-", "−")


def estimate_text(estimate: Estimate, digits: int = 2, of: bool = False, n: bool = True) -> str:
    """A figure with interval and denominator: 1.50 [1.20, 1.80], n = 30; with ``of``, 17/30 [12, 22]."""
    if not estimate.defined:
        return f"–, n = {estimate.n}" if n else "–"
    interval = "" if math.isnan(estimate.low) else f" [{estimate.low:.{digits}f}, {estimate.high:.{digits}f}]"
    if of:
        return f"{estimate.value:.{digits}f}/{estimate.n}{interval}"
    return minus(f"{estimate.value:.{digits}f}{interval}{f', n = {estimate.n}' if n else ''}")


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
