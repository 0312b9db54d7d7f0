"""The inner loops of counting, compiled: sort rows, find units, count the pairs of a range of source terms.

A row is (group, unit, term): ``term`` occurs in ``unit``, which belongs to ``group`` (the patient, or the document
itself if there are no patients). Units are (group, unit) pairs. All kernels release the interpreter lock; the
caller spreads ranges over threads.
"""

from __future__ import annotations

import numpy as np
from numba import njit

GAPS = np.array([1750, 701, 301, 132, 57, 23, 10, 4, 1], dtype=np.int64)  # shell sort, Ciura's gaps
BIT = np.uint64(1)
LOW6 = np.int64(63)
DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
PLACE = np.zeros(64, dtype=np.int64)  # position of the lowest set bit, by de Bruijn multiplication
for _bit in range(64):
    PLACE[((int(DE_BRUIJN) << _bit) & (2**64 - 1)) >> 58] = _bit


@njit(cache=True, nogil=True)
def _sort_slice(group, unit, term, begin, end):  # type: ignore[no-untyped-def]
    size = end - begin
    for gap in GAPS:
        if gap >= size and gap != 1:
            continue
        for i in range(begin + gap, end):
            g, u, t = group[i], unit[i], term[i]
            j = i
            while j >= begin + gap:
                k = j - gap
                if group[k] < g or (group[k] == g and (unit[k] < u or (unit[k] == u and term[k] <= t))):
                    break
                group[j], unit[j], term[j] = group[k], unit[k], term[k]
                j = k
            group[j], unit[j], term[j] = g, u, t


@njit(cache=True, nogil=True)
def _sort_terms(term, begin, end):  # type: ignore[no-untyped-def]
    for i in range(begin + 1, end):
        t = term[i]
        j = i
        while j > begin and term[j - 1] > t:
            term[j] = term[j - 1]
            j -= 1
        term[j] = t


@njit(cache=True, nogil=True)
def into_buckets(group, unit, term):  # type: ignore[no-untyped-def]
    """Rows moved into buckets by the high bits of their group, and where each bucket starts.

    Groups are hashes or running numbers, so the buckets are even and mostly hold one group each.
    """
    n = len(group)
    low, high = group[0], group[0]
    for i in range(n):
        low = min(low, group[i])
        high = max(high, group[i])
    bits = 1
    while bits < 20 and (n >> bits) > 8:
        bits += 1
    span = high - low
    shift = np.uint64(0)
    while (span >> shift) >= np.uint64(1 << bits):
        shift += np.uint64(1)
    start = np.zeros((1 << bits) + 1, np.int64)
    for i in range(n):
        start[np.int64((group[i] - low) >> shift) + 1] += 1
    for b in range(1 << bits):
        start[b + 1] += start[b]
    to = start[:-1].copy()
    new_group, new_unit, new_term = np.empty_like(group), np.empty_like(unit), np.empty_like(term)
    for i in range(n):
        b = np.int64((group[i] - low) >> shift)
        position = to[b]
        to[b] += 1
        new_group[position], new_unit[position], new_term[position] = group[i], unit[i], term[i]
    return new_group, new_unit, new_term, start


@njit(cache=True, nogil=True)
def sort_buckets(group, unit, term, start, first, last):  # type: ignore[no-untyped-def]
    """Sort the buckets first ... last by (group, unit, term), in place."""
    for b in range(first, last):
        begin, end = start[b], start[b + 1]
        if end - begin < 2:
            continue
        g, u = group[begin], unit[begin]
        one = end - begin < 64
        for i in range(begin + 1, end):
            if group[i] != g or unit[i] != u:
                one = False
                break
        if one:
            _sort_terms(term, begin, end)
        else:
            _sort_slice(group, unit, term, begin, end)


@njit(cache=True, nogil=True)
def drop_doubles(group, unit, term):  # type: ignore[no-untyped-def]
    """Move the distinct rows of sorted ones to the front; how many they are."""
    n = len(group)
    kept = 0
    for i in range(n):
        if kept == 0 or term[i] != term[kept - 1] or unit[i] != unit[kept - 1] or group[i] != group[kept - 1]:
            group[kept], unit[kept], term[kept] = group[i], unit[i], term[i]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def drop_later_days(group, unit, packed):  # type: ignore[no-untyped-def]
    """As :func:`drop_doubles` for ``packed`` = term << 32 | day: of each (group, unit, term) the first day stays."""
    n = len(group)
    kept = 0
    for i in range(n):
        if (
            kept == 0
            or (packed[i] >> 32) != (packed[kept - 1] >> 32)
            or unit[i] != unit[kept - 1]
            or group[i] != group[kept - 1]
        ):
            group[kept], unit[kept], packed[kept] = group[i], unit[i], packed[i]
            kept += 1
    return kept


