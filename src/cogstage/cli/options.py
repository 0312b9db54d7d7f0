"""Options that several commands share: one name, one meaning and one help text each.

The words before the first mark of the help text are the same in every command; what follows is the detail.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import typer

from cogstage.cli import panels

input_argument = partial(typer.Argument, rich_help_panel=panels.INPUT)
input_option = partial(typer.Option, rich_help_panel=panels.INPUT)
count_option = partial(typer.Option, rich_help_panel=panels.COUNT)
privacy_option = partial(typer.Option, rich_help_panel=panels.PRIVACY)
model_option = partial(typer.Option, rich_help_panel=panels.MODEL)
run_option = partial(typer.Option, rich_help_panel=panels.RUN)
output_option = partial(typer.Option, rich_help_panel=panels.OUTPUT)

# Input
MODEL = input_argument(..., help="Model folder.", metavar="MODEL")
SKIP_BAD = input_option(False, "--skip-bad", help="Skip and count rows that cannot be read, instead of stopping.")
STUDY = input_argument(..., help="Study folder made by `cogstage study create`.", metavar="STUDY")
CORRECTIONS = input_option(
    None,
    "--corrections",
    help="Table of verdicts on triples (columns head, relation, tail, verdict).",
    metavar="TABLE",
)
OUTCOMES = input_option(
    None, "--outcomes", help="Table with the concepts of each outcome (columns outcome, tail).", metavar="TABLE"
)
VOCABULARY = input_option(
    None, "--vocabulary", help="Folder with the OMOP concept tables, for roll-up.", metavar="FOLDER"
)
FORMAT = input_option(
    "auto",
    "--format",
    help="Input format; detected from the files by default. `cogstage graph formats` lists them.",
    metavar="NAME",
)


def graph(detail: str = "", default: Any = ...) -> Any:
    """``--graph``."""
    return input_option(default, "--graph", "-g", help=_with("Graph folder", detail), metavar="FOLDER")


def dataset(detail: str = "", default: Any = ...) -> Any:
    """``--dataset``."""
    return input_option(default, "--dataset", "-d", help=_with("Data set folder", detail), metavar="FOLDER")


def lexicon(detail: str, default: Any = None) -> Any:
    """``--lexicon``."""
    return input_option(default, "--lexicon", "-l", help=_with("Lexicon table", detail), metavar="TABLE")


# Counting
WINDOW = count_option("1d", "--window", help="Length of the time window, for --unit patient-window.")
PER = count_option("bin", "--per", help="Count every window, or each patient once, for --unit patient-window.")
MIN_COUNT = count_option(1, "--min-count", help="Leave out terms with a lower count.", metavar="N")
CONTEXT_RULES = count_option(
    None,
    "--context-rules",
    metavar="FILE|de|es",
    help="Rules for negation and other context in text that is not English.",
)
AMBIGUITY = count_option("first", "--ambiguity", help="What to do with a name that has several concepts.")


def level(default: str) -> Any:
    """``--level``."""
    return count_option(default, "--level", help="What a node stands for.")


# Model and method
RANKING_HEADS = model_option(
    200,
    "--ranking-heads",
    min=0,
    help="Number of heads whose tails are ranked for MRR and Hits@k; 0 turns ranking off.",
    metavar="N",
)


def relation(detail: str, default: Any = None) -> Any:
    """``--relation``."""
    return model_option(default, "--relation", "-r", help=_with("Relation", detail), metavar="NAME")


def seed(detail: str = "", default: Any = 0, **more: Any) -> Any:
    """``--seed``."""
    return model_option(default, "--seed", help=_with("Random seed", detail), metavar="N", **more)


def reasons(detail: str, default: Any = None, **more: Any) -> Any:
    """``--reasons``."""
    return model_option(default, "--reasons", "-k", help=_with("Number of reasons", detail), metavar="N", **more)


def pairs_per_reviewer(detail: str) -> Any:
    """``--pairs-per-reviewer``."""
    return model_option(20, "--pairs-per-reviewer", help=_with("Number of pairs per reviewer", detail), metavar="N")


# Execution
HOST = run_option("127.0.0.1", "--host", help="Address to listen on.", metavar="ADDRESS")
ALLOWED_HOSTS = run_option(
    "", "--allowed-hosts", help="Other host names to answer to, comma-separated; * allows any.", metavar="NAMES"
)
TRUSTED_PROXIES = run_option(
    "",
    "--trusted-proxies",
    help="Addresses or networks of proxies whose X-Forwarded-For header is trusted, comma-separated.",
    metavar="ADDRESSES",
)
URL = run_option(None, "--url", help="Public address, if a proxy stands in front of the server.", metavar="URL")
REQUIRE_PRIVATE = privacy_option(
    False, "--require-private", help="Refuse a model whose counts were not suppressed or privatised."
)
HIDE_COUNTS = privacy_option(False, "--hide-counts", help="Never show co-occurrence counts.")
DATABASE = run_option(
    None,
    "--database",
    envvar="COGSTAGE_DATABASE",
    help="PostgreSQL database (postgresql://user@host/name) to use instead of the SQLite file in the folder.",
    metavar="URL",
)


def port(default: int) -> Any:
    """``--port``."""
    return run_option(default, "--port", min=1, max=65535, help="Port to listen on.", metavar="PORT")


def workers(default: Any, detail: str, **more: Any) -> Any:
    """``--workers``."""
    return run_option(default, "--workers", help=_with("Number of processes", detail), metavar="N", **more)


def resume(detail: str) -> Any:
    """``--resume``."""
    return run_option(False, "--resume", help=_with("Continue an interrupted run", detail))


# Output
def out(detail: str, default: Any = ..., metavar: str = "FOLDER") -> Any:
    """``--out``."""
    return output_option(default, "--out", "-o", help=_with("Where to write", detail), metavar=metavar)


def as_json(detail: str = "") -> Any:
    """``--json``."""
    return output_option(False, "--json", help=_with("Print JSON", detail))


LICENCE = output_option(
    [],
    "--licence",
    help="Source and licence of the input, kept with the result and shown by `cogstage report`; may be repeated.",
    metavar="TEXT",
)


def top(default: int) -> Any:
    """``--top``."""
    return output_option(default, "--top", min=1, help="Number of rows to show.", metavar="N")


def _with(meaning: str, detail: str) -> str:
    return f"{meaning}{f': {detail}' if detail else ''}."
