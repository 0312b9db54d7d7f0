"""Flags in place of parameters: the library names parameters in backticks, a user of the command line types flags."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import typer.main

PARAMETER = re.compile(r"`(\w+)`")


def with_flags(message: str) -> str:
    """A message of the library with each parameter, such as `min_count`, as the flag that sets it, --min-count."""
    return PARAMETER.sub(lambda match: flags().get(match[1], match[0]), message) if "`" in message else message


@cache
def flags() -> dict[str, str]:
    """The flag of each parameter over all commands; arguments have none."""
    from cogstage.cli.main import app

    return _flags_of(typer.main.get_command(app))


def _flags_of(command: Any) -> dict[str, str]:
    own = {option.name: max(option.opts, key=len) for option in command.params if option.param_type_name == "option"}
    for each in getattr(command, "commands", {}).values():
        own |= _flags_of(each)
    return own
