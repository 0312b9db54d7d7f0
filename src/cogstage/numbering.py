"""Index arrays that several packages need: numbers within groups, new numbers of what is kept, products of lists."""

from __future__ import annotations

import numpy as np


def within_groups(lengths: np.ndarray) -> np.ndarray:
    """0, 1, ... within each of several groups that lie end to end: lengths 2, 3 give 0, 1, 0, 1, 2. int64."""
    number: np.ndarray = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    return number


def new_numbers(kept: np.ndarray, count: int) -> np.ndarray:
    """For each of ``count`` old numbers its place in ``kept``, or -1 where it is not kept. int32 (count,)."""
    number = np.full(count, -1, np.int32)
    number[kept] = np.arange(len(kept), dtype=np.int32)
    return number


def every_pair(
    starts: np.ndarray, flat: np.ndarray, source: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Each member of the list ``source[i]`` with each member of the list ``target[i]``: i, and the two members.

    List ``n`` is ``flat[starts[n] : starts[n + 1]]``.
    """
    n_source, n_target = np.diff(starts)[source], np.diff(starts)[target]
    total = n_source * n_target
    row = np.repeat(np.arange(len(source)), total)
    within = within_groups(total)
    one = flat[starts[source][row] + within // n_target[row]]
    other = flat[starts[target][row] + within % n_target[row]]
    return row, one, other
