"""One test over many pages, commands or names, which reports every failure and not only the first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def check_all(check: Callable[..., None], cases: Iterable[tuple[Any, ...]]) -> None:
    """Call ``check`` with every case; fail with the messages of all that fail, each with its first argument."""
    failures, count = [], 0
    for case in cases:
        count += 1
        try:
            check(*case)
        except Exception as error:
            failures.append(f"{case[0]}: {type(error).__name__}: {error}")
    assert count, "there is nothing to check"
    if failures:
        pytest.fail("\n".join(failures), pytrace=False)
