"""Headings under which ``--help`` groups the options; the same words for every command."""

from __future__ import annotations

INPUT = "Input"
COUNT = "Counting"
PRIVACY = "Privacy"
MODEL = "Model and method"
RUN = "Execution"
OUTPUT = "Output"
