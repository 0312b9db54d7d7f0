"""The largest values of each row, without sorting the rest."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def _strongest(values: Any, position: Any) -> None:
    rows, columns = values.shape
    count = position.shape[1]
    for row in range(rows):
        held = 0
        for column in range(columns):
            value = values[row, column]
            if held == count and not value > values[row, position[row, count - 1]]:
                continue
            at = held if held < count else count - 1
            while at > 0 and value > values[row, position[row, at - 1]]:
                position[row, at] = position[row, at - 1]
                at -= 1
            position[row, at] = column
            if held < count:
                held += 1


def strongest(values: np.ndarray, count: int) -> np.ndarray:
    """Positions of the largest values of each row, largest first, ties by position: (n, C) -> (n, count)."""
    position = np.empty((len(values), min(count, values.shape[1])), np.int64)
    if position.shape[1]:
        _strongest(values, position)
    return position
