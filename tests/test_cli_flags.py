"""The command line as a whole: one meaning per flag, flags in place of the library's parameters, completion."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

import cogstage
from cogstage.choices import Copies, check_choice
from cogstage.cli.flags import flags, with_flags
from cogstage.cli.main import app, run
from cogstage.errors import UsageError
from cogstage.graph.options import BuildOptions

LIBRARY = Path(cogstage.__file__).parent
FLAG = re.compile(r"(?<![\w-])--[a-z]")


def commands(group: Any, path: str = "cogstage") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


EVERY = dict(commands(typer.main.get_command(app)))


def options_by_flag() -> dict[str, list[tuple[str, Any]]]:
    found = defaultdict(list)
    for path, command in EVERY.items():
        for option in command.params:
            if option.param_type_name == "option" and option.name != "help":
                for flag in option.opts:
                    found[flag].append((path, option))
    return found


def kind(option: Any) -> tuple[Any, ...]:
    """What a flag takes: its type (of each value, if it may be repeated) and a word for the value."""
    taken = option.type_descriptor.annotation
    metavar = None if option.metavar in ("FILE", "FOLDER") else option.metavar  # --out writes either
    return taken.__args__[0] if getattr(taken, "__origin__", None) is list else taken, metavar


def meaning(option: Any) -> str:
    """The help text up to its first mark; the detail of a command follows. --out writes a file or a folder."""
    return re.split(r"[:;.,(]", option.help)[0].strip().removesuffix(" file").removesuffix(" folder")


def test_a_flag_means_the_same_in_every_command() -> None:
    for flag, uses in options_by_flag().items():
        for what in (meaning, kind, lambda option: sorted(option.opts)):
            told = {str(what(option)): path for path, option in uses}
            assert len(told) == 1, f"{flag}: {told}"


def test_a_parameter_is_set_by_one_flag() -> None:
    found = defaultdict(set)
    for uses in options_by_flag().values():
        for _, option in uses:
            found[option.name].add(max(option.opts, key=len))
    assert {name: sorted(of) for name, of in found.items() if len(of) > 1} == {}
    assert flags().items() >= {(name, *of) for name, of in found.items()}


def test_the_library_names_parameters_and_not_flags() -> None:
    """Every string of the library outside cli/, docstrings and comments apart."""
    wrong = []
    for file in sorted(LIBRARY.rglob("*.py")):
        if "cli" in file.relative_to(LIBRARY).parts:
            continue
        tree = ast.parse(file.read_text(encoding="utf-8"))
        docstrings = {
            id(node.value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        }
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        for node in texts:
            if id(node) not in docstrings and FLAG.search(str(node.value)):
                wrong.append(f"{file.relative_to(LIBRARY)}:{node.lineno}: {node.value!r}")
    assert wrong == []


def test_the_command_line_shows_flags(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(UsageError, match="`min_count` must be at least 1, not 0"):
        BuildOptions(min_count=0)
    with pytest.raises(SystemExit) as stopped:
        run(["graph", "build", str(tmp_path), "--min-count", "0", "--out", str(tmp_path / "graph")])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == "cogstage: --min-count must be at least 1, not 0\n"


def test_what_is_no_parameter_stays() -> None:
    assert (
        with_flags("`skip` and `nothing_of_ours` and `two words`") == "--skip-bad and `nothing_of_ours` and `two words`"
    )


def test_a_choice_names_its_parameter_and_the_words() -> None:
    check_choice("copies", "keep", Copies)
    with pytest.raises(UsageError, match=r"^`copies` must be one of auto, drop, keep, not all$"):
        check_choice("copies", "all", Copies)


def test_usage_lines_read_as_typed() -> None:
    usage = {
        path: " ".join(command.collect_usage_pieces(command.context_class(command, info_name=path)))
        for path, command in EVERY.items()
    }
    assert usage["cogstage explain"] == "[OPTIONS] MODEL HEAD TAIL"
    assert usage["cogstage discover"] == "[OPTIONS] MODEL HEAD"
    assert usage["cogstage graph build"] == "[OPTIONS] FILE..."
    assert not [line for line in usage.values() if re.search(r"[{}]|\[(?!OPTIONS)", line)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cogstage gr", {"graph"}),
        ("cogstage graph imp", {"import"}),
        ("cogstage graph build --copies ", {"auto", "drop", "keep"}),
        ("cogstage evaluate --ra", {"--ranking-heads", "--rationales", "--rationale-pairs"}),
    ],
)
def test_the_shell_completes(words: str, expected: set[str]) -> None:
    environment = {**os.environ, "_COGSTAGE_COMPLETE": "complete_bash", "COMP_WORDS": words}
    environment["COMP_CWORD"] = str(len(words.split(" ")) - 1)
    done = subprocess.run(
        [sys.executable, "-c", "from cogstage.cli.main import run; run()"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert set(done.stdout.split()) == expected, done.stderr
