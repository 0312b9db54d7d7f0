"""Memory that is taken when it is written to, left to a file while it rests, and given back when it is free."""

from __future__ import annotations

import ctypes
import gc
import math
import mmap
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor

from cogstage.scratch import drop, is_mapped, mapped_zeros

SMALL = 1 << 22  # bytes up to which a tensor is not worth a file
ROWS = 1 << 13  # rows that are copied together


def late_zeros(*shape: int, dtype: torch.dtype | None = None) -> Tensor:
    """Zeros whose pages take memory once they are written to; ``torch.zeros`` writes to all of them."""
    return torch.from_numpy(np.zeros(shape, torch.empty(0, dtype=dtype).numpy().dtype))


def temporary_empty(*shape: int, dtype: torch.dtype) -> Tensor:
    """An uninitialised tensor whose memory returns to the system when it is freed; ``torch.empty`` may fragment it."""
    count = math.prod(shape)
    if not count:
        return torch.empty(shape, dtype=dtype)
    return torch.frombuffer(mmap.mmap(-1, count * dtype.itemsize), dtype=dtype, count=count).view(shape)


def rest(*tensors: Tensor) -> None:
    """Leave the values of large tensors to a file until they are read again; whoever reads them lets them rest again.

    They stay the same tensors. Copy one with :func:`wake` before many small changes.
    """
    for tensor in tensors:
        values = tensor.detach().numpy()
        if values.nbytes > SMALL and not is_mapped(values):
            kept = mapped_zeros(values.shape, values.dtype)
            if is_mapped(kept):
                for at in range(0, len(values), ROWS):
                    kept[at : at + ROWS] = values[at : at + ROWS]
                    drop(kept)
                tensor.data = torch.from_numpy(kept)
    let_go(*tensors)


def let_go(*tensors: Tensor) -> None:
    """Give back the memory of those tensors that rest, after they were read."""
    for tensor in tensors:
        drop(tensor.detach().numpy())


def wake(*tensors: Tensor) -> None:
    """Bring tensors back to memory."""
    for tensor in tensors:
        if is_mapped(tensor.detach().numpy()):
            tensor.data = tensor.detach().clone()


def release() -> None:
    """Give back what is no longer used: objects in cycles, such as optimisers, and what :func:`trim` finds."""
    gc.collect()
    trim()


@contextmanager
def quick_release() -> Iterator[None]:
    """Within it, :func:`release` looks only for objects made within it; those of all libraries are many."""
    if gc.get_freeze_count():  # somebody else's
        yield
        return
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def trim() -> None:
    """Give back memory that is free but kept for later, by the C library (glibc) and by pyarrow."""
    arrow = sys.modules.get("pyarrow")
    if arrow is not None:
        arrow.default_memory_pool().release_unused()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return
