"""Counting over rows, and over distinct pairs with as many rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.counting import rows
from benchmarks.growth.curve import Curve, best_of

TERMS, ROWS_A_UNIT = 50_000, 20


def over_rows(n_rows: int) -> dict[str, Any]:
    """Units of about twenty terms, more and more of them."""
    return _count(n_rows, n_rows // ROWS_A_UNIT)


def over_pairs(rows_a_unit: int, n_rows: int) -> dict[str, Any]:
    """As many rows in fewer, larger units: more pairs. The size is the number of distinct pairs that come out."""
    return _count(n_rows, n_rows // rows_a_unit, by_pairs=True)


def _count(n_rows: int, n_units: int, by_pairs: bool = False) -> dict[str, Any]:
    from cogstage.graph.counting import count_pairs

    count_pairs(np.array([0, 0], np.int32), np.array([0, 1], np.int32), 2)
    unit, term = rows(n_rows, TERMS, n_units)
    found = best_of(lambda: count_pairs(unit, term, TERMS), 3)
    return {**found, **({"x": int(count_pairs(unit, term, TERMS).nnz)} if by_pairs else {})}


CURVES = (
    Curve(
        "Counting over rows",
        "rows (unit, term)",
        "benchmarks.growth.counting:over_rows",
        "n_rows",
        (125_000, 250_000, 500_000, 1_000_000, 2_000_000),
        (100_000, 200_000),
        1.0,
        "units of a given size hold a given number of pairs",
    ),
    Curve(
        "Counting over distinct pairs",
        "distinct pairs",
        "benchmarks.growth.counting:over_pairs",
        "rows_a_unit",
        (5, 10, 20, 40, 80),
        (),
        1.0,
        "every pair is added and written once",
        {"n_rows": 500_000},
    ),
)
