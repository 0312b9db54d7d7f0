"""``cogstage.toml``: defaults of options, in a table per command.

The file stands in the working directory, or where ``COGSTAGE_CONFIG`` says. What it sets is shown on stderr.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cogstage.errors import UsageError

FILE, VARIABLE = "cogstage.toml", "COGSTAGE_CONFIG"


def defaults_from_file(command: Any) -> dict[str, Any]:
    """The defaults by command and parameter; none without a file."""
    named = os.environ.get(VARIABLE)
    path = Path(named or FILE)
    if not named and not path.is_file():
        return {}
    return _defaults(path, command, _read(path), "cogstage")


def _read(path: Path) -> dict[str, Any]:
    if sys.version_info < (3, 11):
        raise UsageError(f"{path}: configuration files need Python 3.11 or newer; remove the file")
    import tomllib  # type: ignore[import-not-found]  # unknown to 3.10

    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}") from error
    except ValueError as error:  # not UTF-8, or not TOML
        raise UsageError(f"{path}: {error}") from error
    return values


def _defaults(path: Path, command: Any, table: Mapping[str, Any], words: str) -> dict[str, Any]:
    commands = getattr(command, "commands", None)
    if commands is None:
        flags = {flag: option.name for option in command.params for flag in option.opts if flag.startswith("--")}
        names = {key: flags.get(f"--{key.replace('_', '-')}") for key in table}
        for key, name in names.items():
            if name is None:
                raise UsageError(f"{path}: `{words}` has no option --{key.replace('_', '-')}")
        return {str(names[key]): value for key, value in table.items()}
    for key, value in table.items():
        if key not in commands or not isinstance(value, dict):
            raise UsageError(f"{path}: no command `{words} {key}`; write a table per command, as [graph.build]")
    return {key: _defaults(path, commands[key], value, f"{words} {key}") for key, value in table.items()}


def used_defaults(defaults: Mapping[str, Any], arguments: Sequence[str]) -> str:
    """The defaults of the command that the arguments name, as text; empty if there are none."""
    found: Any = defaults
    for word in (argument for argument in arguments if not argument.startswith("-")):
        if not isinstance(found, dict) or not isinstance(found.get(word), dict):
            break
        found = found[word]
    plain = {name: value for name, value in found.items() if not isinstance(value, dict)}
    return ", ".join(f"`{name}` {value}" for name, value in plain.items())
