"""Checks of the files in an artefact: size and hash, regular files only, no more rows than a file can hold."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import xxhash

from cogstage.errors import CogstageError

META = "meta.json"
MOST_META = 1 << 26  # bytes of the largest meta.json that is read
BLOCK = 1 << 22
COMPLETE = ("graph", "facts", "dataset", "model")  # kinds whose folders get no data file after they were written
DATA = (".parquet", ".safetensors", ".arrow", ".npy")  # files that readers use if they are there
ROWS_PER_BYTE = 32  # a Parquet file that claims more rows per byte is refused before space is made for them
MOST_EXPANSION = 4096  # and one that claims to hold more bytes per byte


def fast_hash(path: Path) -> str:
    """Return the XXH3 hash (128 bits) of a file. It detects damage quickly, but does not protect against forgery."""
    digest = xxhash.xxh3_128()
    with path.open("rb") as handle:
        while block := handle.read(BLOCK):
            digest.update(block)
    return str(digest.hexdigest())


def size_and_hash(file: Path) -> dict[str, Any]:
    """What ``meta.json`` records of a file."""
    return {"bytes": file.stat().st_size, "xxh3": fast_hash(file)}


def meta_text(folder: Path) -> str:
    """The text of ``meta.json``; a pipe does not block, and a huge file is not read."""
    descriptor = os.open(folder / META, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    with open(descriptor, "rb") as handle:
        about = os.fstat(descriptor)
        if not stat.S_ISREG(about.st_mode) or about.st_size > MOST_META:
            raise ValueError("not a regular file, or too large")
        return handle.read().decode("utf-8")


def version_of(folder: Path) -> tuple[int, ...] | None:
    """What changes when a folder or its ``meta.json`` is replaced; None if it is not there."""
    with suppress(OSError):
        own, meta = folder.stat(), (folder / META).stat()
        return own.st_dev, own.st_ino, meta.st_ino, meta.st_mtime_ns, meta.st_ctime_ns
    return None


def check_files(folder: Path, kind: str, recorded: Mapping[str, Any]) -> None:
    """Raise unless every recorded file has its size and hash, and no data file was added to a complete folder."""
    for name, about in recorded.items():
        file = folder / name
        try:
            sound = file.is_file() and file.stat().st_size == about["bytes"] and fast_hash(file) == about["xxh3"]
        except (KeyError, TypeError):
            raise CogstageError(f"{folder / META} is damaged ({name}); create the {kind} again") from None
        if not sound:
            raise CogstageError(
                f"{file} is damaged: its content has changed since it was written; create the {kind} again"
            )
    for file in folder.rglob("*") if kind in COMPLETE else ():
        if file.suffix in DATA and file.relative_to(folder).as_posix() not in recorded:
            raise CogstageError(f"{file} was not written with this {kind}; remove the file, or create the {kind} again")


def check_sizes(files: Iterable[Path]) -> None:
    """Raise unless these are regular files, and Parquet files that can hold the rows they claim."""
    for file in files:
        if not file.is_file():
            raise CogstageError(f"{file} is not a regular file; the artefact is damaged or hostile")
        if file.suffix == ".parquet":
            _check_parquet(file)


def _check_parquet(file: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    size = file.stat().st_size
    try:
        about = pq.read_metadata(file)
        groups = [about.row_group(number) for number in range(about.num_row_groups)]
        held, unpacked = sum(group.num_rows for group in groups), sum(group.total_byte_size for group in groups)
    except (pa.ArrowException, OSError) as error:
        raise CogstageError(f"{file} is damaged ({error})".replace("\n", " ")) from error
    if held != about.num_rows or about.num_rows > size * ROWS_PER_BYTE or unpacked > size * MOST_EXPANSION:
        raise CogstageError(
            f"{file} claims {about.num_rows:,} rows in {size:,} bytes; the artefact is damaged or hostile"
        )
