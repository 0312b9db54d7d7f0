"""Headings of the groups of options in ``--help``, shared by all commands."""

from __future__ import annotations

INPUT = "Input"
COUNT = "Counting"
PRIVACY = "Privacy"
MODEL = "Model and method"
RUN = "Execution"
OUTPUT = "Output"
