"""Command groups whose help has one panel per heading and usage lines such as ``MODEL HEAD TAIL``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from cogstage.cli import panels


class Command(TyperCommand):
    """A command whose help shows arguments as they are typed and options in the order of the panels."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        _hide_types(self.params)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return ``[OPTIONS]`` and the name of each argument."""
        arguments = (param for param in self.get_params(ctx) if param.param_type_name == "argument")
        names = [f"{param.metavar}..." if param.nargs != 1 else str(param.metavar) for param in arguments]
        return ["[OPTIONS]", *names]

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, sorted by panel."""
        return sorted(super().get_params(ctx), key=panels.order)

    def get_help_option(self, ctx: Any) -> Any:
        """Return ``--help``, shown in the last panel."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.rich_help_panel = panels.OTHER  # type: ignore[attr-defined]
            _hide_types([option])
        return option


class Group(TyperGroup):
    """A group that lists its commands in the order of the panels."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, sorted by panel."""
        return sorted(super().list_commands(ctx), key=lambda name: panels.order(self.commands[name]))

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, without the types of flags."""
        found = super().get_params(ctx)
        _hide_types(found)
        return found


class CommandGroup(typer.Typer):
    """A group of such commands."""

    def __init__(self, help: str, **more: Any) -> None:
        super().__init__(cls=Group, help=help, no_args_is_help=True, **more)

    def command(self, name: str | None = None, **more: Any) -> Callable[[Any], Any]:
        """Register a function as a command."""
        return super().command(name, cls=Command, **more)


def _hide_types(params: list[Any]) -> None:
    """Show no type for a flag, which takes no value, nor for an argument, whose name says what it is."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        elif param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None
