"""Compiled loops of the encoders: random numbers, alias tables, walks, and the LINE and REPEL updates.

Each loop carries its own random state, so that a seed gives the same result whatever thread it runs on.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_TO_UNIT = 1.0 / (1 << 53)


@njit(cache=True, nogil=True, inline="always")
def step(state: np.uint64) -> np.uint64:
    """The next state of an xorshift64 generator (never 0)."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    return state


@njit(cache=True, nogil=True, inline="always")
def unit(state: np.uint64) -> float:
    """A number in [0, 1) from a state."""
    return float((state * np.uint64(0x2545F4914F6CDD1D)) >> np.uint64(11)) * _TO_UNIT


@njit(cache=True, nogil=True)
def start_state(seed: int) -> Any:
    """A well-mixed first state for any seed."""
    z = np.uint64(seed) + _GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return z if z != np.uint64(0) else _GOLDEN


@njit(cache=True, nogil=True)
def alias_rows(indptr: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Alias tables of each row of a CSR matrix: probability to stay, and the position in the row to go to instead."""
    stay = np.ones(len(weights), np.float32)
    other = np.zeros(len(weights), np.int32)
    widest = 0
    for row in range(len(indptr) - 1):
        widest = max(widest, indptr[row + 1] - indptr[row])
    scaled = np.empty(widest, np.float64)
    small = np.empty(widest, np.int32)
    large = np.empty(widest, np.int32)
    for row in range(len(indptr) - 1):
        begin, end = indptr[row], indptr[row + 1]
        size = end - begin
        total = 0.0
        for k in range(begin, end):
            total += weights[k]
        n_small = n_large = 0
        for k in range(size):
            scaled[k] = weights[begin + k] * size / total
            other[begin + k] = k
            if scaled[k] < 1.0:
                small[n_small] = k
                n_small += 1
            else:
                large[n_large] = k
                n_large += 1
        while n_small > 0 and n_large > 0:
            n_small -= 1
            low, high = small[n_small], large[n_large - 1]
            stay[begin + low] = scaled[low]
            other[begin + low] = high
            scaled[high] -= 1.0 - scaled[low]
            if scaled[high] < 1.0:
                n_large -= 1
                small[n_small] = high
                n_small += 1
    return stay, other


@njit(cache=True, nogil=True)
def draw(stay: np.ndarray, other: np.ndarray, begin: int, size: int, state: np.uint64) -> tuple[int, np.uint64]:
    """One draw from the alias table of a row: a position in the row, and the new state."""
    state = step(state)
    place = unit(state) * size
    position = int(place)
    if place - position < stay[begin + position]:
        return position, state
    return int(other[begin + position]), state


@njit(cache=True, nogil=True)
def walk(
    indptr: np.ndarray,
    indices: np.ndarray,
    stay: np.ndarray,
    other: np.ndarray,
    starts: np.ndarray,
    length: int,
    seed: int,
) -> np.ndarray:
    """Weighted random walks, (len(starts), length) int32; a walk that cannot go on is filled with -1."""
    walks = np.full((len(starts), length), -1, np.int32)
    state = start_state(seed)
    for row in range(len(starts)):
        node = starts[row]
        walks[row, 0] = node
        for place in range(1, length):
            begin, size = indptr[node], indptr[node + 1] - indptr[node]
            if size == 0:
                break
            position, state = draw(stay, other, begin, size, state)
            node = indices[begin + position]
            walks[row, place] = node
    return walks


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _pull(vector: np.ndarray, context: np.ndarray, change: np.ndarray, label: float, rate: float) -> None:
    """One logistic step on (vector, context): the context moves now, the vector's change is gathered."""
    dot = np.float32(0.0)
    for k in range(len(vector)):
        dot += vector[k] * context[k]
    step_size = np.float32((label - 1.0 / (1.0 + math.exp(-dot))) * rate)
    for k in range(len(vector)):
        change[k] += step_size * context[k]
        context[k] += step_size * vector[k]


@njit(cache=True, nogil=True, fastmath=True)
def line_steps(
    vectors: np.ndarray,
    contexts: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    edge_stay: np.ndarray,
    edge_other: np.ndarray,
    noise_stay: np.ndarray,
    noise_other: np.ndarray,
    negatives: int,
    steps: int,
    rate_from: float,
    rate_to: float,
    seed: int,
) -> None:
    """LINE, second order: ``steps`` drawn edges, each with its end and ``negatives`` noise terms.

    Several threads may run this on the same vectors; they do not wait for each other (a lost update is rare and small).
    """
    state = start_state(seed)
    change = np.empty(vectors.shape[1], np.float32)
    for done in range(steps):
        rate = rate_from + (rate_to - rate_from) * done / steps
        edge, state = draw(edge_stay, edge_other, 0, len(source), state)
        state = step(state)
        one, other = source[edge], target[edge]
        if state & np.uint64(1 << 40):  # an undirected edge stands for both directions
            one, other = other, one
        change[:] = 0.0
        _pull(vectors[one], contexts[other], change, 1.0, rate)
        for _ in range(negatives):
            noise, state = draw(noise_stay, noise_other, 0, len(noise_stay), state)
            if noise != other:
                _pull(vectors[one], contexts[noise], change, 0.0, rate)
        vectors[one] += change


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _distance(head: np.ndarray, relation: np.ndarray, tail: np.ndarray) -> Any:
    total = np.float32(0.0)
    for k in range(len(head)):
        gap = head[k] + relation[k] - tail[k]
        total += gap * gap
    return total


@njit(cache=True, nogil=True, fastmath=True, inline="always")
def _translate(head: np.ndarray, relation: np.ndarray, tail: np.ndarray, rate: float) -> None:
    """Move down (rate > 0) or up (rate < 0) the gradient of ||head + relation - tail||²."""
    size = np.float32(2.0 * rate)
    for k in range(len(head)):
        move = size * (head[k] + relation[k] - tail[k])
        head[k] -= move
        relation[k] -= move
        tail[k] += move


@njit(cache=True, nogil=True, fastmath=True)
def fact_steps(
    vectors: np.ndarray,
    relations: np.ndarray,
    head: np.ndarray,
    relation: np.ndarray,
    tail: np.ndarray,
    corrupt_heads: np.ndarray,
    corrupt_tails: np.ndarray,
    margin: float,
    steps: int,
    rate: float,
    seed: int,
) -> float:
    """``steps`` drawn facts against one corrupted fact each; the mean hinge loss.

    ``corrupt_heads[r]`` and ``corrupt_tails[r]`` hold the terms that may take a place in relation r, as rows of equal
    length (padded by repetition).
    """
    state = start_state(seed)
    loss = 0.0
    for _ in range(steps):
        state = step(state)
        fact = int(unit(state) * len(head))
        h, r, t = head[fact], relation[fact], tail[fact]
        state = step(state)
        other_h, other_t = h, t
        place = unit(state)
        state = step(state)
        if place < 0.5:
            other_h = corrupt_heads[r, int(unit(state) * corrupt_heads.shape[1])]
        else:
            other_t = corrupt_tails[r, int(unit(state) * corrupt_tails.shape[1])]
        hinge = (
            margin
            + _distance(vectors[h], relations[r], vectors[t])
            - _distance(vectors[other_h], relations[r], vectors[other_t])
        )
        if hinge > 0.0 and (other_h != h or other_t != t):
            loss += hinge
            _translate(vectors[h], relations[r], vectors[t], rate)
            _translate(vectors[other_h], relations[r], vectors[other_t], -rate)
    return loss / max(steps, 1)
