"""The work folder next to a graph that is being built: runs of rows on disk, read back in ranges of groups.

A run appears whole or not at all, and so do the edges of a finished block. Every file is synced to disk and has its
hash beside it. After a kill, runs and blocks whose hashes fit need not be computed again; others are.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cogstage.artefact import new_file, to_json, write_text
from cogstage.artefact_checks import size_and_hash
from cogstage.errors import UsageError
from cogstage.graph.counting import Rows
from cogstage.graph.edges import Edges
from cogstage.graph.units import DocumentRows, Keys

ROW = np.dtype([("group", "<u8"), ("unit", "<i8"), ("term", "<i4")])
DATED_ROW = np.dtype([*ROW.descr, ("day", "<i4")])
EDGE = np.dtype([("source", "<i4"), ("target", "<i4"), ("count", "<i8"), ("groups", "<i8")])
ORDERED_EDGE = np.dtype([*EDGE.descr, ("order", "<i4", (3,))])
PLAN = "plan.json"


@dataclass(frozen=True)
class Run:
    """Rows of the tasks ``first`` to ``last`` - 1, sorted by group; ``codes`` as in :class:`DocumentRows`."""

    path: Path
    first: int
    last: int
    documents: int
    codes: tuple[str, ...]
    left_out: tuple[int, ...] = ()

    def rows(self, low: int = 0, high: int = 2**64) -> DocumentRows:
        """The rows of the groups low ... high (not included)."""
        stored = np.load(self.path, mmap_mode="r")
        group = stored["group"]
        begin = int(np.searchsorted(group, np.uint64(low))) if low else 0
        end = int(np.searchsorted(group, np.uint64(high))) if high < 2**64 else len(group)
        part = stored[begin:end]
        rows = Rows(*(np.ascontiguousarray(part[name]) for name in part.dtype.names))
        return DocumentRows(rows, self.codes)

    def __len__(self) -> int:
        return int(np.load(self.path, mmap_mode="r").shape[0])


def read_rows(runs: list[Run], keys: Keys, low: int = 0, high: int = 2**64) -> Rows:
    """The rows of a range of groups in all runs, made distinct: the only step that does so."""
    parts = [keys.ranked(found) for found in (run.rows(low, high) for run in runs) if len(found.rows)]
    return Rows.join(parts).distinct()


class WorkFolder:
    """Runs and counted blocks of one build, under a hidden name next to the graph."""

    def __init__(self, out: Path, plan: dict[str, Any], resume: bool) -> None:
        self.path = out.parent / f".{out.name}.work"
        self.dropped = False
        plan = json.loads(to_json(plan))
        if self.path.exists():
            there = self._plan()
            if resume and there != plan:
                raise UsageError(
                    f"the unfinished work in {self.path} was done with other options or inputs; build without `resume`"
                )
            if not resume:
                self.dropped = there is not None
                shutil.rmtree(self.path)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)  # contains hashes of patients
            write_text(self.path / PLAN, to_json(plan), durable=False)
        except OSError as error:
            raise UsageError(f"{out} cannot be written: {error.strerror or error}") from error

    def _plan(self) -> Any:
        try:
            return json.loads((self.path / PLAN).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def runs(self, name: str = "run") -> list[Run]:
        """The finished runs of this name, in the order of their tasks; they follow each other without a gap."""
        runs: list[Run] = []
        for path in sorted(self.path.glob(f"{name}-*.json")):
            if not (is_sound(path) and is_sound(path.with_suffix(".npy"))):
                break
            about = json.loads(path.read_text(encoding="utf-8"))
            if about["first"] != (runs[-1].last if runs else 0):
                break
            codes, left_out = tuple(about["codes"]), tuple(about["left_out"])
            rows = path.with_suffix(".npy")
            runs.append(Run(rows, about["first"], about["last"], about["documents"], codes, left_out))
        return runs

    def add_run(self, found: DocumentRows, first: int, last: int, documents: int, name: str = "run") -> None:
        """Keep the rows of some tasks, sorted by group; the run counts once its description has its name."""
        rows = found.rows.by_group()
        stored = np.empty(len(rows), ROW if rows.day is None else DATED_ROW)
        stored["group"], stored["unit"], stored["term"] = rows.group, rows.unit, rows.term
        if rows.day is not None:
            stored["day"] = rows.day
        path = self.path / f"{name}-{first:09d}.npy"
        with hashed_file(path) as temporary, temporary.open("wb") as handle:
            np.save(handle, stored)
        about = {"first": first, "last": last, "documents": documents, "codes": list(found.codes)}
        about["left_out"] = list(found.left_out)
        write_hashed(path.with_suffix(".json"), about)

    def block(self, number: int, of: int) -> Path:
        """Where the edges of a counted block are kept."""
        return self.path / f"edges-{number:05d}-of-{of:05d}.npy"

    def add_block(self, path: Path, edges: Iterator[Edges]) -> None:
        """Write the sorted edges of a block as they come."""
        with hashed_file(path) as temporary, temporary.open("wb") as handle:
            for part in edges:
                stored = as_stored(part)
                handle.write(stored.tobytes())

    def is_empty(self) -> bool:
        """Whether no finished run is there."""
        return not any(self.path.glob("*-*.npy"))

    def __enter__(self) -> WorkFolder:
        return self

    def __exit__(self, error: object, *_: object) -> None:
        """Remove the folder, unless an error left finished runs with which the work can be continued."""
        if error is None or not any(self.path.glob("*-*.npy")):
            self.remove()

    def remove(self) -> None:
        """Remove all work files."""
        shutil.rmtree(self.path, ignore_errors=True)


@contextmanager
def hashed_file(path: Path) -> Iterator[Path]:
    """As ``new_file``, with the size and hash of the file in a second one beside it."""
    with new_file(path) as temporary:
        yield temporary
    write_text(_hash_of(path), to_json(size_and_hash(path)))


def write_hashed(path: Path, value: Any) -> None:
    """Write a value as JSON, with its hash beside it."""
    with hashed_file(path) as temporary:
        temporary.write_text(to_json(value), encoding="utf-8")


def is_sound(path: Path) -> bool:
    """Whether a work file is there and has the size and hash recorded beside it."""
    try:
        return bool(size_and_hash(path) == json.loads(_hash_of(path).read_text(encoding="utf-8")))
    except (OSError, ValueError):
        return False


def _hash_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.hash")


def as_stored(edges: Edges) -> np.ndarray:
    """Edges as one array of records."""
    stored = np.zeros(len(edges), EDGE if edges.order is None else ORDERED_EDGE)
    stored["source"], stored["target"], stored["count"] = edges.source, edges.target, edges.count
    if edges.groups is not None:
        stored["groups"] = edges.groups
    if edges.order is not None:
        stored["order"] = edges.order
    return stored


def merge_blocks(paths: list[Path], n_nodes: int, most: int, ordered: bool = False) -> Iterator[Edges]:
    """The sorted edges of several blocks as one sorted stream, counts added up, about ``most`` rows at a time."""
    kind = ORDERED_EDGE if ordered else EDGE
    blocks = [np.memmap(path, kind, mode="r") if path.stat().st_size else np.empty(0, kind) for path in paths]
    yield from merge_sorted(blocks, n_nodes, most)


def merge_sorted(blocks: Sequence[np.ndarray], n_nodes: int, most: int) -> Iterator[Edges]:
    """Several arrays of sorted stored edges as one sorted stream, counts added up, about ``most`` rows at a time."""
    sizes = np.zeros(n_nodes, np.int64)
    for block in blocks:
        for at in range(0, len(block), most):
            sizes += np.bincount(block["source"][at : at + most], minlength=n_nodes)
    before = np.concatenate([[0], np.cumsum(sizes)])
    first = 0
    while first < n_nodes:
        last = int(np.searchsorted(before, before[first] + most, side="right")) - 1
        last = max(first + 1, min(last, n_nodes))
        parts = []
        for block in blocks:
            begin, end = np.searchsorted(block["source"], [first, last])
            parts.append(np.array(block[begin:end]))
        yield add_up(np.concatenate(parts))
        first = last


def add_up(stored: np.ndarray) -> Edges:
    """Sorted edges from unsorted ones with duplicates, whose counts are added."""
    key = (stored["source"].astype(np.int64) << 32) | stored["target"]
    by_key = np.argsort(key, kind="stable")
    key = key[by_key]
    starts = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]])) if len(key) else np.empty(0, np.int64)
    ordered = "order" in (stored.dtype.names or ())
    if len(key) == 0:
        empty = np.empty(0, np.int64)
        order = np.empty((0, 3), np.int32) if ordered else None
        return Edges(empty.astype(np.int32), empty.astype(np.int32), empty, empty, order)
    count = np.add.reduceat(stored["count"][by_key], starts)
    groups = np.add.reduceat(stored["groups"][by_key], starts)
    order = np.add.reduceat(stored["order"][by_key], starts, axis=0) if ordered else None
    key = key[starts]
    return Edges((key >> 32).astype(np.int32), (key & 0xFFFFFFFF).astype(np.int32), count, groups, order)
