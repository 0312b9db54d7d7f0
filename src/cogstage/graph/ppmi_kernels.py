"""The inner loops of PPMI, compiled: one pass over the sorted upper half of the counts serves both halves.

The entries of a row come in the order of its columns: those below the diagonal while earlier rows are read, those
above it when its own row is. ``level`` is log n_ij, ``row`` and ``context`` are subtracted from it.
"""

from __future__ import annotations

from numba import njit


@njit(cache=True, nogil=True)
def add_rows(source, target, level, row, context, shift, lower, upper, total):  # type: ignore[no-untyped-def]
    """Count the positive values of each row on either side of the diagonal, and add them up in ``total``."""
    for e in range(len(source)):
        i, j = source[e], target[e]
        value = level[e] - row[i] - context[j] - shift
        if value > 0:
            upper[i] += 1
            total[i] += value
        value = level[e] - row[j] - context[i] - shift
        if value > 0:
            lower[j] += 1
            total[j] += value


@njit(cache=True, nogil=True)
def add_squares(source, target, level, row, context, shift, squares):  # type: ignore[no-untyped-def]
    """Add the squares of the positive values of each row to ``squares``."""
    for e in range(len(source)):
        i, j = source[e], target[e]
        value = level[e] - row[i] - context[j] - shift
        if value > 0:
            squares[i] += value * value
        value = level[e] - row[j] - context[i] - shift
        if value > 0:
            squares[j] += value * value


@njit(cache=True, nogil=True)
def fill_rows(  # type: ignore[no-untyped-def]
    source, target, level, row, context, shift, scale, first, last, lower, upper, indices, data
):
    """Write the positive values of the rows ``first`` to ``last`` times their row's ``scale``.

    ``lower`` and ``upper`` are free places of these rows, and are moved.
    """
    for e in range(len(source)):
        i, j = source[e], target[e]
        if first <= i < last:
            value = level[e] - row[i] - context[j] - shift
            if value > 0:
                place = upper[i - first]
                indices[place], data[place] = j, value * scale[i]
                upper[i - first] += 1
        if first <= j < last:
            value = level[e] - row[j] - context[i] - shift
            if value > 0:
                place = lower[j - first]
                indices[place], data[place] = i, value * scale[j]
                lower[j - first] += 1


@njit(cache=True, nogil=True)
def add_product(source, target, level, row, context, shift, turned, dense, out):  # type: ignore[no-untyped-def]
    """Add to ``out`` the product of these edges' values, in both halves, with ``dense``; ``turned`` transposes."""
    width = dense.shape[1]
    for e in range(len(source)):
        i, j = source[e], target[e]
        above, below = level[e] - row[i] - context[j] - shift, level[e] - row[j] - context[i] - shift
        above, below = above if above > 0 else 0.0, below if below > 0 else 0.0
        if turned:
            above, below = below, above
        if above > 0 or below > 0:
            for c in range(width):
                one, two = dense[i, c], dense[j, c]
                out[i, c] += above * two
                out[j, c] += below * one


@njit(cache=True, nogil=True)
def symmetric_counts(source, target, count, pointer, indices, data):  # type: ignore[no-untyped-def]
    """Fill a symmetric CSR matrix from its sorted upper half; ``pointer`` has the starts of the rows and is moved."""
    for e in range(len(source)):  # below the diagonal: sources come in ascending order
        place = pointer[target[e]]
        pointer[target[e]] = place + 1
        indices[place], data[place] = source[e], count[e]
    for e in range(len(source)):
        place = pointer[source[e]]
        pointer[source[e]] = place + 1
        indices[place], data[place] = target[e], count[e]
