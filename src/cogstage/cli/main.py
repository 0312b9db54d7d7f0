"""The command ``cogstage``: gathers the command groups and turns errors into one line and an exit code."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import traceback
from types import FrameType

import typer
from typer.exceptions import TyperException

from cogstage.cli import (
    compare,
    dataset,
    demo,
    evaluate,
    explain,
    facts,
    federate,
    graph,
    lexicon,
    mcp,
    panels,
    publish,
    report,
    review,
    serve,
    study,
    train,
)
from cogstage.cli.app import CommandGroup
from cogstage.cli.configuration import defaults_from_file, used_defaults
from cogstage.cli.console import environment_lines, is_verbose, say, set_level
from cogstage.cli.flags import with_flags
from cogstage.errors import CogstageError

ANYWHERE = ("--debug", "--verbose", "--quiet")
LEAST_ADDRESS_SPACE = 1_000_000_000  # bytes; numpy, Arrow and numba alone reserve most of it
MEMORY_HELP = "raise the limit (ulimit -v, container), close other programs, or use a smaller input"

app = CommandGroup(
    "Predict medical relations from co-occurrence counts, with reasons in the form of relation triples.",
    name="cogstage",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("demo", rich_help_panel=panels.START)(demo.demo)
app.add_typer(graph.app, name="graph", rich_help_panel=panels.DATA)
app.add_typer(federate.app, name="federate", rich_help_panel=panels.DATA)
app.add_typer(lexicon.app, name="lexicon", rich_help_panel=panels.DATA)
app.add_typer(facts.app, name="facts", rich_help_panel=panels.DATA)
app.add_typer(dataset.app, name="dataset", rich_help_panel=panels.DATA)
app.command("train", rich_help_panel=panels.TRAINING)(train.train)
app.command("evaluate", rich_help_panel=panels.TRAINING)(evaluate.evaluate)
app.command("compare", rich_help_panel=panels.TRAINING)(compare.compare)
app.command("explain", rich_help_panel=panels.ANSWERS)(explain.explain)
app.command("discover", rich_help_panel=panels.ANSWERS)(explain.discover)
app.command("cases", rich_help_panel=panels.ANSWERS)(explain.cases)
app.command("review", rich_help_panel=panels.ANSWERS)(review.review)
app.command("report", rich_help_panel=panels.SHARING)(report.report)
app.command("publish", rich_help_panel=panels.SHARING)(publish.publish)
app.command("serve", rich_help_panel=panels.SHARING)(serve.serve)
app.command("mcp", rich_help_panel=panels.SHARING)(mcp.mcp)
app.add_typer(study.app, name="study", rich_help_panel=panels.SHARING)


def show_version(wanted: bool) -> None:
    """Print the version, with --verbose also those of everything it depends on, and exit."""
    if wanted:
        from cogstage.artefact import software_version

        typer.echo(f"cogstage {software_version()}")
        if is_verbose():
            typer.echo("\n".join(environment_lines()))
        raise typer.Exit()


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback if a command fails."),
    verbose: bool = typer.Option(False, "--verbose", help="Log more; with --version, show what a bug report needs."),
    quiet: bool = typer.Option(False, "--quiet", help="Show no progress, only results and errors."),
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", is_eager=True, callback=show_version
    ),
    no_verify: bool = typer.Option(
        False, "--no-verify", help="Read folders without comparing their files with the stored hashes."
    ),
) -> None:
    """Handle the options that come before a command."""
    set_level(verbose, quiet)
    if no_verify:
        from cogstage.artefact import NO_VERIFY

        os.environ[NO_VERIFY] = "1"  # also for the processes that the command starts


def run(arguments: list[str] | None = None) -> None:
    """Run the command line: exit code 0 done, 1 failed, 2 wrong use; errors are one line on stderr."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminated)
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    begin = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if anywhere := [flag for flag in ANYWHERE if flag in begin]:  # they can be added to the end of a failed command
        arguments = [*anywhere, *(a for a in begin if a not in ANYWHERE), *arguments[len(begin) :]]
    set_level("--verbose" in begin, "--quiet" in begin)  # for what comes before the command, such as --version
    try:
        check_address_space()
        command = typer.main.get_command(app)
        defaults = defaults_from_file(command)
        if (used := used_defaults(defaults, arguments)) and "--quiet" not in arguments:
            say(f"from the configuration file: {used}")
        code = command.main(arguments, "cogstage", standalone_mode=False, default_map=defaults)
        if code == 130:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
        sys.exit(code if isinstance(code, int) else 0)
    except CogstageError as error:
        _fail(with_flags(str(error)), error.exit_code, debug)
    except TyperException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # not a mistake to explain in one line: the help is the answer
            if str(error).strip():  # empty when rich has printed the help already
                typer.echo(str(error), err=True)
            sys.exit(2)
        _fail(getattr(error, "format_message", error.__str__)(), 2, debug)
    except (typer.Abort, KeyboardInterrupt):
        _fail("stopped; no partial output was left", 130, debug)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(1)
    except Exception as error:
        from cogstage.artefact import FULL_DISK, disk_is_full

        if disk_is_full(error):
            _fail(f"{getattr(error, 'filename', None) or 'the output'}: {FULL_DISK}", 1, debug)
        if isinstance(error, MemoryError):
            _fail(f"not enough memory; {MEMORY_HELP}", 1, debug)
        if isinstance(error, OSError) and error.filename and error.strerror:
            _fail(f"{error.filename}: {error.strerror}", 1, debug)
        cause = f"unexpected {type(error).__name__}: {error}"
        if address_space() < 3 * LEAST_ADDRESS_SPACE:
            _fail(f"{cause}; the address space is limited to {address_space() / 1e6:.0f} MB: {MEMORY_HELP}", 1, debug)
        _fail(f"{cause} (run again with --debug for the traceback)", 1, debug)


def address_space() -> float:
    """The limit on this process's address space in bytes; infinite without one."""
    try:
        import resource
    except ImportError:  # Windows
        return math.inf
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return math.inf if soft == resource.RLIM_INFINITY else soft


def check_address_space() -> None:
    """Raise where libraries would end in a segmentation fault: most of them do not check what they allocate."""
    if address_space() < LEAST_ADDRESS_SPACE:
        raise CogstageError(f"the address space is limited to {address_space() / 1e6:.0f} MB; {MEMORY_HELP}")


def _terminated(signum: int, frame: FrameType | None) -> None:
    """Raise an exception, so that partial output is removed as after Ctrl-C."""
    raise KeyboardInterrupt


def _fail(message: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    typer.echo("cogstage: " + " ".join(message.split()), err=True)
    sys.exit(code)
