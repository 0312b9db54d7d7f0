"""Arrays in files are arrays: the same values, whatever is read, written and dropped."""

from __future__ import annotations

import errno
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cogstage import scratch
from cogstage.scratch import FileRows, drop, is_mapped, large_zeros, mapped_zeros


@pytest.fixture(autouse=True)
def everything_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scratch, "SMALL", 0)


@settings(max_examples=40)
@given(st.lists(st.lists(st.integers(0, 19), max_size=12, unique=True), max_size=5), st.integers(0, 2**32 - 1))
def test_rows_of_a_file_are_those_of_an_array(written: list[list[int]], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows, array = FileRows((20, 2, 3), np.float32), np.zeros((20, 2, 3), np.float32)
    for chosen in written:
        at = np.array(chosen, np.int64)
        values = rng.random((len(at), 2, 3)).astype(np.float32)
        rows[at] = array[at] = values
        again = rng.integers(20, size=9)
        assert np.array_equal(rows[again], array[again])
    rows[3:7] = array[3:7] = 1.5
    assert np.array_equal(rows[2:9], array[2:9])
    assert np.array_equal(np.asarray(rows), array)
    assert rows[np.empty(0, np.int64)].shape == (0, 2, 3)
    assert len(rows) == 20


def test_small_rows_and_no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(FileRows((0, 4), np.int32)[:]) == 0
    monkeypatch.setattr(scratch, "SMALL", 1 << 20)
    rows = FileRows((5,), np.int32)
    rows[np.array([1, 3])] = np.array([7, 9])
    assert rows[:].tolist() == [0, 7, 0, 9, 0]
    assert not is_mapped(large_zeros((5,), np.int32))


def test_a_dropped_array_keeps_its_values() -> None:
    one, other = mapped_zeros((300, 40), np.float64), np.ones(5)
    assert is_mapped(one)
    assert not is_mapped(other)
    assert not one.any()
    one[:] = np.arange(12_000).reshape(300, 40)
    drop(one, other)
    assert np.array_equal(one, np.arange(12_000).reshape(300, 40))
    assert other.all()


@pytest.mark.parametrize("problem", ["no room", "no folder"])
def test_memory_takes_the_place_of_a_disk_without_room(problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int, offset: int, size: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    if problem == "no room":
        monkeypatch.setattr(os, "posix_fallocate", full)
    else:
        monkeypatch.delattr(os, "posix_fallocate")
    rows, array = FileRows((6, 2), np.int64), mapped_zeros((6, 2), np.int64)
    rows[np.array([4])] = array[4] = 8
    assert not is_mapped(array)
    assert np.array_equal(rows[:], array)
