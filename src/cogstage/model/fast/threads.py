"""Running a kernel over parts of its input in several threads, with results that do not depend on how many."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import torch

PARTS = 4  # into which the pairs of a call are divided
MIN_PAIRS = 2048  # below so many pairs threads cost more than they bring


def spread(kernel: Callable[..., None], pairs: int, *arrays: Any) -> None:
    """Run ``kernel(part, *arrays)`` for all parts, in as many threads as torch was given.

    Not numba's own threads: under OpenMP they share torch's pool and change its size.
    """
    threads = torch.get_num_threads()
    if threads == 1 or pairs < MIN_PAIRS:
        for part in range(PARTS):
            kernel(part, *arrays)
    else:
        list(_pool(os.getpid(), min(threads, PARTS)).map(lambda part: kernel(part, *arrays), range(PARTS)))


@lru_cache(maxsize=4)
def _pool(process: int, threads: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(threads, thread_name_prefix="cogstage-kernel")
