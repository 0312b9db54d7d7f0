"""Headings of the groups of options in ``--help``, shared by all commands and shown in this order."""

from __future__ import annotations

from typing import Any

ARGUMENTS = "Arguments"
INPUT = "Input"
COUNT = "Counting"
MODEL = "Model and method"
PRIVACY = "Privacy"
RUN = "Execution"
OUTPUT = "Output"
OTHER = "Other"

# Headings of the commands
START = "Start"
DATA = "Data"
TRAINING = "Training and evaluation"
ANSWERS = "Predictions and reasons"
SHARING = "Reports, servers and studies"

_ORDER = (
    *(ARGUMENTS, INPUT, COUNT, MODEL, PRIVACY, RUN, OUTPUT, OTHER),
    *(START, DATA, TRAINING, ANSWERS, SHARING),
)


def order(entry: Any) -> int:
    """Return the position of the panel of a parameter or command."""
    panel = getattr(entry, "rich_help_panel", None)
    return _ORDER.index(panel) if panel in _ORDER else len(_ORDER)
