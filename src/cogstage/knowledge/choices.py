"""Options that are one of a few names."""

from __future__ import annotations

from enum import Enum
from typing import TypeVar

from cogstage.errors import UsageError

Choice = TypeVar("Choice", bound=Enum)


def one_of(kind: type[Choice], value: Choice | str, parameter: str) -> Choice:
    """The member that ``value`` names; the error names the parameter and what it may be."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(str(member.value) for member in kind)
        raise UsageError(f"unknown {parameter} {value}; there are {known}") from None
