"""The help of every command: complete, in standard terms, and with an example that the parser accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any

import typer.main
from check_all import check_all
from typer.testing import CliRunner

from cogstage.cli import panels
from cogstage.cli.main import app

ORDER = (
    *(panels.ARGUMENTS, panels.INPUT, panels.COUNT, panels.MODEL),
    *(panels.PRIVACY, panels.RUN, panels.OUTPUT, panels.OTHER),
)
HEADINGS = {value for name, value in vars(panels).items() if name.isupper()}
DIALECT = re.compile(r"\b(street|room|house|tells itself|randomness begins|(one|many|few) \w+ a \w+)\b", re.I)


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield (*path, name), command


EVERY = list(commands(typer.main.get_command(app)))


def test_options_are_described_and_grouped() -> None:
    check_all(check_options_are_described_and_grouped, EVERY)


def check_options_are_described_and_grouped(path: tuple[str, ...], command: Any) -> None:
    for option in command.params:
        if option.name == "help":
            continue
        assert option.help, f"{path}: {option.name} has no help"
        assert option.help[0] == option.help[0].upper() or option.help.split()[0] in str(option.metavar)
        assert not DIALECT.search(option.help), option.help
        assert option.rich_help_panel in HEADINGS, f"{path}: {option.name} is in no panel"
    assert not DIALECT.search(command.help)


def test_the_example_is_accepted() -> None:
    check_all(check_the_example_is_accepted, EVERY)


def check_the_example_is_accepted(path: tuple[str, ...], command: Any) -> None:
    found = re.search(r"Example: cogstage (.+?)(?:\n\n|$)", f"{command.help}\n\n{command.epilog or ''}", re.S)
    assert found, f"{path} has no example"
    words = shlex.split(found.group(1))
    assert tuple(words[: len(path)]) == path
    assert command.make_context(path[-1], words[len(path) :]).params  # raises on an unknown or missing option


def test_values_and_defaults_are_shown() -> None:
    check_all(check_values_and_defaults_are_shown, EVERY)


def check_values_and_defaults_are_shown(path: tuple[str, ...], command: Any) -> None:
    for option in command.params:
        if option.name == "help" or getattr(option, "is_flag", False):
            continue
        choices = getattr(option.type_descriptor.annotation, "__args__", None)
        assert option.metavar or choices, f"{path}: {option.name} does not say what it takes"
        assert not option.metavar or option.metavar != option.name.upper() or option.metavar in NAMED
        if option.param_type_name == "option" and option.default not in (None, "", [], ()) and not option.required:
            assert option.show_default, f"{path}: {option.name} hides its default"


def test_help_has_each_panel_once_and_in_order() -> None:
    check_all(check_panels, ((path,) for path, _ in EVERY))


def check_panels(path: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*path, "--help"], env={"COLUMNS": "110"}).output
    headings = re.findall(r"╭─ (.+?) ─", shown)
    assert headings == [heading for heading in ORDER if heading in headings]
    assert not re.search(r"<(bool|path|str|list)", shown)  # types of Python, not of the user


NAMED = {"FOLDER", "GRAPH", "FILE", "MODEL", "HEAD", "TAIL", "STUDY", "META", "URL", "PORT", "NAME", "VOCABULARY"}
