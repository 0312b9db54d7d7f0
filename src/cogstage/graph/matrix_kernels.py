"""Compiled loops over edges: the symmetric count matrix and its positive PMI values."""

from __future__ import annotations

from numba import njit


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


@njit(cache=True, nogil=True)
def positive_entries(source, target, log_count, log_row, log_context, shift, lower, upper):  # type: ignore[no-untyped-def]
    """Add to ``lower`` and ``upper`` how many positive PMI values each row has on either side of the diagonal."""
    for e in range(len(source)):
        i, j = source[e], target[e]
        if log_count[e] - log_row[i] - log_context[j] - shift > 0:
            upper[i] += 1
        if log_count[e] - log_row[j] - log_context[i] - shift > 0:
            lower[j] += 1


@njit(cache=True, nogil=True)
def fill_positive(  # type: ignore[no-untyped-def]
    source, target, log_count, log_row, log_context, shift, lower, upper, indices, data
):
    """Write the positive PMI values of some edges; ``lower`` and ``upper`` are the next free places, and are moved."""
    for e in range(len(source)):
        i, j = source[e], target[e]
        value = log_count[e] - log_row[i] - log_context[j] - shift
        if value > 0:
            indices[upper[i]], data[upper[i]] = j, value
            upper[i] += 1
        value = log_count[e] - log_row[j] - log_context[i] - shift
        if value > 0:
            indices[lower[j]], data[lower[j]] = i, value
            lower[j] += 1