@njit(cache=True, nogil=True)
def first_days(group, term, day, n_terms):  # type: ignore[no-untyped-def]
    """For each row the first day on which its group has its term; rows of a group stand together."""
    n = len(group)
    first = np.empty(n, np.int32)
    known = np.empty(n_terms, np.int32)
    seen = np.full(n_terms, -1, np.int64)
    i = 0
    while i < n:
        j = i
        while j < n and group[j] == group[i]:
            t = term[j]
            if seen[t] != i or day[j] < known[t]:
                seen[t], known[t] = i, day[j]
            j += 1
        for k in range(i, j):
            first[k] = known[term[k]]
        i = j
    return first


@njit(cache=True, nogil=True)
def count_nodes(group, unit, term, n_terms):  # type: ignore[no-untyped-def]
    """In how many units, and in how many groups, each term occurs; rows sorted and distinct."""
    units = np.zeros(n_terms, np.int64)
    groups = np.zeros(n_terms, np.int64)
    last = np.full(n_terms, -1, np.int64)
    number = np.int64(0)
    for i in range(len(group)):
        if i > 0 and group[i] != group[i - 1]:
            number += 1
        t = term[i]
        units[t] += 1
        if last[t] != number:
            last[t] = number
            groups[t] += 1
    return units, groups


@njit(cache=True, nogil=True)
def by_term(group, unit, term, n_terms):  # type: ignore[no-untyped-def]
    """The rows of each term: where the terms behind it in its unit begin and end, and its group's number.

    ``term`` is rewritten in place so that each unit's terms ascend (rows sorted, distinct).
    """
    n = len(group)
    pointer = np.zeros(n_terms + 1, np.int64)
    for i in range(n):
        pointer[term[i] + 1] += 1
    for t in range(n_terms):
        pointer[t + 1] += pointer[t]
    to = pointer[:-1].copy()
    begin = np.empty(n, np.int32)
    end = np.empty(n, np.int32)
    owner = np.empty(n, np.int32)
    number = np.int32(0)
    i = 0
    while i < n:
        j = i + 1
        while j < n and group[j] == group[i] and unit[j] == unit[i]:
            j += 1
        if i > 0 and group[i] != group[i - 1]:
            number += np.int32(1)
        for k in range(i, j):
            position = to[term[k]]
            to[term[k]] += 1
            begin[position], end[position], owner[position] = k + 1, j, number
        i = j
    return pointer, begin, end, owner


@njit(cache=True, nogil=True)
def most_targets(pointer, begin, end, n_terms):  # type: ignore[no-untyped-def]
    """For each source term an upper bound of how many different targets it has."""
    most = np.empty(n_terms, np.int64)
    for t in range(n_terms):
        total = np.int64(0)
        for e in range(pointer[t], pointer[t + 1]):
            total += end[e] - begin[e]
        most[t] = min(total, n_terms - 1 - t)
    return most


@njit(cache=True, nogil=True)
def _emit(source, counts, bits, blocks, targets, values, position):  # type: ignore[no-untyped-def]
    """Write the touched targets in ascending order and wipe the accumulator; bits and flags of blocks find them."""
    for block in range(source >> 12, len(blocks)):
        if blocks[block] == 0:
            continue
        blocks[block] = 0
        for w in range(block << 6, min((block + 1) << 6, len(bits))):
            word = bits[w]
            if word == 0:
                continue
            bits[w] = np.uint64(0)
            while word:
                one = word & (~word + BIT)
                word ^= one
                j = (w << 6) + PLACE[np.int64((one * DE_BRUIJN) >> np.uint64(58))]
                targets[position] = j
                values[position] = counts[j]
                counts[j] = 0
                position += 1
    return position


