"""Options that several commands share: one name and one meaning each.

The help text begins with the same words in every command; details follow the first punctuation mark.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import typer

from cogstage.cli import panels

argument = partial(typer.Argument, rich_help_panel=panels.ARGUMENTS)
input_option = partial(typer.Option, rich_help_panel=panels.INPUT)
count_option = partial(typer.Option, rich_help_panel=panels.COUNT)
privacy_option = partial(typer.Option, rich_help_panel=panels.PRIVACY)
model_option = partial(typer.Option, rich_help_panel=panels.MODEL)
run_option = partial(typer.Option, rich_help_panel=panels.RUN)
output_option = partial(typer.Option, rich_help_panel=panels.OUTPUT)

# Input
MODEL = argument(..., help="Model folder.", metavar="MODEL")
SKIP_BAD = input_option(False, "--skip-bad", help="Skip and count rows that cannot be read, instead of stopping.")
STUDY = argument(..., help="Study folder made by `cogstage study create`.", metavar="STUDY")
CORRECTIONS = input_option(
    None,
    "--corrections",
    help="Table of corrections: triples marked right or wrong (columns head, relation, tail, verdict).",
    metavar="TABLE",
)
OUTCOMES = input_option(
    None, "--outcomes", help="Table with the concepts of each outcome (columns outcome, tail).", metavar="TABLE"
)
VOCABULARY = input_option(
    None, "--vocabulary", help="Folder with the OMOP concept tables, for names and roll-up.", metavar="FOLDER"
)
FORMAT = input_option(
    "auto",
    "--format",
    help="Input format; detected from the files by default. `cogstage graph formats` lists them.",
    metavar="NAME",
)


def graph(help: str = "Graph folder.", default: Any = ...) -> Any:
    """Return the option ``--graph``."""
    return input_option(default, "--graph", "-g", help=help, metavar="FOLDER")


def dataset(help: str = "Data set folder.", default: Any = ...) -> Any:
    """Return the option ``--dataset``."""
    return input_option(default, "--dataset", "-d", help=help, metavar="FOLDER")


def lexicon(help: str, default: Any = None) -> Any:
    """Return the option ``--lexicon``."""
    return input_option(default, "--lexicon", "-l", help=help, metavar="TABLE")


# Counting
WINDOW = count_option("1d", "--window", help="Length of the time window, for counts in patient windows.")
PER = count_option(
    "bin", "--per", help="Count every window (bin) or each patient once (patient), for counts in patient windows."
)
MIN_COUNT = count_option(1, "--min-count", help="Leave out terms with a lower count.", metavar="N")
CONTEXT_RULES = count_option(
    None,
    "--context-rules",
    metavar="FILE|de|es|fr|it",
    help="Context rules (such as negation) for languages other than English; de, es, fr, it or your own file.",
)
AMBIGUITY = count_option("first", "--ambiguity", help="What to do with a name that has several concepts.")


def level(default: str) -> Any:
    """Return the option ``--level``."""
    return count_option(default, "--level", help="What a node represents.")


# Model and method
RANKING_HEADS = model_option(
    200,
    "--ranking-heads",
    min=0,
    help="Number of heads whose tails are ranked for MRR and Hits@k; 0 turns ranking off.",
    metavar="N",
)


def relation(help: str, default: Any = None) -> Any:
    """Return the option ``--relation``."""
    return model_option(default, "--relation", "-r", help=help, metavar="NAME")


def seed(help: str = "Random seed.", default: Any = 0, **more: Any) -> Any:
    """Return the option ``--seed``."""
    return model_option(default, "--seed", help=help, metavar="N", **more)


def reasons(help: str, default: Any = None, **more: Any) -> Any:
    """Return the option ``--reasons``."""
    return model_option(default, "--reasons", "-k", help=help, metavar="N", **more)


def pairs_per_reviewer(help: str) -> Any:
    """Return the option ``--pairs-per-reviewer``."""
    return model_option(20, "--pairs-per-reviewer", help=help, metavar="N")


# Execution
HOST = run_option("127.0.0.1", "--host", help="Address to listen on.", metavar="ADDRESS")
ALLOWED_HOSTS = run_option(
    "", "--allowed-hosts", help="Additional host names to accept, comma-separated; * accepts any.", metavar="NAMES"
)
HEALTH_PORT = run_option(
    None,
    "--health-port",
    min=1,
    max=65535,
    help="Answer /health and /metrics on this port instead of the public one.",
    metavar="PORT",
)
TRUSTED_PROXIES = run_option(
    "",
    "--trusted-proxies",
    help="Addresses or networks of proxies whose X-Forwarded-For header is trusted, comma-separated.",
    metavar="ADDRESSES",
)
URL = run_option(None, "--url", help="Public address, if the server runs behind a proxy.", metavar="URL")
REQUIRE_PRIVATE = privacy_option(
    False, "--require-private", help="Refuse a model whose counts are neither suppressed nor differentially private."
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
    """Return the option ``--port``."""
    return run_option(default, "--port", min=1, max=65535, help="Port to listen on.", metavar="PORT")


def workers(default: Any, help: str, **more: Any) -> Any:
    """Return the option ``--workers``."""
    return run_option(default, "--workers", help=help, metavar="N", **more)


def resume(help: str) -> Any:
    """Return the option ``--resume``."""
    return run_option(False, "--resume", help=help)


# Output
def out(help: str = "Output folder.", default: Any = ..., metavar: str = "FOLDER") -> Any:
    """Return the option ``--out``."""
    return output_option(default, "--out", "-o", help=help, metavar=metavar)


def as_json(help: str = "Print JSON.") -> Any:
    """Return the option ``--json``."""
    return output_option(False, "--json", help=help)


LICENCE = output_option(
    [],
    "--licence",
    help="Source and licence of the input, saved with the result and shown by `cogstage report`; may be repeated.",
    metavar="TEXT",
)


def top(default: int) -> Any:
    """Return the option ``--top``."""
    return output_option(default, "--top", min=1, help="Number of rows to show.", metavar="N")
