"""The command ``cogstage``: gathers the command groups and turns errors into one line and an exit code."""

from __future__ import annotations

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
    graph,
    lexicon,
    mcp,
    panels,
    report,
    serve,
    study,
    train,
)
from cogstage.cli.app import CommandGroup
from cogstage.cli.flags import with_flags
from cogstage.errors import CogstageError

app = CommandGroup(
    "Predict medical relations from co-occurrence counts, with reasons in the form of relation triples.",
    name="cogstage",
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)
app.command("demo", rich_help_panel=panels.START)(demo.demo)
app.add_typer(graph.app, name="graph", rich_help_panel=panels.DATA)
app.add_typer(lexicon.app, name="lexicon", rich_help_panel=panels.DATA)
app.add_typer(facts.app, name="facts", rich_help_panel=panels.DATA)
app.add_typer(dataset.app, name="dataset", rich_help_panel=panels.DATA)
app.command("train", rich_help_panel=panels.TRAINING)(train.train)
app.command("evaluate", rich_help_panel=panels.TRAINING)(evaluate.evaluate)
app.command("compare", rich_help_panel=panels.TRAINING)(compare.compare)
app.command("explain", rich_help_panel=panels.ANSWERS)(explain.explain)
app.command("discover", rich_help_panel=panels.ANSWERS)(explain.discover)
app.command("cases", rich_help_panel=panels.ANSWERS)(explain.cases)
app.command("report", rich_help_panel=panels.SHARING)(report.report)
app.command("serve", rich_help_panel=panels.SHARING)(serve.serve)
app.command("mcp", rich_help_panel=panels.SHARING)(mcp.mcp)
app.add_typer(study.app, name="study", rich_help_panel=panels.SHARING)


def show_version(wanted: bool) -> None:
    """Print the version and exit."""
    if wanted:
        from cogstage.artefact import software_version

        typer.echo(f"cogstage {software_version()}")
        raise typer.Exit()


@app.callback()
def options(
    debug: bool = typer.Option(False, "--debug", help="Show the traceback if a command fails."),
    version: bool = typer.Option(
        False, "--version", help="Show the version and exit.", is_eager=True, callback=show_version
    ),
    no_verify: bool = typer.Option(
        False, "--no-verify", help="Read folders without comparing their files with the stored hashes."
    ),
) -> None:
    """Handle the options that come before a command."""
    if no_verify:
        from cogstage.artefact import NO_VERIFY

        os.environ[NO_VERIFY] = "1"  # also for the processes that the command starts


def run(arguments: list[str] | None = None) -> None:
    """Run the command line: exit code 0 done, 1 failed, 2 wrong use; errors are one line on stderr."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminated)
    arguments = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in arguments
    if debug:  # accepted anywhere, so that it can be added to the end of a failed command
        arguments = ["--debug", *(a for a in arguments if a != "--debug")]
    try:
        code = app(args=arguments, prog_name="cogstage", standalone_mode=False)
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
        from cogstage.artefact import FULL, FULL_DISK

        if isinstance(error, OSError) and error.errno in FULL:
            _fail(f"{error.filename or 'the output'}: {FULL_DISK}", 1, debug)
        if isinstance(error, OSError) and error.filename and error.strerror:
            _fail(f"{error.filename}: {error.strerror}", 1, debug)
        _fail(f"unexpected {type(error).__name__}: {error} (run again with --debug for the traceback)", 1, debug)


def _terminated(signum: int, frame: FrameType | None) -> None:
    """Raise an exception, so that partial output is removed as after Ctrl-C."""
    raise KeyboardInterrupt


def _fail(message: str, code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    typer.echo("cogstage: " + " ".join(message.split()), err=True)
    sys.exit(code)