@njit(cache=True, nogil=True)
def pairs_by_unit(first, last, step, base, term, pointer, begin, end, slot, targets, values, n_targets):  # type: ignore[no-untyped-def]
    """Targets and unit counts of the sources first, first+step, ... < last, each written from its slot on."""
    n_terms = len(pointer) - 1
    counts = np.zeros(n_terms, np.int32)
    bits = np.zeros((n_terms >> 6) + 1, np.uint64)
    blocks = np.zeros((len(bits) >> 6) + 1, np.uint8)
    for source in range(first, last, step):
        for e in range(pointer[source], pointer[source + 1]):
            for q in range(begin[e], end[e]):
                j = np.int64(term[q])
                bits[j >> 6] |= BIT << np.uint64(j & LOW6)
                blocks[j >> 12] = 1
                counts[j] += np.int32(1)
        position = slot[source - base]
        n_targets[source - base] = _emit(source, counts, bits, blocks, targets, values, position) - position


@njit(cache=True, nogil=True)
def pairs_by_group(  # type: ignore[no-untyped-def]
    first, last, step, base, term, pointer, begin, end, owner, slot, targets, values, groups, n_targets
):
    """As :func:`pairs_by_unit`, and in ``groups`` how many different groups each pair was seen in."""
    n_terms = len(pointer) - 1
    counts = np.zeros(n_terms, np.int32)
    of_groups = np.zeros(n_terms, np.int32)
    latest = np.full(n_terms, -1, np.int32)
    bits = np.zeros((n_terms >> 6) + 1, np.uint64)
    blocks = np.zeros((len(bits) >> 6) + 1, np.uint8)
    for source in range(first, last, step):
        for e in range(pointer[source], pointer[source + 1]):
            g = owner[e]
            for q in range(begin[e], end[e]):
                j = np.int64(term[q])
                bits[j >> 6] |= BIT << np.uint64(j & LOW6)
                blocks[j >> 12] = 1
                if counts[j] == 0:
                    of_groups[j] = 0
                    latest[j] = np.int32(-1)
                counts[j] += np.int32(1)
                if latest[j] != g:
                    latest[j] = g
                    of_groups[j] += np.int32(1)
        position = slot[source - base]
        stop = _emit(source, counts, bits, blocks, targets, values, position)
        n_targets[source - base] = stop - position
        for k in range(position, stop):
            groups[k] = of_groups[targets[k]]


@njit(cache=True, nogil=True)
def pairs_in_order(  # type: ignore[no-untyped-def]
    first, last, step, base, term, pointer, begin, end, owner, day, lag, slot, targets, values, groups, order, n_targets
):
    """As :func:`pairs_by_group`, and in ``order`` (3 columns) in how many groups the source came first, the target
    came first, or both on one day; groups in which more than ``lag`` days lie between count nowhere.

    ``day`` is the first day of each row's term in its group.
    """
    n_terms = len(pointer) - 1
    counts = np.zeros(n_terms, np.int32)
    of_groups = np.zeros(n_terms, np.int32)
    latest = np.full(n_terms, -1, np.int32)
    cells = np.zeros((n_terms, 3), np.int32)
    bits = np.zeros((n_terms >> 6) + 1, np.uint64)
    blocks = np.zeros((len(bits) >> 6) + 1, np.uint8)
    for source in range(first, last, step):
        for e in range(pointer[source], pointer[source + 1]):
            g = owner[e]
            own = day[begin[e] - 1]
            for q in range(begin[e], end[e]):
                j = np.int64(term[q])
                bits[j >> 6] |= BIT << np.uint64(j & LOW6)
                blocks[j >> 12] = 1
                if counts[j] == 0:
                    of_groups[j] = 0
                    latest[j] = np.int32(-1)
                    cells[j, 0] = 0
                    cells[j, 1] = 0
                    cells[j, 2] = 0
                counts[j] += np.int32(1)
                if latest[j] != g:
                    latest[j] = g
                    of_groups[j] += np.int32(1)
                    later = np.int64(day[q]) - np.int64(own)
                    if -lag <= later <= lag:
                        cells[j, 0 if later > 0 else 1 if later < 0 else 2] += np.int32(1)
        position = slot[source - base]
        stop = _emit(source, counts, bits, blocks, targets, values, position)
        n_targets[source - base] = stop - position
        for k in range(position, stop):
            groups[k] = of_groups[targets[k]]
            for c in range(3):
                order[k, c] = cells[targets[k], c]


@njit(cache=True, nogil=True)
def close_ranks(slot, n_targets, array):  # type: ignore[no-untyped-def]
    """Move the filled part of every slot to the front of the array, one behind the other."""
    position = 0
    for s in range(len(n_targets)):
        if slot[s] == position:
            position += n_targets[s]
            continue
        for k in range(slot[s], slot[s] + n_targets[s]):
            array[position] = array[k]
            position += 1
