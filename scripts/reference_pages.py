"""Write docs/reference/cli.md and python.md from the code: python scripts/reference_pages.py"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import typer.main

import cogstage
from cogstage.cli import panels
from cogstage.cli.main import app

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command of the app with its words."""
    for name, command in sorted(group.commands.items(), key=lambda entry: panels.order(entry[1])):
        if hasattr(command, "commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def cli_page() -> str:
    """All commands: what they do, an example, and their options by panel."""
    lines = ["# Command line", "", "Generated from the code by `scripts/reference_pages.py`.", ""]
    for words, command in commands(typer.main.get_command(app)):
        text = f"{inspect.cleandoc(command.help)}\n\n{command.epilog or ''}"
        example = re.search(r"Example: (cogstage .+?)(?:\n\n|$)", text, re.S)
        summary = inspect.cleandoc(command.help).split("\n\n")[0]
        lines += [f"## cogstage {words}", "", _wrapped(" ".join(summary.split())), ""]
        if example:
            lines += ["```bash", " ".join(example.group(1).split()), "```", ""]
        lines += ["| option | value | default | meaning |", "|---|---|---|---|"]
        for option in sorted(command.params, key=panels.order):
            if option.name != "help":
                lines.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in _row(option))} |")
        lines.append("")
    return "\n".join(lines)


def _row(option: Any) -> tuple[str, str, str, str]:
    argument = option.param_type_name == "argument"
    name = option.metavar or option.name.upper()
    flag = getattr(option, "is_flag", False)
    names = name if argument else ", ".join([*option.opts, *option.secondary_opts])
    default = option.default
    if option.required:
        shown = "required"
    elif flag:
        shown = "on" if default is True and option.secondary_opts else ""
    elif isinstance(default, (str, int, float, Path)) and str(default):
        shown = f"`{default}`"
    else:
        shown = ""
    words = getattr(option.type_descriptor.annotation, "__args__", ())
    choices = [word for word in words if isinstance(word, str)] if not option.metavar else []
    value = ", ".join(f"`{word}`" for word in choices) if choices else f"`{name}`"
    return f"`{names}`", "" if flag or argument else value, shown, option.help


def python_page() -> str:
    """Return the page of all public names, with signatures, parameters, results, examples and methods."""
    lines = ["# Python", "", "Generated from the docstrings by `scripts/reference_pages.py`.", ""]
    for name in sorted(cogstage.__all__, key=str.lower):
        thing = getattr(cogstage, name)
        lines += [f"## {name}", ""]
        if inspect.ismodule(thing):
            lines += [*_prose(thing), *_sections(inspect.getdoc(thing) or "")]
            continue
        if not (inspect.isclass(thing) and issubclass(thing, Exception)):
            lines += ["```text", _wrapped(f"cogstage.{name}{_signature(thing)}"), "```", ""]
        lines += [*_prose(thing), *_sections(inspect.getdoc(thing) or "")]
        if inspect.isclass(thing):
            own = [base for base in thing.__mro__ if base.__module__.startswith("cogstage")]
            named = {key: value for base in own for key, value in vars(base).items() if not key.startswith("_")}
            members = [(key, next(vars(base)[key] for base in own if key in vars(base))) for key in named]
            properties = [(key, value) for key, value in members if isinstance(value, (property, cached_property))]
            methods = [(key, getattr(value, "__func__", value)) for key, value in members if _is_method(value)]
            lines += ["**Properties**", ""] if properties else []
            lines += [_wrapped(f"- `{key}`: {_first(value)}") for key, value in properties]
            lines += [""] if properties else []
            for key, value in methods:
                lines += [f"### {name}.{key}", "", "```text", _wrapped(f"{key}{_signature(value)}"), "```", ""]
                lines += [*_prose(value), *_sections(inspect.getdoc(value) or "")]
    return "\n".join(lines).rstrip() + "\n"


def _sections(text: str) -> Iterator[str]:
    """The NumPy sections of a docstring as Markdown: entries as a list, examples as a block."""
    parts = re.split(r"\n\n(\w+)\n-+\n", text)
    for title, body in zip(parts[1::2], parts[2::2], strict=True):
        yield from (f"**{title}**", "")
        if title == "Examples":
            yield from ("```pycon", body.rstrip(), "```", "")
            continue
        for name, meaning in re.findall(r"^(\S.*)\n((?:    .*\n?)+)", body, flags=re.M):
            names = ", ".join(f"`{each}`" for each in name.split(", "))
            yield _wrapped(f"- {names}: {' '.join(meaning.split())}")
        yield ""


def _is_method(value: Any) -> bool:
    return inspect.isfunction(value) or isinstance(value, (classmethod, staticmethod))


def _prose(thing: Any) -> Iterator[str]:
    """Yield the paragraphs of a docstring before its first section."""
    text = re.split(r"\n\n\w+\n-+\n", inspect.getdoc(thing) or "")[0]
    for paragraph in text.split("\n\n"):
        yield from (_wrapped(" ".join(paragraph.split())), "")


def _first(thing: Any) -> str:
    return " ".join((inspect.getdoc(thing) or "").split("\n\n")[0].split())


def _wrapped(text: str) -> str:
    indent = "  " if text.startswith("- ") else ""
    text = re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", text).replace("``", "`")
    return textwrap.fill(text, 100, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def _wrapped(call: str) -> str:
    return textwrap.fill(call, 100, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)


def _signature(thing: Any) -> str:
    try:
        parameters = inspect.signature(thing).parameters.values()
    except ValueError:
        return "(...)"
    public = [p for p in parameters if p.name not in ("self", "cls") and not p.name.startswith("_")]
    shown = [str(p.replace(annotation=p.empty, default=_plain(p.default))) for p in public]
    named = next((at for at, p in enumerate(public) if p.kind is p.KEYWORD_ONLY), None)
    if named is not None:
        shown.insert(named, "*")
    return f"({', '.join(shown)})".replace("Ellipsis", "...")


def _plain(default: Any) -> Any:
    """The default as it can be printed: an enum as its value, an object without a literal form as ``...``."""
    default = getattr(default, "value", default)
    literal = default in (None, inspect.Parameter.empty) or isinstance(default, (str, int, float, tuple))
    return default if literal else ...


def main() -> None:
    """Write both pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "cli.md").write_text(cli_page(), encoding="utf-8")
    (FOLDER / "python.md").write_text(python_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
