"""Translate parameter names into flags: errors of the library name parameters, users of the command line type flags."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import typer.main

PARAMETER = re.compile(r"`(\w+)`")


def with_flags(message: str) -> str:
    """The message with each parameter in backticks, such as `min_count`, replaced by its flag, --min-count."""
    return PARAMETER.sub(lambda match: flags().get(match[1], match[0]), message) if "`" in message else message


@cache
def flags() -> dict[str, str]:
    """Map each parameter of any command to its flag; positional arguments have no flag."""
    from cogstage.cli.main import app

    return _flags_of(typer.main.get_command(app))


def _flags_of(command: Any) -> dict[str, str]:
    own = {option.name: max(option.opts, key=len) for option in command.params if option.param_type_name == "option"}
    for each in getattr(command, "commands", {}).values():
        own |= _flags_of(each)
    return own
