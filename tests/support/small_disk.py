"""A file system of a few hundred kilobytes, for tests of full disks."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small_disk(folder: Path, kilobytes: int = 256) -> Iterator[Path]:
    """An empty tmpfs at ``folder``; skips with the reason where none can be mounted."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={kilobytes}k", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a small tmpfs cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(folder: Path, leave: int = 0) -> Path:
    """Take all space of the folder's disk but ``leave`` bytes."""
    filler = folder / "filler"
    free = os.statvfs(folder)
    with filler.open("wb") as handle:
        handle.write(bytes(max(0, free.f_bavail * free.f_frsize - leave)))
    return filler
