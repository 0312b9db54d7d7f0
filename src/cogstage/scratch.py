"""Large arrays in files without a name, so that memory holds only the parts in use.

The files lie in the folder that the environment variable ``TMPDIR`` names, else in ``/var/tmp``, because ``/tmp`` often
is memory itself. Arrays stay in memory where they are small, where the disk has no space, or off Linux.
"""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, Any
from weakref import WeakValueDictionary

import numpy as np

SMALL = 1 << 25  # bytes up to which rows stay in memory
_maps: WeakValueDictionary[int, mmap.mmap] = WeakValueDictionary()  # by their address


def _file(size: int) -> IO[bytes] | None:
    """A file of ``size`` zeros, with its space reserved on the disk; None if there is none."""
    folder = os.environ.get("TMPDIR") or "/var/tmp"
    try:
        file = tempfile.TemporaryFile(dir=folder if os.path.isdir(folder) else None)  # noqa: SIM115
        os.posix_fallocate(file.fileno(), 0, size)
    except (OSError, AttributeError):
        return None
    return file


class FileRows:
    """A table (n, ...) whose rows are read from a file and written to it; memory holds the rows that were asked for."""

    def __init__(self, shape: tuple[int, ...], dtype: Any) -> None:
        self.shape, self.dtype = shape, np.dtype(dtype)
        self._row = int(np.prod(shape[1:], dtype=np.int64)) * self.dtype.itemsize  # bytes
        self._file = _file(shape[0] * self._row) if shape[0] * self._row > SMALL else None
        self._held = np.zeros(shape, dtype) if self._file is None else None

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self[:].astype(dtype or self.dtype, copy=bool(copy))

    def __getitem__(self, rows: np.ndarray | slice) -> np.ndarray:
        """Some rows: row numbers (n,), quickest where they follow each other, or a slice."""
        if self._held is not None:
            return self._held[rows]
        runs = list(self._runs(rows))
        found = np.empty((sum(length for _, length in runs), *self.shape[1:]), self.dtype)
        self._move(os.preadv, runs, found)
        return found

    def __setitem__(self, rows: np.ndarray | slice, values: Any) -> None:
        if self._held is not None:
            self._held[rows] = values
            return
        runs = list(self._runs(rows))
        shape = (sum(length for _, length in runs), *self.shape[1:])
        self._move(os.pwritev, runs, np.ascontiguousarray(np.broadcast_to(values, shape), self.dtype))

    def _runs(self, rows: np.ndarray | slice) -> Iterator[tuple[int, int]]:
        """Rows that follow each other: the first, and how many."""
        if isinstance(rows, slice):
            begin, end, _ = rows.indices(len(self))
            yield begin, max(end - begin, 0)
        elif len(rows):
            ends = np.append(np.flatnonzero(np.diff(rows) != 1) + 1, len(rows))
            begins = np.append(0, ends[:-1])
            yield from zip(rows[begins].tolist(), (ends - begins).tolist(), strict=True)

    def _move(self, call: Any, runs: Iterable[tuple[int, int]], values: np.ndarray) -> None:
        """Read runs of rows into ``values``, or write them from there."""
        assert self._file is not None
        memory, number, at = values.reshape(-1).view(np.uint8).data, self._file.fileno(), 0
        for first, length in runs:
            place, last = first * self._row, at + length * self._row
            while at < last:  # a call moves 2 GB at most
                done = call(number, [memory[at:last]], place)
                if not done:
                    raise OSError(errno.EIO, "a scratch file is shorter than it was made")
                at, place = at + done, place + done


def mapped_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Zeros that are a file mapped into memory; :func:`drop` gives back the memory and keeps the values."""
    size = max(1, int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize)
    file = _file(size)
    if file is None:
        return np.zeros(shape, dtype)
    with file:
        mapped = mmap.mmap(file.fileno(), size)
    array = np.frombuffer(mapped, dtype).reshape(shape)
    _maps[array.ctypes.data] = mapped
    return array


def large_zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """:func:`mapped_zeros` for a large array, ordinary ones for a small one."""
    large = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize > SMALL
    return mapped_zeros(shape, dtype) if large else np.zeros(shape, dtype)


def is_mapped(array: np.ndarray) -> bool:
    """Whether an array is one of :func:`mapped_zeros` from its first value on."""
    return array.ctypes.data in _maps


def drop(*arrays: np.ndarray) -> None:
    """Give back the memory of mapped arrays; their values stay in the file. Nothing happens to other arrays."""
    for array in arrays:
        mapped = _maps.get(array.ctypes.data)
        if mapped is not None:
            mapped.madvise(mmap.MADV_DONTNEED)
