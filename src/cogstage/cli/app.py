"""Command groups whose usage lines read ``MODEL HEAD TAIL``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand


class Command(TyperCommand):
    """A command whose usage line shows its arguments as they are typed."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """``[OPTIONS]`` and the name of each argument."""
        arguments = (param for param in self.get_params(ctx) if param.param_type_name == "argument")
        names = [f"{param.metavar}..." if param.nargs != 1 else str(param.metavar) for param in arguments]
        return ["[OPTIONS]", *names]


class CommandGroup(typer.Typer):
    """A group of such commands."""

    def __init__(self, help: str, **more: Any) -> None:
        super().__init__(help=help, no_args_is_help=True, **more)

    def command(self, name: str | None = None, **more: Any) -> Callable[[Any], Any]:
        """Register a function as a command."""
        return super().command(name, cls=Command, **more)
