"""One answer as a number: what the analysis of a crossover rests on."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Observation:
    """One answer with reviewer, pair, arm, and the period in which the reviewer met the arm (from 0)."""

    reviewer: str
    pair: str
    arm: str
    period: int
    value: float
