"""The model as a team has corrected it: a table of verdicts that pages append to and all workers read."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from filelock import FileLock

from cogstage.errors import UsageError
from cogstage.estimator import CogStage
from cogstage.rationale.corrections import COLUMNS, WITHDRAWN, Correction, Corrections
from cogstage.rationale.record import Triple
from cogstage.reporting.escape import spreadsheet
from cogstage.tables import table_kind

LONGEST = 500  # letters of a name or a reason
HEADER = "\t".join(COLUMNS).encode() + b"\n"


class CorrectedModel:
    """The model with the verdicts in ``path``.

    The table only grows, so that adding to it and reading it again cost what was added: anybody who can reach the pages
    can add a verdict. ``limit`` is the largest number of verdicts; each can still be withdrawn once it is reached.
    """

    def __init__(self, model: CogStage, path: Path | None = None, limit: int = 10_000) -> None:
        self._plain, self.path, self.limit = model, path, limit
        self._entries: list[Correction] = []
        self._model, self._model_version = model, 0
        self._file: tuple[int, int, int] | None = None  # inode, size and time of the file when it was last read
        self._content = b""  # what was read
        self._version = 0
        self._lock = threading.RLock()

    @property
    def model(self) -> CogStage:
        """The model as corrected now."""
        with self._lock:
            self._refresh()
            if self._model_version != self._version:
                self._model = self._plain.corrected(Corrections(tuple(self._entries)))
                self._model_version = self._version
            return self._model

    @property
    def version(self) -> int:
        """Grows with every change of the table, so that what was computed with an older one is not shown any more."""
        with self._lock:
            self._refresh()
            return self._version

    @property
    def entries(self) -> tuple[Correction, ...]:
        """All verdicts, oldest first."""
        with self._lock:
            self._refresh()
            return tuple(self._entries)

    def _refresh(self) -> None:
        """Parse what the table has gained; all of it if it was changed in another way."""
        if self.path is None:
            return
        try:
            status = self.path.stat()
            state = (status.st_ino, status.st_size, status.st_mtime_ns)
        except FileNotFoundError:
            state = None
        if state == self._file:
            return
        whole = self.path.read_bytes() if state else b""
        content = whole[: whole.rfind(b"\n") + 1]  # a row that is being written is read when it is whole
        added = [line.split("\t") for line in content[len(self._content) :].decode("utf-8", "replace").splitlines()]
        if not state:
            self._entries = []
        elif (
            self._content.startswith(HEADER)
            and content.startswith(self._content)
            and all(len(cells) == len(COLUMNS) for cells in added)
        ):
            self._entries += [Correction(*cells) for cells in added]
        else:
            self._entries, content = list(Corrections.read(self.path).entries), whole
        self._content, self._file = content, state
        self._version += 1

    def add(self, verdicts: Sequence[tuple[Triple, str]], who: str, why: str) -> None:
        """Append verdicts on triples of keys to the table, all or none. Several processes may do so at once."""
        if self.path is None:
            raise UsageError("this server does not store corrections; it was started without a corrections file")
        if not who.strip():
            raise UsageError("enter your name, so that others know who made the correction")
        when = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
        rows = [Correction(*triple, verdict, _one_line(who), when, _one_line(why)) for triple, verdict in verdicts]
        Corrections(tuple(rows)).verdicts(self._plain.vocabulary, self._plain.all_relations)  # raises on unknown ones
        with self._lock, FileLock(self.path.with_name(f".{self.path.name}.lock")):
            self._make_appendable(self.path)
            self._refresh()
            self._check_space(rows)
            _append(self.path, rows)
            self._refresh()

    def _make_appendable(self, path: Path) -> None:
        """Create the table, or give one that was written by hand all our columns and a whole last line."""
        if not path.exists():
            Corrections().write(path)
        with path.open("rb") as table:
            ours = table.read(len(HEADER)) == HEADER
            table.seek(-1, os.SEEK_END)
            if ours and table.read(1) == b"\n":
                return
        if table_kind(path) != "tsv":
            raise UsageError(f"{path} cannot be added to; start the server with a table in a .tsv file")
        Corrections.read(path).write(path)

    def _check_space(self, rows: Sequence[Correction]) -> None:
        """Raise if the table is full. A verdict in force can always be withdrawn, which at most doubles the table."""
        in_force: dict[tuple[str, str, str], bool] = {}
        if len(self._entries) + len(rows) <= self.limit:
            return
        for entry in self._entries:
            in_force[entry.head, entry.relation, entry.tail] = entry.verdict != WITHDRAWN
        for row in rows:
            if row.verdict != WITHDRAWN or not in_force.pop((row.head, row.relation, row.tail), False):
                raise UsageError(
                    f"the table of corrections has {len(self._entries):,} verdicts, and the limit for this page is"
                    f" {self.limit:,}; verdicts can only be withdrawn"
                )


def _append(path: Path, rows: Sequence[Correction]) -> None:
    """Add rows at the end of the table and wait until they are on disk; a failure leaves the table as it was."""
    lines = ["\t".join(" ".join(getattr(row, name).split()) for name in COLUMNS) + "\n" for row in rows]
    with path.open("r+b", buffering=0) as table:
        end = table.seek(0, os.SEEK_END)
        data = "".join(lines).encode("utf-8")
        try:
            if table.write(data) != len(data):
                raise OSError("the disk is full")
            os.fsync(table.fileno())
        except OSError:
            table.truncate(end)
            raise


def _one_line(text: str) -> str:
    """One line that no spreadsheet reads as a formula."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())[:LONGEST]
    return spreadsheet(line)
