"""The model as a team has corrected it: a table of verdicts that pages add to and all workers read."""

from __future__ import annotations

import fcntl
import threading
from datetime import datetime, timezone
from pathlib import Path

from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.corrections import Correction, Corrections

LONGEST = 500  # letters of a name or a reason
MOST = 10_000  # verdicts in a table that pages add to: every one writes it anew, and the explorer has no accounts
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would take for a formula


class CorrectedModel:
    """The model with the verdicts in ``path``; the table is read again when it has changed.

    ``version`` counts the changes, so that what was remembered under an older one is not shown any more.
    """

    def __init__(self, model: CogStage, path: Path | None = None) -> None:
        self._plain, self.path = model, path
        self._model, self.entries = model, Corrections()
        self._stamp: tuple[int, int] | None = None
        self._version = 0
        self._lock = threading.Lock()

    @property
    def model(self) -> CogStage:
        """The model as corrected now."""
        self._refresh()
        return self._model

    @property
    def version(self) -> int:
        """Grows with every change of the table."""
        self._refresh()
        return self._version

    def _refresh(self) -> None:
        if self.path is None:
            return
        try:
            status = self.path.stat()
            stamp = (status.st_mtime_ns, status.st_size)
        except FileNotFoundError:
            stamp = None
        if stamp == self._stamp:
            return
        with self._lock:
            entries = Corrections.read(self.path) if stamp else Corrections()
            self._model = self._plain.corrected(entries) if len(entries) else self._plain
            self.entries, self._stamp = entries, stamp
            self._version += 1

    def add(self, head: str, relation: str, tail: str, verdict: str, who: str, why: str) -> Correction:
        """Append a verdict to the table; terms are keys. Several processes may do so at once."""
        if self.path is None:
            raise UsageError("this server does not store corrections; it was started without a corrections file")
        if not who.strip():
            raise UsageError("enter your name, so that others know who made the correction")
        when = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        entry = Correction(head, relation, tail, verdict, _plain(who), when, _plain(why))
        Corrections((entry,)).verdicts(self._plain.vocabulary, self._plain.all_relations)  # raises on unknown ones
        with self.path.with_name(f".{self.path.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            present = Corrections.read(self.path) if self.path.exists() else Corrections()
            if len(present) >= MOST:
                raise UsageError(
                    f"the table of corrections has {len(present):,} verdicts, which is the limit for this page"
                )
            present.adding(entry).write(self.path)
        self._refresh()
        return entry


def _plain(text: str) -> str:
    """One line that no spreadsheet reads as a formula."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:LONGEST]
    return f"'{line}" if line.startswith(FORMULA) else line
