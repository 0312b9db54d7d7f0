"""The years of the documents that a graph counted."""

from __future__ import annotations

import datetime
from dataclasses import dataclass


@dataclass
class Years:
    """The first and the last year of the documents that were counted."""

    first: int | None = None
    last: int | None = None

    def add(self, date: datetime.date | None) -> None:
        """The date of one document, if it has one."""
        if date is not None:
            self.join(Years(date.year, date.year))

    def join(self, other: Years) -> None:
        """The years of further documents."""
        if other.first is not None and other.last is not None:
            self.first = other.first if self.first is None else min(self.first, other.first)
            self.last = other.last if self.last is None else max(self.last, other.last)

    def as_meta(self) -> list[int] | None:
        """For ``meta.json``; None if no document had a date."""
        return None if self.first is None or self.last is None else [self.first, self.last]
