"""A list of pairs as people paste it: lines with a separator, perhaps with a heading and a relation."""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass

HEADINGS = frozenset(
    re.findall(
        r"\w+",
        "head tail drug disease disorder condition term subject object symptom effect from to source target first"
        " second firstterm secondterm",
    )
)


@dataclass(frozen=True)
class AskedPair:
    """One line of a list of pairs."""

    line: int  # from 1 on, blank lines counted
    head: str
    tail: str
    relation: str  # name or phrase; empty if the line names none

    @property
    def pair(self) -> tuple[str, str]:
        """Head and tail."""
        return self.head, self.tail


def pairs_of(text: str) -> list[AskedPair]:
    """Pairs from lines with a tab, semicolon or comma between the terms and a relation; a heading is left out."""
    asked = []
    for number, line in enumerate(text.replace("\0", " ").splitlines(), start=1):
        cells = _cells(line[:2000])
        if any(cells):
            asked.append(AskedPair(number, *(cell[:300] for cell in (*cells, "", "")[:3])))
    return asked[1:] if asked and _is_heading(asked[0]) else asked


def _cells(line: str) -> list[str]:
    for separator in ("\t", ";", ","):
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=separator, skipinitialspace=True), [])]
        if len(cells) > 1 and cells[0] and cells[1]:
            return cells
    return [line.strip()]


def _is_heading(first: AskedPair) -> bool:
    return all(re.sub(r"[\W_\d]+(name|id)?", "", cell.casefold()) in HEADINGS for cell in first.pair)
