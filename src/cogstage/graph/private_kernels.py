"""Compiled loops of private release: each group's pairs, at most a given number; rows as in ``kernels``."""

from __future__ import annotations

import numpy as np
from numba import njit

HIGH = np.uint64(32)  # a pair is source << 32 | target
LOW = np.uint64(0xFFFFFFFF)


@njit(cache=True, nogil=True)
def mix64(value):  # type: ignore[no-untyped-def]
    """A bijective scrambling of 64 bits (splitmix64's finaliser)."""
    value = np.uint64(value)
    value ^= value >> np.uint64(30)
    value *= np.uint64(0xBF58476D1CE4E5B9)
    value ^= value >> np.uint64(27)
    value *= np.uint64(0x94D049BB133111EB)
    value ^= value >> np.uint64(31)
    return value


@njit(cache=True, nogil=True)
def _distinct_pairs(unit, term, begin, end):  # type: ignore[no-untyped-def]
    """The distinct pairs of one group's rows, which share a unit."""
    size = np.int64(0)
    k = begin
    while k < end:
        m = k + 1
        while m < end and unit[m] == unit[k]:
            m += 1
        size += (m - k) * (m - k - 1) // 2
        k = m
    pairs = np.empty(size, np.uint64)
    p = 0
    k = begin
    while k < end:
        m = k + 1
        while m < end and unit[m] == unit[k]:
            m += 1
        for a in range(k, m):
            for b in range(a + 1, m):
                pairs[p] = (np.uint64(term[a]) << HIGH) | np.uint64(term[b])
                p += 1
        k = m
    return np.unique(pairs)


@njit(cache=True, nogil=True)
def _chosen(pairs, key, most, own):  # type: ignore[no-untyped-def]
    """``most`` of a group's pairs, by a hash of its ``own`` key and the keys of both terms."""
    rank = np.empty(len(pairs), np.uint64)
    for a in range(len(pairs)):
        one, other = key[pairs[a] >> HIGH], key[pairs[a] & LOW]
        rank[a] = mix64(mix64(min(one, other) ^ own) ^ max(one, other))
    return pairs[np.argsort(rank)[:most]]


@njit(cache=True, nogil=True)
def bounded_pairs(group, unit, term, key, most, seed, day, lag):  # type: ignore[no-untyped-def]
    """Each group's distinct pairs, at most ``most`` of them, as source << 32 | target, and the order of each.

    Which ones stay is decided by a keyed hash of seed, group and the ``key`` of both terms, which does not change with
    the data of others. The order is 0 source first, 1 target first, 2 one day, 3 not within ``lag`` days or (``day``
    empty) not asked for; ``day`` is the first day of each row's term in its group.
    """
    n = len(group)
    out = np.empty(1024, np.uint64)
    order = np.empty(1024, np.int8)
    first = np.zeros(len(key) if len(day) else 0, np.int64)
    size = 0
    i = 0
    while i < n:
        j = i + 1
        while j < n and group[j] == group[i]:
            j += 1
        pairs = _distinct_pairs(unit, term, i, j)
        if len(pairs) > most:
            pairs = _chosen(pairs, key, most, mix64(group[i] ^ mix64(np.uint64(seed))))
        while size + len(pairs) > len(out):
            bigger = np.empty(2 * len(out), np.uint64)
            bigger[:size] = out[:size]
            out = bigger
            longer = np.empty(len(out), np.int8)
            longer[:size] = order[:size]
            order = longer
        out[size : size + len(pairs)] = pairs
        order[size : size + len(pairs)] = 3
        if len(day):
            for k in range(i, j):
                first[term[k]] = day[k]
            for a in range(len(pairs)):
                later = first[pairs[a] & LOW] - first[pairs[a] >> HIGH]
                if -lag <= later <= lag:
                    order[size + a] = 0 if later > 0 else 1 if later < 0 else 2
        size += len(pairs)
        i = j
    return out[:size], order[:size]
