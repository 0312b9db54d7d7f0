"""Memory that is taken when it is written to, and given back when it is free."""

from __future__ import annotations

import ctypes
import gc

import numpy as np
import torch
from torch import Tensor


def late_zeros(*shape: int, dtype: torch.dtype | None = None) -> Tensor:
    """Zeros whose pages take memory once they are written to; ``torch.zeros`` writes to all of them."""
    return torch.from_numpy(np.zeros(shape, torch.empty(0, dtype=dtype).numpy().dtype))


def release() -> None:
    """Give back what is no longer used: objects in cycles, such as optimisers, and what the C library keeps (glibc)."""
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError):
        return
